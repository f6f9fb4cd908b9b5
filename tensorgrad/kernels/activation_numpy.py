"""Activations on NumPy: block by block where the formula passes over its array many times, and softmax without looking for the largest element.

Found on one core, float32, a million elements: `relu` as the maximum with a number takes 0.34 ms, with an array of zeros 0.15; the gradient of
`silu` 2.4 ms whole, 0.8 in blocks; softmax of rows of 64, with `max` along the rows, takes twice as long as all the rest of it.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ..dispatch import OpDispatch
from ..ops.base import OPS
from .special_numpy import gelu, gelu_gradient, in_blocks

LARGE = 1 << 15


# ── element by element ────────────────────────────────────────────────────────────────────────────────────────────────


@OpDispatch.register("relu", "cpu")
def relu(x: Any) -> Any:
    out = np.zeros(x.shape, x.dtype)
    return np.maximum(x, out, out=out)


@OpDispatch.register("gelu", "cpu")
class Gelu:
    @staticmethod
    def forward(x: Any) -> Any:
        return (gelu(x), (x,)) if x.dtype.itemsize > 2 else NotImplemented

    @staticmethod
    def backward(g: Any, residual: Any, needs: Any) -> Any:
        return [gelu_gradient(g, *residual)]


def blockwise(name: str) -> None:
    """Run a formula of one array, and its gradient, in blocks."""
    op = OPS[name]

    class Blockwise:
        @staticmethod
        def forward(x: Any, **params: Any) -> Any:
            if x.size < LARGE or not x.flags.c_contiguous:
                return NotImplemented
            return in_blocks(lambda xp, x: op.forward(TABLE, x, **params), x), (x, params)

        @staticmethod
        def backward(g: Any, residual: Any, needs: Any) -> Any:
            x, params = residual
            return [in_blocks(lambda xp, g, x: op.grad_x(TABLE, g, x, **params), g, x)]
    OpDispatch.register(name, "cpu")(Blockwise)


TABLE = OpDispatch.backend("cpu").xp

for _name in ("silu", "mish", "softplus", "log_sigmoid", "elu", "celu", "gelu_tanh", "hardswish", "leaky_relu"):
    blockwise(_name)


# ── softmax ───────────────────────────────────────────────────────────────────────────────────────────────────────────

LIMITS = {np.dtype("float32"): np.float32(1e-20), np.dtype("float64"): np.float64(1e-200)}


def exponentials(x: Any) -> tuple[Any, Any, Any]:
    """exp(x − c) of the rows of a matrix, their sums, and c.

    c is 0 if no sum overflows or comes near to nothing, which is known once they are there; only then is the largest element of each row looked for.
    """
    e = np.exp(x)
    sums = row_sums(e)
    if sums.size and LIMITS[x.dtype] < sums.min() and sums.max() < np.inf:
        return e, sums, None
    top = x.max(axis=1)
    np.subtract(x, top[:, None], out=e)
    np.exp(e, out=e)
    return e, row_sums(e), top


def row_sums(x: Any) -> Any:
    return x @ np.ones(x.shape[1], x.dtype)


def rows_of(x: Any, axis: int) -> Any:
    """The array as a matrix with `axis` as its rows, or None if that would be no view, or there is nothing to compute."""
    if axis != x.ndim - 1 or x.dtype not in LIMITS or not x.flags.c_contiguous or not x.size:
        return None
    return x.reshape(-1, x.shape[-1])


@OpDispatch.register("softmax", "cpu")
class Softmax:
    @staticmethod
    def forward(x: Any, *, axis: int) -> Any:
        rows = rows_of(x, axis)
        if rows is None:
            return NotImplemented
        e, sums, _ = exponentials(rows)
        e *= (1 / sums)[:, None]
        y = e.reshape(x.shape)
        return y, (y,)

    @staticmethod
    def backward(g: Any, residual: Any, needs: Any) -> Any:
        (y,) = residual
        rows, g_rows = y.reshape(-1, y.shape[-1]), g.reshape(-1, y.shape[-1])
        out = g_rows - np.einsum("ij,ij->i", g_rows, rows)[:, None]
        out *= rows
        return [out.reshape(y.shape)]


@OpDispatch.register("log_softmax", "cpu")
class LogSoftmax:
    @staticmethod
    def forward(x: Any, *, axis: int) -> Any:
        rows = rows_of(x, axis)
        if rows is None:
            return NotImplemented
        e, sums, top = exponentials(rows)
        logs = np.log(sums) if top is None else np.log(sums) + top
        y = (rows - logs[:, None]).reshape(x.shape)
        return y, (e, 1 / sums, y)

    @staticmethod
    def backward(g: Any, residual: Any, needs: Any) -> Any:
        e, share, y = residual
        rows = g.reshape(e.shape)
        out = e * (row_sums(rows) * share)[:, None]
        np.subtract(rows, out, out=out)
        return [out.reshape(y.shape)]
