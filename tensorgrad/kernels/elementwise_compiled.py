"""Functions of each element, and of two arrays, by compiled code: native/activations.inc and native/elementwise.inc. All threads take part."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..dispatch import OpDispatch
from .compiled import CPU, native, put, sure


def straight(x: Any) -> Any:
    """The array with its axes in the order of its memory, and the way back to theirs; (None, None) if it has gaps or overlaps."""
    order = sorted(range(x.ndim), key=lambda axis: -x.strides[axis])
    y = x.transpose(order)
    return (y, np.argsort(order)) if y.flags.c_contiguous else (None, None)


def mapped(kernel: Any, x: Any, *numbers: float) -> Any:
    """A kernel of one array, laid out as that; NotImplemented where it does not serve it."""
    y, back = (x, None) if x.flags.c_contiguous else straight(x)
    if y is None or not x.size:
        return NotImplemented
    out = np.empty(y.shape, y.dtype)
    if kernel(y, out, *numbers) is not None:
        return NotImplemented
    return out if back is None else out.transpose(back)


def pulled(kernel: Any, g: Any, x: Any, *numbers: float) -> Any:
    """A kernel of a gradient and of what `mapped` served."""
    if x.flags.c_contiguous:
        out = np.empty(x.shape, x.dtype)
        sure(kernel(g if g.flags.c_contiguous else np.ascontiguousarray(g), x, out, *numbers))
        return out
    y, back = straight(x)
    out = np.empty(y.shape, y.dtype)
    sure(kernel(np.ascontiguousarray(g.transpose(np.argsort(back))), y, out, *numbers))
    return out.transpose(back)


def like_ufunc(call: Any, before: Any) -> Any:
    """The function, with the methods that NumPy's has: formulas call `xp.add.at`."""
    for method in ("at", "reduce", "accumulate", "outer"):
        if hasattr(before, method):
            setattr(call, method, getattr(before, method))
    return call


def plain(op: str, least: int) -> None:
    """Register a function of one array for those of `least` elements."""
    before, kernel = OpDispatch.op(op).kernels[CPU], getattr(native, f"map_{op}")

    def call(x: Any) -> Any:
        if type(x) is not np.ndarray or x.size < least:
            return before(x)
        out = mapped(kernel, x)
        return before(x) if out is NotImplemented else out
    put(op, like_ufunc(call, before))


for _op in ("sigmoid", "erf", "relu"):
    plain(_op, 1 << 9)
for _op in ("exp", "rsqrt"):
    plain(_op, 1 << 12)
for _op in ("expm1", "log", "log1p", "tanh"):
    plain(_op, 1 << 16)          # NumPy has fast ones, too, but for one thread
for _op in ("sqrt", "negative", "absolute", "square", "reciprocal"):
    plain(_op, 1 << 15)

# ── of two ────────────────────────────────────────────────────────────────────────────────────────────────────────────

LARGE = 1 << 15


def served(a: Any, b: Any) -> Any:
    """The result's shape, its rows and columns, and each operand's steps from row to row and column to column; None for what does not suit the kernels."""
    large, small = (a, b) if a.size >= b.size else (b, a)
    shape, n = large.shape, large.size
    if small.ndim > large.ndim or not (a.flags.c_contiguous and b.flags.c_contiguous):
        return None
    if small.shape == shape:
        few = (n, 1)
    elif small.size == 1:
        few = (0, 0)
    elif (tail := small.shape[next(i for i, k in enumerate(small.shape) if k != 1):]) == shape[large.ndim - len(tail):]:
        n, few = small.size, (0, 1)                  # one row for all rows
    elif small.shape == (*shape[:-1], 1):
        n, few = shape[-1], (1, 0)                   # one number for each row
    else:
        return None
    return shape, large.size // n, n, ((n, 1, *few) if large is a else (*few, n, 1))


def of_two(op: str) -> None:
    before, kernel = OpDispatch.op(op).kernels[CPU], getattr(native, f"two_{op}")

    def call(a: Any, b: Any) -> Any:
        if type(a) is np.ndarray and (a.size >= LARGE or type(b) is np.ndarray and b.size >= LARGE):
            if type(b) is not np.ndarray and a.dtype.kind == "f" and type(b) in (int, float):
                b = np.array(b, a.dtype)
            if type(b) is np.ndarray and a.dtype is b.dtype and a.dtype.char in "fd" and (suits := served(a, b)) is not None:
                shape, rows, n, found = suits
                out = np.empty(shape, a.dtype)
                if kernel(a, b, out, rows, n, *found) is None:
                    return out
        return before(a, b)
    for method in ("at", "reduce", "accumulate"):       # of ufuncs: the ops' definitions use them
        setattr(call, method, getattr(before, method))
    put(op, like_ufunc(call, before))


for _op in ("add", "subtract", "multiply", "divide", "maximum", "minimum"):
    of_two(_op)
