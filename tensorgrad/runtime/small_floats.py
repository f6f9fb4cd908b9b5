"""Conversions between NumPy's numbers and dtypes that NumPy lacks: bfloat16, float8 and complex32.

An array of them has a NumPy dtype of the kind "V" with one field of bytes (`dtype.bfloat16.numpy`). NumPy moves such
elements but refuses to compute with them; ops compute in float32, or complex64. Conversion of numbers rounds once, to
the nearest and halves to even, from float32, as PyTorch does:

    bfloat16        the upper half of a float32
    complex32       two numbers of float16: `parts` views them
    float8_e4m3fn   has no infinity: numbers beyond the largest become the largest
    float8_e5m2     rounds to infinity beyond its largest number
    …fnuz           have neither infinity nor −0: what is too large becomes NaN
    float8_e8m0fnu  powers of 2, without sign and zero
"""
from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..dtype import FROM_NUMPY, NAMED, bfloat16, complex32, complex64, holds_complex
from ..messages.warn_once import warn
from .native import native

BLOCK = 1 << 14         # elements that fit into the cache with their intermediate values
SINGLE = np.dtype(np.float32)
BFLOAT16 = bfloat16.numpy
HALVES = {np.dtype(np.float16): 0, BFLOAT16: 1}     # the compiled kernels' number for each
BYTES, BITS = np.dtype(np.uint8), np.dtype(np.uint16)
COMPLEX32 = complex32.numpy
EXPERIMENTAL = "ComplexHalf support is experimental and many operators don't support it yet."
# complex numbers as records, whose fields are views
PAIRS = {COMPLEX32: np.dtype([("real", "f2"), ("imag", "f2")]),
         complex64.numpy: np.dtype([("real", "f4"), ("imag", "f4")])}


def convert(x: Any, dtype: Any) -> Any:
    """Return a copy of a NumPy array in a dtype; either dtype may be one that NumPy cannot convert."""
    if x.dtype == (dtype := np.dtype(dtype)):
        return x.copy(order="K")
    if x.dtype == COMPLEX32 and dtype.kind in "iufV":
        return convert(parts(x)["real"], dtype)
    if x.dtype.char in "Ve" and dtype is SINGLE:
        return widen(x)
    if dtype.char == "V" or dtype.char == "e" and x.dtype is SINGLE:
        return narrow(wide(x), dtype)
    return wide(x).astype(dtype)


def converted(x: Any, dtype: Any) -> Any:
    """Return a NumPy array in a dtype: itself if it has it."""
    return x if x.dtype == dtype else convert(x, dtype)


def computed(dtype: Any) -> Any:
    """Return the dtype that ops compute in for a dtype of at most 16 bits a number."""
    return complex64.numpy if holds_complex(dtype) else SINGLE


def parts(x: Any) -> Any:
    """Return an array of complex32 or complex64 as records, whose fields `real` and `imag` are views of its memory."""
    return x.view(PAIRS[x.dtype])


def combine(ufunc: Any, a: Any, b: Any, out: Any = None) -> Any:
    """Run ufunc(a, b, out=out) on arrays of any dtype, in the dtype of a; b may be a number."""
    if a.dtype.char not in "Ve":
        return ufunc(a, b, out=out)
    found = narrow(ufunc(widen(a), widen(b) if getattr(b, "dtype", SINGLE).char in "Ve" else b), a.dtype)
    if out is None:
        return found
    out[...] = found
    return out


def wide(x: Any) -> Any:
    """Return an array, or a number, that NumPy computes with: float32 in place of bfloat16, complex64 of complex32."""
    return widen(x) if getattr(x, "dtype", SINGLE).kind == "V" else x


def known(x: Any) -> Any:
    """Return a NumPy array, seen as an array of our dtype if it is one of ml_dtypes'."""
    if x.dtype.kind in "Vf" and x.dtype.fields is None and (d := NAMED.get(x.dtype.name)) is not None:
        return x if d.numpy.kind != "V" else x.view(d.numpy)
    return x


def fill(array: Any, values: Any) -> None:
    """Run array[...] = values, for an array of any dtype."""
    if array.dtype.kind == "V" or getattr(values, "dtype", SINGLE).kind == "V":
        values = converted(np.asarray(values), array.dtype)
    array[...] = values


def _in_pairs(x: Any, dtype: Any) -> Any:
    """Return complex numbers in another dtype of `PAIRS`, part by part; those too large become infinite."""
    if x.flags.c_contiguous and x.ndim:
        found = convert(x.view(PAIRS[x.dtype]["real"]), PAIRS[dtype]["real"])
        return found.view(dtype)
    out = np.empty_like(x, dtype)
    for name in ("real", "imag"):
        parts(out)[name][...] = convert(parts(x)[name], PAIRS[dtype][name])
    return out


# ── to float32 ────────────────────────────────────────────────────────────────────────────────────────────────────────


def widen(x: Any) -> Any:
    """Return the values of bfloat16, float8 or float16 as float32, those of complex32 as complex64."""
    upper = HALVES.get(x.dtype)
    if upper is None and x.dtype == COMPLEX32:
        return _in_pairs(x, complex64.numpy)
    if upper is None:
        return np.take(_decoded(x.dtype), x.view(BYTES), out=np.empty_like(x, SINGLE), mode="clip")
    if native is not None and x.flags.c_contiguous and x.ndim:
        out = np.empty(x.shape, SINGLE)
        if native.widen(x.view(BYTES), out, upper) is None:
            return out
    if not upper:
        return x.astype(SINGLE)
    bits = x.view(BITS).astype(np.uint32)
    return np.left_shift(bits, 16, out=bits).view(SINGLE)


