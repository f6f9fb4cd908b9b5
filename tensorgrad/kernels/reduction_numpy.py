"""Reductions and running results where NumPy's own function is slow on large arrays.

A sum is a product with a vector of ones: BLAS reads memory three times as fast as `add.reduce`. Rows of ones are short,
    and their sums are
added up pairwise, so that no digits are lost. Running results along an axis that is not the last are row operations.
"""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..core.dispatch import OpDispatch
from ..ops.reduction import Std, Var, VectorNorm, axes_of, count_of
from ..storage.cpu import NumpyStorage
from .elementwise_numpy import logaddexp
from .reduction_arrays import rounded, wide

LARGE, ROW = 1 << 12, 1 << 11
DOTS = range(32, 1 << 13)       # lengths of rows that BLAS multiplies
add = np.add.reduce


class NumpyFirst:
    """An `xp` with NumPy's own reductions, for arrays that these kernels leave to the definitions."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name, None) or getattr(NumpyStorage.xp, name)


numpy_first = NumpyFirst()


def register(op: str) -> Any:
    return OpDispatch.register(op, "cpu")


ONES = {np.dtype(d): np.ones(ROW, d) for d in ("float32", "float64")}


def ones(n: int, like: Any) -> Any:
    """Return n ones of an array's dtype, float32 or float64; shared, read-only."""
    return ONES[like.dtype][:n] if n <= ROW else np.ones(n, like.dtype)


# ── sums ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def dots(x: Any, y: Any) -> Any:
    """Σ x y along the last axis: by BLAS, unless rows are so short that each call of it takes longer, or so long that
    its threads would share each.
    """
    return np.vecdot(x, y) if x.shape[-1] in DOTS else np.einsum("...i,...i->...", x, y)


