"""JAX: the whole step, with its optimizers, compiled as one function that may overwrite the old values."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .functions import Functions, Loss, Parameters, Task, Trained, train

__version__ = jax.__version__
IMAGES = ("NCHW", "OIHW", "NCHW")


class Jax(Functions):
    xp = jnp

    def __init__(self, random: bool, key: Any) -> None:
        super().__init__(random)
        self.key = key

    def next_key(self) -> Any:
        self.key, key = jax.random.split(self.key)
        return key

    def uniform(self, like: Any) -> Any:
        return jax.random.uniform(self.next_key(), like.shape)

    def normal(self, like: Any) -> Any:
        return jax.random.normal(self.next_key(), like.shape)

    erf = staticmethod(lax.erf)
    detach = staticmethod(lax.stop_gradient)
    relu = staticmethod(jax.nn.relu)
    leaky_relu = staticmethod(jax.nn.leaky_relu)
    sigmoid = staticmethod(jax.nn.sigmoid)
    softplus = staticmethod(jax.nn.softplus)

    def gelu(self, x: Any) -> Any:
        return jax.nn.gelu(x, approximate=False)

    def attention(self, x: Any, heads: int, causal: bool = False) -> Any:
        parts = x.reshape(*x.shape[:2], 3, heads, -1)
        return jax.nn.dot_product_attention(*(parts[:, :, i] for i in range(3)), is_causal=causal).reshape(*x.shape[:2],
                                                                                                           -1)

    def conv2d(self, x: Any, weight: Any, stride: int, padding: int) -> Any:
        return lax.conv_general_dilated(x, weight, 2 * [stride], 2 * [(padding, padding)], dimension_numbers=IMAGES)

    def conv_transpose2d(self, x: Any, weight: Any, stride: int, padding: int) -> Any:
        rest = weight.shape[-1] - 1 - padding
        return lax.conv_transpose(x, weight, 2 * [stride], 2 * [(rest, rest)], dimension_numbers=IMAGES,
                                  transpose_kernel=True)

    def max_pool(self, x: Any, size: int, stride: int, padding: int) -> Any:
        edges = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
        return lax.reduce_window(x, -np.inf, lax.max, (1, 1, size, size), (1, 1, stride, stride), edges)

    def lstm(self, x: Any, w_input: Any, w_hidden: Any, bias: Any) -> Any:
        def step(state: Any, gates: Any) -> Any:
            state = self.lstm_cell(gates + state[0] @ w_hidden.T, state[1])
            return state, state[0]
        start = jnp.zeros((x.shape[1], w_hidden.shape[1]))
        return lax.scan(step, (start, start), self.linear(x, w_input, bias))[1]

    def cross_entropy(self, logits: Any, target: Any) -> Any:
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), target[:, None], 1).mean()


def trainer(task: Task, check: bool) -> Callable[[], tuple[Any, dict[str, Any]]]:
    """A step, which gives its loss, and its gradients too if it is to `check`."""
    def body(values: Any, states: Any, count: Any, inputs: Any) -> tuple[Trained, Any]:
        key = jax.random.fold_in(jax.random.key(0), count)

        def evaluate(loss: Loss, names: Any, values: Any, inputs: Any) -> Any:
            def objective(trained: Any) -> Any:
                p = Parameters(values | trained)
                return loss(Jax(not check, key), p, *inputs), p.written
            (value, written), gradients = jax.value_and_grad(objective,
                                                             has_aux=True)({name: values[name] for name in names})
            return value, written, gradients
        done = train(evaluate, jnp, task, values, states, count, inputs)
        return done if check else done._replace(gradients={}), count + 1

    compiled = jax.jit(body, donate_argnums=(0, 1, 2))
    values = {name: jnp.array(value) for name, value in task.values.items()}
    states = {name: optimizer.state(jnp.zeros_like, values) for name, optimizer in task.optimizers.items()}
    count, inputs = jnp.int32(1), [jnp.array(x) for x in task.inputs]

    def step() -> tuple[Any, dict[str, Any]]:
        nonlocal values, states, count
        (values, states, loss, gradients), count = compiled(values, states, count, inputs)
        return loss.block_until_ready(), gradients
    return step
