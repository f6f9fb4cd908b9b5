"""PyTorch's decorator for functions that later versions keep, which packages use, too."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
_BACK_COMPAT_OBJECTS: dict[Any, None] = {}
_MARKED_WITH_COMPATIBILITY: dict[Any, None] = {}


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """Return a decorator that notes in a function's docstring if later versions keep it."""
    def mark(fn: T) -> T:
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(fn)
        _MARKED_WITH_COMPATIBILITY.setdefault(fn)
        return fn
    return mark
