"""Functions of each element, and of two arrays, by compiled code: native/activations.inc and native/elementwise.inc.

All threads take part.
"""
from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from ..core.dispatch import OpDispatch
from ..core.mode import mode
from ..ops.base import OPS
from .buffer_reuse import place
from .compiled import CPU, assign, native, put, register, sure


def straight(x: Any) -> Any:
    """Return a contiguous transposed view, and the axes that undo it; (None, None) if the array has gaps or
    overlaps.
    """
    order = sorted(range(x.ndim), key=lambda axis: -x.strides[axis])
    y = x.transpose(order)
    return (y, np.argsort(order)) if y.flags.c_contiguous else (None, None)


def mapped(kernel: Any, x: Any, *numbers: float) -> Any:
    """Call a kernel of one array; the result has its memory layout. NotImplemented if it is not supported."""
    y, back = (x, None) if x.flags.c_contiguous else straight(x)
    if y is None or not x.size:
        return NotImplemented
    out = place(y)
    if kernel(y, out, *numbers) is not None:
        return NotImplemented
    return out if back is None else out.transpose(back)


def pulled(kernel: Any, g: Any, x: Any, *numbers: float) -> Any:
    """Call a backward kernel with a gradient, and the array that `mapped` accepted."""
    if x.flags.c_contiguous:
        out = np.empty(x.shape, x.dtype)
        sure(kernel(g if g.flags.c_contiguous else np.ascontiguousarray(g), x, out, *numbers))
        return out
    y, back = straight(x)
    out = np.empty(y.shape, y.dtype)
    sure(kernel(np.ascontiguousarray(g.transpose(np.argsort(back))), y, out, *numbers))
    return out.transpose(back)


def like_ufunc(call: Any, before: Any) -> Any:
    """Give the function the methods of NumPy's ufunc: formulas call `xp.add.at`."""
    for method in ("at", "reduce", "accumulate", "outer"):
        if hasattr(before, method):
            setattr(call, method, getattr(before, method))
    return call


def served(op: str, kernel: str, least: int = 1) -> Any:
    """Register a kernel, called without Python around it, for arrays of `least` elements."""
    before = OpDispatch.op(op).kernels[CPU]
    call = like_ufunc(native.map(kernel, before, least), before)
    put(op, call)
    return call


for _op in ("sigmoid", "erf", "relu"):
    served(_op, f"map_{_op}")                # NumPy takes several passes
for _op in ("exp", "rsqrt"):
    served(_op, f"map_{_op}", 1 << 12)
for _op in ("expm1", "log", "log1p", "tanh"):
    served(_op, f"map_{_op}", 1 << 16)          # NumPy has fast ones, too, but for one thread
for _op in ("sqrt", "negative", "absolute", "square", "reciprocal"):
    served(_op, f"map_{_op}")

# ── of two arrays ─────────────────────────────────────────────────────────────────────────────────────────────────────

SMALL = 1 << 11
add_scaled, weighted = (native.map(name, None, 1) for name in ("two_add_scaled", "two_lerp"))


def scaled(sign: int) -> Any:
    def add(a: Any, b: Any, scale: float) -> bool:
        """Run a += scale · b, or −=; return True if the kernel did it."""
        return type(b) is np.ndarray and a.shape == b.shape and add_scaled(a, b, a, sign * scale) is not NotImplemented
    return add


for _op in OPS.values():
    if hasattr(native, f"two_{_op.opname}") and _op.arity == 2:
        _call, _sign = served(_op.opname, f"two_{_op.opname}"), {"{} + {}": 1, "{} − {}": -1}.get(_op.notation)
        _call.writes, _call.scaled = True, scaled(_sign) if _sign else None


@register("lerp")
def lerp(a: Any, b: Any, t: Any) -> Any:
    if type(t) not in (int, float) or a.size < SMALL or a.shape != b.shape:
        return NotImplemented
    near = (a, b) if -0.5 < t < 0.5 else (b, a)                  # the nearer end first
    return weighted(*near, place(a), t if near[0] is a else 1 - t)


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
