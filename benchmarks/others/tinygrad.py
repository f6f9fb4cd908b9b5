"""tinygrad: the whole step, with its own optimizers, captured by TinyJit and run again as the kernels that it made."""
from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
from tinygrad import Device, Tensor, TinyJit, nn
from tinygrad.helpers import Context

from .functions import Functions, Optimizer, Parameters, Task

__version__ = version("tinygrad")


class Tinygrad(Functions):
    exp, tanh, sigmoid, softmax, softplus = map(staticmethod,
                                                (Tensor.exp, Tensor.tanh, Tensor.sigmoid, Tensor.softmax,
                                                 Tensor.softplus))
    relu, leaky_relu, transpose, detach, dropped = map(staticmethod,
                                                       (Tensor.relu, Tensor.leaky_relu, Tensor.permute, Tensor.detach,
                                                        Tensor.dropout))
    conv2d = staticmethod(lambda x, weight, stride, padding: x.conv2d(weight, stride=stride, padding=padding))
    conv_transpose2d = staticmethod(lambda x, weight, stride, padding: x.conv_transpose2d(weight, stride=stride,
                                                                                          padding=padding))
    max_pool = staticmethod(lambda x, size, stride, padding: x.max_pool2d((size, size), stride, padding=padding))
    avg_pool = staticmethod(lambda x, size: x.avg_pool2d((size, size)))
    cross_entropy = staticmethod(Tensor.sparse_categorical_crossentropy)

    def linear(self, x: Any, weight: Any, bias: Any = None) -> Any:
        return x.linear(weight.T, bias)

    def gelu(self, x: Any) -> Any:
        return x.gelu("none")

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        return x.layernorm() * weight + bias

    def batch_norm(self, x: Any, weight: Any, bias: Any) -> tuple[Any, Any, Any]:
        """As its own nn.BatchNorm."""
        mean = x.mean((0, 2, 3))
        centred = x - mean.detach().reshape(1, -1, 1, 1)
        variance = (centred * centred).mean((0, 2, 3))
        return x.batchnorm(weight, bias, mean, (variance + 1e-5).rsqrt()), mean, variance

    def attention(self, x: Any, heads: int, causal: bool = False) -> Any:
        query, key, value = x.reshape(*x.shape[:2], 3, heads, -1).permute(2, 0, 3, 1, 4)
        return query.scaled_dot_product_attention(key, value, is_causal=causal).transpose(1, 2).reshape(*x.shape[:2],
                                                                                                        -1)

    def dropout(self, x: Any, p: float) -> Any:
        return x.dropout(p) if self.random else x

    def normal(self, like: Any) -> Any:
        return like.randn_like()

    def lstm(self, x: Any, w_input: Any, w_hidden: Any, bias: Any) -> Any:
        gates, out = self.linear(x, w_input, bias), []
        hidden = cell = Tensor.zeros(x.shape[1], w_hidden.shape[1])
        for t in range(x.shape[0]):
            hidden, cell = self.lstm_cell(gates[t] + hidden @ w_hidden.T, cell)
            out.append(hidden)
        return out[0].stack(*out[1:])


def own(optimizer: Optimizer, values: dict[str, Any]) -> Any:
    """tinygrad's optimizer for one of PyTorch's."""
    settings = dict(optimizer.settings)
    if "betas" in settings:
        settings |= zip(("b1", "b2"), settings["betas"])
    wanted = {"SGD": ("lr", "momentum"), "Adam": ("lr", "b1", "b2", "eps"),
              "AdamW": ("lr", "b1", "b2", "eps", "weight_decay")}[optimizer.kind]
    return getattr(nn.optim, optimizer.kind)([values[name] for name in optimizer.names],
                                             **{name: settings[name] for name in wanted})


def trainer(task: Task, check: bool) -> Callable[[], tuple[Any, dict[str, Any]]]:
    f = Tinygrad(not check)
    values, inputs = ({name: Tensor(np.array(value)).realize() for name, value in task.values.items()},
                      [Tensor(x).realize() for x in task.inputs])
    for name in values.keys() - {name for optimizer in task.optimizers.values() for name in optimizer.names}:
        values[name].is_param_(False)
    optimizers = {name: own(optimizer, values) for name, optimizer in task.optimizers.items()}

    @TinyJit
    def step() -> tuple[Any, dict[str, Any]]:
        losses, every = [], {}
        for name, loss in task.phases:
            for optimizer in optimizers.values():
                optimizer.zero_grad()
            p = Parameters(values)
            losses.append(loss(f, p, *inputs).backward())
            gradients = {key: values[key].grad for key in task.optimizers[name].names} if check else {}
            written = [values[key].assign(value) for key, value in p.written.items()]
            losses[-1].realize(*gradients.values(), *written, *optimizers[name].schedule_step())
            every |= gradients
        return sum(losses[1:], losses[0]).realize(), every

    def run() -> tuple[Any, dict[str, Any]]:
        with Context(TRAINING=1):
            loss, gradients = step()
        Device[Device.DEFAULT].synchronize()
        return loss, gradients
    return run
