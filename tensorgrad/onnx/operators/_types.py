"""ONNX's numbers of data types as dtypes, and conversions between them."""
from __future__ import annotations

from typing import Any

from ...api import clamp, isfinite, where
from ...dtype import NAMED
from ...dtype import dtype as Dtype
from ..errors import InvalidModelError

NUMBERS = """float32=1 uint8=2 int8=3 uint16=4 int16=5 int32=6 int64=7 bool=9 float16=10 float64=11 uint32=12 uint64=13
             complex64=14 complex128=15 bfloat16=16 float8_e4m3fn=17 float8_e4m3fnuz=18 float8_e5m2=19
             float8_e5m2fnuz=20 float8_e8m0fnu=24"""
TYPES: dict[int, Dtype] = {int(number): NAMED[name] for name, number in (word.split("=") for word in NUMBERS.split())}


def dtype_of(number: int) -> Dtype:
    """Return the dtype that a number of ONNX's means. InvalidModelError if there is none."""
    if number not in TYPES:
        raise InvalidModelError(f"the data type {number} is not supported")
    return TYPES[number]


def cast(x: Any, number: int, saturate: bool = True) -> Any:
    """Return a tensor in another data type; numbers that float8 cannot hold become its largest."""
    target = dtype_of(number)
    if saturate and target.is_floating_point and target.itemsize == 1 and number != 24:
        most = {17: 448.0, 18: 240.0, 19: 57344.0, 20: 57344.0}[number]
        x = where(isfinite(x), clamp(x, -most, most), x)
    return x.to(target)
