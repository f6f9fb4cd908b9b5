"""Elementwise ops in terms of arrays: copies, the parts of complex numbers, and bounds in one pass over memory."""
from __future__ import annotations

from typing import Any

from ..dtype import complex32, holds_complex
from .arrays import in_arrays

REAL = {4: "float16", 8: "float32", 16: "float64"}          # dtypes of parts, by the sizes of complex numbers
COMPLEX = {2: complex32.numpy, 4: "complex64", 8: "complex128"}     # complex dtypes, by the sizes of parts


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


@in_arrays("real")
def real(xp: Any, x: Any) -> Any:
    return view_as_real(xp, x)[..., 0] if x.dtype.kind == "V" and holds_complex(x.dtype) else xp.real(x)


@in_arrays("imag")
def imag(xp: Any, x: Any) -> Any:
    return view_as_real(xp, x)[..., 1] if x.dtype.kind == "V" and holds_complex(x.dtype) else xp.imag(x)


@in_arrays("view_as_real")
def view_as_real(xp: Any, x: Any) -> Any:
    return x[..., None].view(REAL[x.dtype.itemsize])


@in_arrays("view_as_complex")
def view_as_complex(xp: Any, x: Any) -> Any:
    return x.view(COMPLEX[x.dtype.itemsize])[..., 0]


@in_arrays("clamp")
def clamp(xp: Any, x: Any, lo: Any, hi: Any) -> Any:
    return xp.clip(x, lo, hi)
