"""Sums, products and running results on arrays that are memory: added up in a wider dtype without a copy of the input
in it.
"""
from __future__ import annotations

from typing import Any

from ..ops.reduction import count_of
from .arrays import in_arrays


def wide(x: Any) -> Any:
    """Return the dtype to add up in: integers and bools in int64, half precision in float32."""
    return "int64" if x.dtype.kind in "biu" else "float32" if x.dtype.itemsize == 2 else None


def rounded(y: Any, x: Any) -> Any:
    """A sum of floating point numbers in their own dtype again."""
    return y.astype(x.dtype) if x.dtype.itemsize == 2 and x.dtype.kind == "f" else y


@in_arrays("sum")
def total(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return rounded(xp.sum(x, axis=axis, dtype=wide(x), keepdims=keepdims), x)


@in_arrays("mean")
def mean(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return rounded(xp.sum(x, axis=axis, dtype=wide(x), keepdims=keepdims) / count_of(x.shape, axis), x)


@in_arrays("prod")
def product(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return rounded(xp.prod(x, axis=axis, dtype=wide(x), keepdims=keepdims), x)


@in_arrays("cumsum")
def cumsum(xp: Any, x: Any, *, axis: int) -> Any:
    return rounded(xp.cumsum(x, axis=axis, dtype=wide(x)), x)


@in_arrays("cumprod")
def cumprod(xp: Any, x: Any, *, axis: int) -> Any:
    return rounded(xp.cumprod(x, axis=axis, dtype=wide(x)), x)
