"""MyGrad: tensors over NumPy's arrays, recorded as they run; without the guard that keeps arrays from being written to,
as its guide has it for speed.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mygrad as mg
import numpy as np
from mygrad import nnet

from .functions import Functions, Loss, Parameters, Task
from .numpy_trainer import steps

__version__ = mg.__version__


class MyGrad(Functions):
    xp, drawn = mg, np.random.default_rng(0)
    relu = staticmethod(nnet.relu)
    sigmoid = staticmethod(nnet.sigmoid)
    softmax = staticmethod(nnet.softmax)
    cross_entropy = staticmethod(nnet.softmax_crossentropy)

    def uniform(self, like: Any) -> Any:
        return self.drawn.random(like.shape, np.float32)

    def normal(self, like: Any) -> Any:
        return self.drawn.standard_normal(like.shape, np.float32)

    def detach(self, x: Any) -> Any:
        return x.data if isinstance(x, mg.Tensor) else x

    def transpose(self, x: Any, *axes: int) -> Any:
        return mg.transpose(x, *axes)

    def leaky_relu(self, x: Any, slope: float) -> Any:
        return nnet.leaky_relu(x, slope)

    def conv2d(self, x: Any, weight: Any, stride: int, padding: int) -> Any:
        if any((n + 2 * padding - size) % stride for n, size in zip(x.shape[2:], weight.shape[2:])):
            raise NotImplementedError("windows have to fill the picture")
        return nnet.conv_nd(x, weight, stride=stride, padding=padding)

    def batch_norm(self, x: Any, weight: Any, bias: Any) -> tuple[Any, Any, Any]:
        out = nnet.batchnorm(x, gamma=weight, beta=bias, eps=1e-5)
        return out, out.creator.mean, out.creator.var


def trainer(task: Task, check: bool) -> Callable[[], tuple[Any, dict[str, Any]]]:
    mg.turn_memory_guarding_off()
    f = MyGrad(not check)

    def evaluate(loss: Loss, names: Any, values: Any, inputs: Any) -> Any:
        trained = {name: mg.tensor(values[name], copy=False) for name in names}
        p = Parameters(values | trained)
        value = loss(f, p, *inputs)
        value.backward()
        return value.item(), p.written, {name: tensor.grad for name, tensor in trained.items()}
    return steps(evaluate, task)
