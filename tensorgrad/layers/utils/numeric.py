"""Small sums, and predicates on NumPy's arrays and scalars."""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["ceildiv", "compare", "cum_sum", "is_div", "is_np_array", "is_np_float", "is_np_float_array", "is_np_int",
           "is_np_int_array", "is_np_scalar", "max_at", "mean", "min_at", "np_cast", "np_clip_inplace", "product",
           "sum_pow"]


def min_at(values: Iterable[Any]) -> tuple[Any, int]:
    """Return the least value and its first index.

    >>> min_at([3, 1, 2, 1]), max_at([3, 1, 2, 3])
    ((1, 1), (3, 0))
    """
    index, value = min(enumerate(values), key=lambda pair: pair[1])
    return value, index


def max_at(values: Iterable[Any]) -> tuple[Any, int]:
    """Return the greatest value and its first index."""
    index, value = max(enumerate(values), key=lambda pair: pair[1])
    return value, index


def sum_pow(values: Iterable[Any], p: float) -> Any:
    """The sum of powers: Σ xᵖ."""
    return sum(value ** p for value in values)


def mean(values: Iterable[Any]) -> Any:
    """The mean; ValueError if there are no values.

    >>> mean(iter([1, 2]))
    1.5
    """
    values = list(values)
    if not values:
        raise ValueError("mean() of no values")
    return sum(values) / len(values)


def product(values: Iterable[Any]) -> Any:
    """The product; 1 of no values."""
    return math.prod(values)


def ceildiv(a: Any, b: Any) -> Any:
    """a / b, rounded up.

    >>> ceildiv(7, 2), ceildiv(-7, 2)
    (4, -3)
    """
    return -(-a // b)


def is_div(a: int, b: int) -> bool:
    """Return True if a is a multiple of b."""
    return a % b == 0


def cum_sum(values: Iterable[Any]) -> list[Any]:
    """The sums of the first one, two, three … values.

    >>> cum_sum([1, 2, 3])
    [1, 3, 6]
    """
    return list(itertools.accumulate(values))


def compare(a: Any, b: Any) -> int:
    """−1, 0 or 1 as a is less than, equal to or greater than b."""
    return int(a > b) - int(a < b)


def is_np_array(x: Any) -> bool:
    """Return True for a NumPy array."""
    return isinstance(x, np.ndarray)


def is_np_float_array(x: Any) -> bool:
    """Return True for a NumPy array of floating point numbers."""
    return is_np_array(x) and np.issubdtype(x.dtype, np.floating)


def is_np_int_array(x: Any) -> bool:
    """Return True for a NumPy array of integers."""
    return is_np_array(x) and np.issubdtype(x.dtype, np.integer)


def is_np_scalar(x: Any) -> bool:
    """Return True for a NumPy scalar, or a 0-d array.

    >>> import numpy as np
    >>> is_np_scalar(np.float32(1)), is_np_scalar(np.array(1)), is_np_scalar(1.0)
    (True, True, False)
    """
    return isinstance(x, np.generic) or is_np_array(x) and x.ndim == 0


def is_np_int(x: Any) -> bool:
    """Return True for a NumPy integer scalar, or a 0-d array of integers."""
    return is_np_scalar(x) and np.issubdtype(x.dtype, np.integer)


def is_np_float(x: Any) -> bool:
    """Return True for a NumPy floating point scalar, or such a 0-d array."""
    return is_np_scalar(x) and np.issubdtype(x.dtype, np.floating)


def np_cast(x: Any, dtype: Any) -> Any:
    """Convert an array or number to a dtype, without a copy if it has that dtype already.

    >>> np_cast([1, 2], "float32").dtype.name
    'float32'
    """
    return x if is_np_scalar(x) and x.dtype == dtype else np.asarray(x, dtype)[()]


def np_clip_inplace(x: Any, low: Any, high: Any) -> Any:
    """Clip an array to [low, high] in place; returns it."""
    return np.clip(x, low, high, out=x)
