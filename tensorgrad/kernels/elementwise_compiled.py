"""Functions of each element, and of two arrays, by compiled code: native/activations.inc and native/elementwise.inc. All threads take part."""
from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from ..autograd.mode import mode
from ..dispatch import OpDispatch
from .compiled import CPU, assign, native, place, put, register, sure


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
    out = place(y)
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
    plain(_op, 1)                # NumPy takes several passes
for _op in ("exp", "rsqrt"):
    plain(_op, 1 << 12)
for _op in ("expm1", "log", "log1p", "tanh"):
    plain(_op, 1 << 16)          # NumPy has fast ones, too, but for one thread
for _op in ("sqrt", "negative", "absolute", "square", "reciprocal"):
    plain(_op, 1 << 15)

# ── of two ────────────────────────────────────────────────────────────────────────────────────────────────────────────

LARGE, SMALL = 1 << 15, 1 << 11


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


def pairwise(kernel: Any, a: Any, b: Any, out: Any, *numbers: float) -> Any:
    """A kernel of two arrays, or an array and a number, written to `out` if that is given; None where it does not serve them."""
    if type(b) is not np.ndarray and a.dtype.kind == "f" and type(b) in (int, float):
        b = np.array(b, a.dtype)
    if type(b) is not np.ndarray or a.dtype is not b.dtype or a.dtype.char not in "fd" or (suits := served(a, b)) is None:
        return None
    shape, rows, n, found = suits
    if out is None:
        out = place(a) if a.shape == shape else np.empty(shape, a.dtype)
    return out if out.shape == shape and kernel(a, b, out, rows, n, *found, *numbers) is None else None


def scaled(sign: int) -> Any:
    def add_scaled(a: Any, b: Any, scale: float) -> bool:
        """a += scale · b, or −=. Whether that was done."""
        return type(b) is np.ndarray and a.shape == b.shape and pairwise(native.two_add_scaled, a, b, a, sign * scale) is not None
    return add_scaled


def of_two(op: str, sign: int = 0) -> None:
    before, kernel = OpDispatch.op(op).kernels[CPU], getattr(native, f"two_{op}")

    def call(a: Any, b: Any, out: Any = None) -> Any:
        if type(a) is np.ndarray and (a.size >= LARGE or type(b) is np.ndarray and b.size >= LARGE) and (found := pairwise(kernel, a, b, out)) is not None:
            return found
        return before(a, b) if out is None else before(a, b, out=out)
    call.writes, call.scaled = True, scaled(sign) if sign else None      # type: ignore[attr-defined]
    put(op, like_ufunc(call, before))


for _op, _sign in {"add": 1, "subtract": -1, "multiply": 0, "divide": 0, "maximum": 0, "minimum": 0}.items():
    of_two(_op, _sign)


@register("lerp")
def lerp(a: Any, b: Any, t: Any) -> Any:
    if type(t) not in (int, float) or a.size < SMALL or a.shape != b.shape:
        return NotImplemented
    near = (a, b) if -0.5 < t < 0.5 else (b, a)                  # the nearer end first
    found = pairwise(native.two_lerp, *near, place(a), t if near[0] is a else 1 - t)
    return NotImplemented if found is None else found


@register("clamp")
def clamp(x: Any, lo: Any, hi: Any) -> Any:
    lo, hi = -inf if lo is None else lo, inf if hi is None else hi
    if x.size < SMALL or type(lo) not in (int, float) or type(hi) not in (int, float) or not lo <= hi:
        return NotImplemented
    return mapped(native.map_hardtanh, x, lo, hi)


@register("copied")
def copied(x: Any, src: Any) -> Any:
    if mode.landing is not x or src.shape != x.shape or src.dtype is not x.dtype:
        return NotImplemented
    assign(x, src)
    return x
