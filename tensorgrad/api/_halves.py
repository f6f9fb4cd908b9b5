"""Functions that are composed of several ops, for dtypes of 16 bits: they compute in float32, and round once."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.casting import SINGLE, is_half
from ..core.dispatch import xp
from ..core.tape import TensorBase


def once_rounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function of tensors and numbers, whose first argument is a tensor and whose result is one, or several.

    If the first tensor has real numbers of 16 bits, and no other has more bits of floating point, all of them become
    float32, and the results are cast back. An op of the table needs no decoration: the dispatcher does so.
    """
    def call(first: Any, *args: Any) -> Any:
        dtype = first.array.dtype
        if not is_half(first.array) or dtype.itemsize != 2 or any(
                a.array.dtype.char in "fdFD" for a in args if isinstance(a, TensorBase)):
            return function(first, *args)
        found = function(*[xp.cast(a, dtype=SINGLE) if isinstance(a, TensorBase) and is_half(a.array) else a
                           for a in (first, *args)])
        if isinstance(found, TensorBase):
            return xp.cast(found, dtype=dtype)
        return tuple(xp.cast(part, dtype=dtype) for part in found)
    call.__name__, call.__qualname__, call.__doc__ = function.__name__, function.__qualname__, function.__doc__
    call.__module__ = function.__module__
    return call