@cache
def _decoded(dtype: Any) -> Any:
    """Return the values of all 256 patterns of a float8 dtype."""
    name = FROM_NUMPY[dtype].name
    bits = np.arange(256)
    if name == "float8_e8m0fnu":
        return np.where(bits == 255, np.nan, 2.0 ** (np.minimum(bits, 254) - 127)).astype(SINGLE)
    digits = int(name[10])                                  # of the mantissa: float8_e4m3fn has 3
    exponent, mantissa = (bits & 127) >> digits, bits & (1 << digits) - 1
    unsigned_zero = name.endswith("uz")
    bias = (1 << 6 - digits) - (0 if unsigned_zero else 1)
    values = np.where(exponent > 0, 2.0 ** (exponent - bias) * (1 + mantissa / (1 << digits)),
                      2.0 ** (1 - bias) * (mantissa / (1 << digits)))
    values = np.where(bits > 127, -values, values)
    if unsigned_zero:
        values[128] = np.nan
    elif name == "float8_e4m3fn":
        values[[127, 255]] = np.nan
    else:
        values[[124, 252]] = np.inf, -np.inf
        values[[125, 126, 127, 253, 254, 255]] = np.nan
    return values.astype(SINGLE)


# ── from numbers ──────────────────────────────────────────────────────────────────────────────────────────────────────


def narrow(x: Any, dtype: Any) -> Any:
    """Round numbers to bfloat16, float8, float16 or complex32, by way of float32."""
    if dtype == COMPLEX32:
        warn(EXPERIMENTAL)
        return _in_pairs(x.astype(complex64.numpy, copy=False), dtype)
    if x.dtype.kind == "c":
        x = x.real
    if x.dtype != SINGLE:
        x = x.astype(SINGLE)
    upper = HALVES.get(dtype)
    if upper is None:
        return _encoded(x, dtype)
    if native is not None and x.flags.c_contiguous and x.ndim:
        out = np.empty(x.shape, dtype)
        if native.narrow(x, out.view(BYTES), upper) is None:
            return out
    if not upper:
        return x.astype(dtype)
    out = np.empty_like(x, dtype)
    if x.size <= BLOCK or not x.flags.c_contiguous:
        _round(x, out.view(BITS))
    else:
        line, bits = x.reshape(-1), out.view(BITS).reshape(-1)
        for start in range(0, x.size, BLOCK):
            _round(line[start:start + BLOCK], bits[start:start + BLOCK])
    return out


def _round(x: Any, out: Any) -> None:
    """Write the upper halves of floats, rounded to the nearest and halves to even; NaN stays NaN."""
    bits = x.view(np.uint32)
    upper = np.right_shift(bits, 16)
    upper &= 1
    upper += 0x7fff
    upper += bits
    upper >>= 16
    out[...] = upper
    if (wrong := np.isnan(x)).any():
        out[wrong] = 0x7fc0


def _encoded(x: Any, dtype: Any) -> Any:
    """Look float8 patterns up by the 13 upper bits of a float32, and whether any of the other bits is set."""
    bits = x.view(np.uint32)
    places = (bits >> 19 << 1) + ((bits & 0x7ffff) > 0)
    out = np.empty_like(x, dtype)
    np.take(_codes(dtype), places, out=out.view(BYTES), mode="clip")
    return out


@cache
@np.errstate(all="ignore")
def _codes(dtype: Any) -> Any:
    """Return the float8 patterns for all upper halves of a float32 (see `_encoded`)."""
    places = np.arange(1 << 14, dtype=np.uint32)
    x = ((places >> 1 << 19) + (places & 1)).view(SINGLE)
    values = _decoded(dtype)
    d = FROM_NUMPY[dtype]
    finite = np.isfinite(values[:128] if d.is_signed else values)
    positive = values[:len(finite)][finite].astype(np.float64)
    size = np.abs(x.astype(np.float64))
    below = np.clip(np.searchsorted(positive, size, side="right") - 1, 0, len(positive) - 1)
    step = np.append(np.diff(positive), positive[-1] - positive[-2] if d.is_signed else positive[-1])
    part = (size - positive[below]) / step[below]
    if d.is_signed:
        up = (part > 0.5) | (part == 0.5) & (below % 2 == 1)
    else:                                   # float8_e8m0fnu rounds up at halves, and between its two smallest numbers
        up = np.where(below > 0, part >= 0.5, part > 0)
    codes = below + up
    largest, name = len(positive) - 1, d.name
    over, nan = (codes > largest) | ~np.isfinite(size), np.isnan(x)
    if name == "float8_e4m3fn":
        codes[over] = largest
    elif name == "float8_e5m2":
        codes[over] = 124
    if name.endswith("uz"):
        negative = np.signbit(x) & (codes > 0)
        codes = np.where(nan | over, 128, codes + 128 * negative)
    elif d.is_signed:
        codes = np.where(nan, 127, codes) + 128 * np.signbit(x)
    else:
        codes = np.where(nan | over, 255, codes)
    return codes.astype(np.uint8)
