"""Elementwise ops in terms of arrays: copies, the parts of complex numbers, and bounds in one pass over memory."""
from __future__ import annotations

from typing import Any

from .arrays import in_arrays


@in_arrays("cast")
def cast(xp: Any, x: Any, *, dtype: Any) -> Any:
    return x.copy(order="K") if x.dtype == dtype else xp.backend.cast(x, dtype)


@in_arrays("clone")
def clone(xp: Any, x: Any) -> Any:
    return x.copy(order="K")


@in_arrays("make_complex")
def make_complex(xp: Any, re: Any, im: Any) -> Any:
    out = xp.empty(xp.broadcast(re, im).shape, dtype="complex128" if re.dtype.itemsize == 8 else "complex64")
    out.real[...], out.imag[...] = re, im
    return out


@in_arrays("view_as_real")
def view_as_real(xp: Any, x: Any) -> Any:
    return x[..., None].view("float64" if x.dtype.itemsize == 16 else "float32")


@in_arrays("view_as_complex")
def view_as_complex(xp: Any, x: Any) -> Any:
    return x.view("complex128" if x.dtype.itemsize == 8 else "complex64")[..., 0]


@in_arrays("clamp")
def clamp(xp: Any, x: Any, lo: Any, hi: Any) -> Any:
    return xp.clip(x, lo, hi)
