"""Reductions by compiled code, native/reduce.inc: in blocks, added up in double precision, so that long sums keep their
digits.
"""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..core.dispatch import OpDispatch
from ..ops.reduction import axes_of, count_of
from .compiled import CPU, done, native, put, whole
from .reduction_arrays import rounded, wide

LARGE, SMALL = 1 << 12, 1 << 7
SUM, SQUARES, GREATEST, LEAST = range(4)


def before(op: str) -> Any:
    return OpDispatch.op(op).kernels[CPU]


def reduced(x: Any, axis: Any, keepdims: bool, kind: int, divisor: float = 1.0, centre: Any = None) -> Any:
    """Return the result for large contiguous arrays, reduced along adjacent axes or the first and last; else None."""
    if not x.flags.c_contiguous or x.dtype.char not in "fd":
        return None
    ndim, n = x.ndim, x.size
    if axis is None and not keepdims or ndim == 1:
        out = np.empty((1,) if keepdims else (), x.dtype)
        return out if native.reduce(x, centre, out, 1, n, 1, kind, divisor) is None else None
    if axis == -1 or axis == ndim - 1:
        n = x.shape[-1]
        out = np.empty((*x.shape[:-1], 1) if keepdims else x.shape[:-1], x.dtype)
        return out if native.reduce(x, centre, out, out.size, n, 1, kind, divisor) is None else None
    if axis == 0:
        out = np.empty((1, *x.shape[1:]) if keepdims else x.shape[1:], x.dtype)
        if out.size >= 8:
            return out if native.reduce(x, centre, out, 1, x.shape[0], out.size, kind, divisor) is None else None
    axes = sorted(axes_of(x.ndim, axis))
    first = next((a for a in axes if x.shape[a] != 1), axes[0]) if axes else 0
    stop = next((a + 1 for a in reversed(axes) if x.shape[a] != 1), first + 1)
    gap = [a for a in range(first, stop) if a not in axes and x.shape[a] != 1]
    shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes]
    if not gap:
        outer, n, inner = prod(x.shape[:first]), prod(x.shape[first:stop]), prod(x.shape[stop:])
        if 1 < inner < 8 or not axes:
            return None
        out = np.empty(shape, x.dtype)
        return out if native.reduce(x, centre, out, outer, n, inner, kind, divisor) is None else None
    if centre is None and kind != SQUARES and stop == x.ndim and prod(x.shape[gap[-1] + 1:]) >= 8:
        last = reduced(x, tuple(range(gap[-1] + 1, x.ndim)), True, kind)
        return ((np.add, None, np.maximum, np.minimum)[kind].reduce(last, axis=tuple(axes)).reshape(shape)
                / x.dtype.type(divisor))
    return None


def sums() -> None:
    numpy_sum, numpy_mean, numpy_variance, numpy_deviation, numpy_norm = map(before,
                                                                             ("sum", "mean", "variance", "deviation",
                                                                              "vector_norm"))

    def total(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        if x.size < LARGE or dtype is not None or (out := reduced(x, axis, keepdims, SUM)) is None:
            return numpy_sum(x, axis, dtype, keepdims)
        return out

    def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        if x.size < LARGE or (out := reduced(x, axis, keepdims, SUM, count_of(x.shape, axis))) is None:
            return numpy_mean(x, axis, keepdims)
        return out

    def variance(x: Any, *, axis: Any = None, correction: float = 1, keepdims: bool = False) -> Any:
        degrees = count_of(x.shape, axis) - correction
        if (x.size < LARGE or degrees <= 0
                or (centre := reduced(x, axis, True, SUM, count_of(x.shape, axis))) is None
                or (out := reduced(x, axis, keepdims, SQUARES, degrees, centre)) is None):
            return numpy_variance(x, axis=axis, correction=correction, keepdims=keepdims)
        return out

    def deviation(x: Any, *, axis: Any = None, correction: float = 1, keepdims: bool = False) -> Any:
        if x.size >= LARGE:
            out = np.sqrt(variance(x, axis=axis, correction=correction, keepdims=keepdims))
            if np.fmax.reduce(out, None) < np.inf:
                return out
        return numpy_deviation(x, axis=axis, correction=correction, keepdims=keepdims)

    def vector_norm(x: Any, *, ord: float = 2, axis: Any = None, keepdims: bool = False) -> Any:
        if ord == 2 and x.size >= LARGE and x.dtype.char in "fd":
            centre = np.zeros([1 if i in axes_of(x.ndim, axis) else n for i, n in enumerate(x.shape)], x.dtype)
            if (out := reduced(x, axis, keepdims, SQUARES, 1.0, centre)) is not None:
                return np.sqrt(out)
        return numpy_norm(x, ord=ord, axis=axis, keepdims=keepdims)

    for op, kernel in (("sum", total), ("mean", mean), ("variance", variance), ("deviation", deviation),
                       ("vector_norm", vector_norm)):
        put(op, kernel)


def extremes(op: str, kind: int) -> None:
    numpy_kernel = before(op)

    def extreme(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        if x.size < LARGE or (out := reduced(x, axis, keepdims, kind)) is None:
            return numpy_kernel(x, axis, keepdims)
        return out
    put(op, extreme)


def of_all(op: str, kind: int) -> None:
    numpy_kernel = before(op)

    def extreme(x: Any) -> Any:
        if x.size < LARGE or (out := reduced(x, None, False, kind)) is None:
            return numpy_kernel(x)
        return out
    put(op, extreme)


def places(x: Any, axis: int, keepdims: bool, kind: int, values: bool) -> Any:
    """Return the extremes along the last axis, if wanted, and their positions; None for unsupported arrays."""
    if axis % x.ndim != x.ndim - 1 or not x.flags.c_contiguous or x.dtype.char not in "fd":
        return None
    shape = (*x.shape[:-1], 1) if keepdims else x.shape[:-1]
    top, at = np.empty(shape, x.dtype) if values else None, np.empty(shape, np.int64)
    return (top, at) if native.extremes(x, top, at, x.size // x.shape[-1], x.shape[-1], kind) is None else None


def places_of(op: str, with_values: str, kind: int) -> None:
    numpy_place, numpy_both = before(op), before(with_values)

    def place(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        if x.size < LARGE or axis is None or (found := places(x, axis, keepdims, kind, False)) is None:
            return numpy_place(x, axis, keepdims)
        return found[1]

    def both(x: Any, *, axis: int, keepdims: bool = False) -> Any:
        if x.size < LARGE or (found := places(x, axis, keepdims, kind, True)) is None:
            return numpy_both(x, axis=axis, keepdims=keepdims)
        return found
    put(op, place)
    put(with_values, both)


sums()
for _op, _kind in (("amax", GREATEST), ("max", GREATEST), ("amin", LEAST), ("min", LEAST)):
    extremes(_op, _kind)
of_all("greatest_of_all", GREATEST)
of_all("least_of_all", LEAST)
places_of("argmax", "max_dim", GREATEST)
places_of("argmin", "min_dim", LEAST)


# ── running sums ──────────────────────────────────────────────────────────────────────────────────────────────────────


def cumsum(x: Any, axis: Any = None, dtype: Any = None) -> Any:
    if dtype is not None or axis is None:           # as formulas call NumPy's
        return np.cumsum(x, axis, dtype)
    if not x.ndim or x.size < SMALL or x.dtype.char not in "fd":
        return rounded(np.cumsum(x, axis, wide(x)), x)
    axis, out = axis % x.ndim, np.empty(x.shape, x.dtype)
    return done(native.cumsum(whole(x), out, prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1:])), out)


put("cumsum", cumsum)
