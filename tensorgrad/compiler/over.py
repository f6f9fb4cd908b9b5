"""Elementwise ops that overwrite an operand: over[name](x, …, at=0) computes in the memory of x.

Results are those of the op's kernel for NumPy. Operands are float32 or float64 arrays with an axis, and numbers.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from math import pi, sqrt
from typing import Any

import numpy as np

from ..kernels.elementwise_numpy import HUGE
from ..runtime.thread_pool import elementwise

SLOPE = sqrt(2 / pi)                                       # of tanh's argument in gelu, at 0
LARGE, PIECE = 1 << 22, 1 << 16                            # elements beyond all caches, and in the second one


def by_ufunc(ufunc: Any) -> Callable[..., Any]:
    """Return a function of two operands that writes over the one with number `at`."""
    return lambda *operands, at=0: ufunc(*operands, out=operands[at])


def in_pieces(over: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a function that makes its passes over one piece of a large operand after the other.

    On 6 million elements, gelu_tanh takes 0.6 of the time, silu and hardswish 0.75, sigmoid 0.85.
    """
    @wraps(over)
    def call(x: Any, at: int = 0) -> Any:
        if x.size < LARGE or not x.flags.c_contiguous:
            return over(x)
        flat = x.reshape(-1)
        for start in range(0, x.size, PIECE):
            over(flat[start:start + PIECE])
        return x
    return call


def relu(x: Any, at: int = 0) -> Any:
    return hardtanh(x, 0, np.inf)


def hardtanh(x: Any, low: float, high: float, at: int = 0) -> Any:
    if x.size < HUGE:
        return x.clip(low, high, out=x)
    return elementwise(partial(np.clip, a_min=low, a_max=high), x, out=x, nanoseconds=0.25)


def leaky_relu(x: Any, slope: float, at: int = 0) -> Any:
    if not 0 <= slope <= 1:
        return np.where(x > 0, x, x * x.dtype.type(slope))
    return np.maximum(x, x * slope, out=x)


@in_pieces
def sigmoid(x: Any) -> Any:
    np.negative(x, out=x)
    np.exp(x, out=x)
    x += 1
    return np.divide(1, x, out=x)


@in_pieces
def silu(x: Any) -> Any:
    x *= sigmoid(x.copy())
    return x


@in_pieces
def gelu_tanh(x: Any) -> Any:
    t = x * x
    t *= 0.044715
    t += 1
    t *= x
    t *= SLOPE
    np.tanh(t, out=t)
    t += 1
    x *= t
    x *= 0.5
    return x


def tanh(x: Any, at: int = 0) -> Any:
    return np.tanh(x, out=x)


def hardsigmoid(x: Any, at: int = 0) -> Any:
    x += 3
    np.clip(x, 0, 6, out=x)
    x /= 6
    return x


@in_pieces
def hardswish(x: Any) -> Any:
    x *= hardsigmoid(x.copy())
    return x


OVER: dict[str, Callable[..., Any]] = {
    **{name: by_ufunc(getattr(np, name)) for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum")},
    **{each.__name__: each for each in (relu, hardtanh, leaky_relu, sigmoid, silu, gelu_tanh, tanh, hardsigmoid,
                                        hardswish)},
}
