"""Dtypes of operands and results: the common dtype, the dtype of Python numbers, and the precision of results."""
from __future__ import annotations

from typing import Any

from numpy import asarray

from ..dtype import (
    FROM_NUMPY,
    PYTHON,
    bfloat16,
    float16,
    float32,
    of_number,
    result_dtype,
)
from ..dtype import dtype as Dtype
from ..ops.base import HALVES
from ..runtime.small_floats import COMPLEX32, convert
from .tape import TensorBase

SINGLE = float32.numpy
HALF_DTYPES = (float16, bfloat16)


def is_half(array: Any) -> bool:
    """Return True for bfloat16, float16 and complex32: ops compute in float32 or complex64 in their place."""
    return hasattr(array, "dtype") and array.dtype.char in HALVES


def result_type(*operands: Any) -> Dtype:
    """The dtype that an operation on these tensors and numbers gives. https://pytorch.org/docs → result_type"""
    if (len(operands) == 2 and all(isinstance(a, TensorBase) for a in operands)
            and operands[0].array.dtype is operands[1].array.dtype):
        return FROM_NUMPY[operands[0].array.dtype]  # type: ignore[no-any-return]
    groups: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    for a in operands:
        if isinstance(a, TensorBase):
            groups[0 if a.array.ndim else 1].append(FROM_NUMPY[a.array.dtype])
        else:
            groups[2].append(of_number(type(a)) if type(a) in PYTHON else _number_dtype(a))
    return result_dtype(*groups)


def _number_dtype(number: Any) -> Dtype:
    for kind in (bool, int, float, complex):
        if isinstance(number, kind):
            return of_number(kind)
    if hasattr(number, "dtype"):     # a NumPy scalar counts as the Python number of its value, a bool as a float
        return of_number(float if number.dtype.kind == "b" else type(number.item()))
    raise TypeError(f"expected a Tensor or a number, got {type(number).__name__}")


def number_array(number: Any, dtype: Any, backend: Any) -> Any:
    """A Python number as a 0-d array; integers out of range wrap around."""
    if dtype.kind == "V":
        return backend.asarray(convert(asarray(number), dtype))
    try:
        return backend.asarray(number, dtype)
    except OverflowError:
        return backend.asarray(asarray(number).astype(dtype))


def rounded(y: Any, dtype: Any, backend: Any) -> Any:
    """Round a result that was computed in a wider dtype to a dtype of 16 bits."""
    return y if (target := precise(y.dtype.kind, dtype)) is None else backend.cast(y, target)


def precise(kind: str, dtype: Any) -> Any:
    """Return the dtype of results of a kind: real numbers have the precision of a dtype of few bits, and so have
    complex ones if it is float16 or complex32; None: that which they were computed in."""
    if kind == "f":
        return float16.numpy if dtype == COMPLEX32 else dtype
    return COMPLEX32 if kind == "c" and (dtype == COMPLEX32 or dtype.char == "e") else None