@register("sum")
def total(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    if dtype is None and x.dtype in ONES:
        if x.size < LARGE or not x.flags.c_contiguous:
            return add(x, axis, None, None, keepdims)
        axes = axes_of(x.ndim, axis)
        out = _through_blas(x, axes)
        if out is None:
            return add(x, axis, None, None, keepdims)
        return out.reshape([1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes])
    if axis is None and dtype is None and x.dtype.kind == "b" and not keepdims:
        return np.int64(np.count_nonzero(x))
    return rounded(add(x, axis, dtype or wide(x), None, keepdims), x)


def _through_blas(x: Any, axes: tuple[int, ...]) -> Any:
    """The sum in another shape, or None if the axes do not suit."""
    runs: list[list[Any]] = []        # neighbouring axes that are all reduced, or all kept: [reduced, length]
    for i, n in enumerate(x.shape):
        if runs and runs[-1][0] == (i in axes):
            runs[-1][1] *= n
        elif n != 1:
            runs.append([i in axes, n])
    pattern = "".join("r" if reduced else "k" for reduced, _ in runs)
    lengths = [n for _, n in runs]
    if pattern == "r":
        return _sum_rows(x.reshape(1, -1))
    if pattern == "kr":
        return _sum_rows(x.reshape(lengths)) if lengths[1] >= 8 else None
    if pattern == "rk":
        return _sum_columns(x.reshape(lengths)) if lengths[1] >= 8 else None
    if pattern == "rkr" and lengths[2] >= 8:
        return np.add.reduce(_sum_rows(x.reshape(-1, lengths[2])).reshape(lengths[:2]), axis=0)
    return None


def _sum_rows(x: Any) -> Any:
    """Sums along the last axis of a matrix."""
    m, n = x.shape
    if n <= ROW:
        return x @ ONES[x.dtype][:n]
    whole = n // ROW * ROW
    parts = x[:, :whole].reshape(m, -1, ROW) @ ONES[x.dtype]
    out = np.add.reduce(parts, axis=1)
    return out if whole == n else out + np.add.reduce(x[:, whole:], axis=1)


def _sum_columns(x: Any) -> Any:
    """Sums along the first axis of a matrix."""
    m, n = x.shape
    if m <= ROW:
        return ONES[x.dtype][:m] @ x
    whole = m // ROW * ROW
    out = np.add.reduce(ONES[x.dtype] @ x[:whole].reshape(-1, ROW, n), axis=0)
    return out if whole == m else out + ONES[x.dtype][:m - whole] @ x[whole:]


@register("mean")
def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    if x.dtype in ONES:
        return total(x, axis, None, keepdims) / (x.size if axis is None else count_of(x.shape, axis))
    dtype = np.float32 if x.dtype.itemsize == 2 else None
    return rounded(add(x, axis, dtype, None, keepdims) / count_of(x.shape, axis), x)


@register("variance")
def variance(x: Any, *, axis: Any = None, correction: float = 1, keepdims: bool = False) -> Any:
    if x.dtype not in ONES:
        return Var.forward(numpy_first, x, axis=axis, correction=correction, keepdims=keepdims)
    count = x.size if axis is None else count_of(x.shape, axis)
    away = x - total(x, axis, None, True) / count
    return total(np.square(away), axis, None, keepdims) / max(count - correction, 0)


@register("deviation")
def deviation(x: Any, *, axis: Any = None, correction: float = 1, keepdims: bool = False) -> Any:
    if x.dtype not in ONES:
        return Std.forward(numpy_first, x, axis=axis, correction=correction, keepdims=keepdims)
    if x.dtype.char == "d" or x.size >= LARGE:
        out = np.sqrt(variance(x, axis=axis, correction=correction, keepdims=keepdims))
        if x.dtype.char == "d" or np.fmax.reduce(out, None) < np.inf:
            return out
    return np.sqrt(variance(x.astype(np.float64), axis=axis, correction=correction, keepdims=keepdims)).astype(x.dtype)


@register("vector_norm")
def vector_norm(x: Any, *, ord: float = 2, axis: Any = None, keepdims: bool = False) -> Any:
    if ord != 2 or x.dtype not in ONES:
        return VectorNorm.forward(numpy_first, x, ord=ord, axis=axis, keepdims=keepdims)
    return np.sqrt(total(np.square(x), axis, None, keepdims))


@register("prod")
def product(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Halves are multiplied with each other, as long as the last axis can be halved."""
    axes, last = axes_of(x.ndim, axis), x.ndim - 1
    if x.size >= LARGE and x.dtype.kind in "fc" and dtype is None and last in axes:
        while x.shape[-1] > 16 and x.shape[-1] % 2 == 0:
            half = x.shape[-1] // 2
            x = x[..., :half] * x[..., half:]
    return rounded(np.multiply.reduce(x, axis=axis, dtype=dtype or wide(x), keepdims=keepdims), x)


# ── the greatest and the least, and where they are ────────────────────────────────────────────────────────────────────


for _op in ("amax", "max"):
    register(_op)(lambda x, axis=None, keepdims=False: np.maximum.reduce(x, axis, None, None, keepdims))
for _op in ("amin", "min"):
    register(_op)(lambda x, axis=None, keepdims=False: np.minimum.reduce(x, axis, None, None, keepdims))
register("greatest_of_all")(lambda x: np.maximum.reduce(x, None))
register("least_of_all")(lambda x: np.minimum.reduce(x, None))


def _first(x: Any, extreme: Any, axis: int, keepdims: bool, fallback: Any) -> Any:
    """The first place along an axis where x equals its extreme."""
    n = x.shape[axis]
    if axis % x.ndim == x.ndim - 1 or x.size < LARGE or n > 1 << 20 or bool((extreme != extreme).any()):
        return fallback(x, axis=axis, keepdims=keepdims)
    weight = np.arange(n, 0, -1, dtype=np.int32).reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    return (n - np.maximum.reduce((x == extreme) * weight, axis=axis, keepdims=keepdims)).astype(np.int64)


@register("max_dim")
def max_dim(x: Any, *, axis: int, keepdims: bool = False) -> Any:
    if x.size < LARGE:
        return np.maximum.reduce(x, axis, None, None, keepdims), x.argmax(axis, keepdims=keepdims)
    values = np.maximum.reduce(x, axis=axis, keepdims=True)
    return values if keepdims else values.squeeze(axis), _first(x, values, axis, keepdims, np.argmax)


@register("min_dim")
def min_dim(x: Any, *, axis: int, keepdims: bool = False) -> Any:
    if x.size < LARGE:
        return np.minimum.reduce(x, axis, None, None, keepdims), x.argmin(axis, keepdims=keepdims)
    values = np.minimum.reduce(x, axis=axis, keepdims=True)
    return values if keepdims else values.squeeze(axis), _first(x, values, axis, keepdims, np.argmin)


@register("argmax")
def argmax(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    if axis is None or x.size < LARGE:
        return x.argmax(axis, keepdims=keepdims)
    return _first(x, np.maximum.reduce(x, axis=axis, keepdims=True), axis, keepdims, np.argmax)


@register("argmin")
def argmin(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    if axis is None or x.size < LARGE:
        return x.argmin(axis, keepdims=keepdims)
    return _first(x, np.minimum.reduce(x, axis=axis, keepdims=True), axis, keepdims, np.argmin)


# ── running results ───────────────────────────────────────────────────────────────────────────────────────────────────


def _running(step: Any, accumulate: Any, x: Any, axis: int, dtype: Any) -> Any:
    """Row by row, where rows are long."""
    dtype = np.dtype(dtype or wide(x) or x.dtype)
    n = x.shape[axis]
    if not n or prod(x.shape[axis % x.ndim + 1:]) < 64:
        return accumulate(x, axis=axis, dtype=dtype)
    out = np.empty(x.shape, dtype)
    rows, source = np.swapaxes(out, 0, axis), np.swapaxes(x, 0, axis)
    rows[0] = source[0]
    for i in range(1, n):
        step(rows[i - 1], source[i], out=rows[i])
    return out


@register("cumsum")
def cumsum(x: Any, axis: int, dtype: Any = None) -> Any:
    return rounded(_running(np.add, np.add.accumulate, x, axis, dtype), x)


@register("cumprod")
def cumprod(x: Any, axis: int, dtype: Any = None) -> Any:
    return rounded(_running(np.multiply, np.multiply.accumulate, x, axis, dtype), x)


@register("logcumsumexp")
def logcumsumexp(x: Any, *, axis: int) -> Any:
    if x.dtype.kind == "c":
        from ..ops.cumulative import Logcumsumexp
        return Logcumsumexp.forward(numpy_first, x, axis=axis)

    def step(a: Any, b: Any, out: Any) -> None:
        out[...] = logaddexp(a, b)
    return _running(step, np.logaddexp.accumulate, x, axis, x.dtype)


def _running_extreme(function: Any, x: Any, axis: int) -> Any:
    values = function.accumulate(x, axis=axis)
    place = np.arange(x.shape[axis]).reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    return values, np.maximum.accumulate(((x == values) | (x != x)) * place, axis=axis)


@register("cummax")
def cummax(x: Any, *, axis: int) -> Any:
    return _running_extreme(np.maximum, x, axis)


@register("cummin")
def cummin(x: Any, *, axis: int) -> Any:
    return _running_extreme(np.minimum, x, axis)
