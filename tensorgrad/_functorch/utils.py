"""Helpers of function transforms that programs import."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["argnums_t", "enable_single_level_autograd_function", "exposed_in"]
argnums_t = Any


@contextmanager
def enable_single_level_autograd_function() -> Iterator[None]:
    """Change nothing: an `autograd.Function` works inside all transforms."""
    yield


def exposed_in(module: str) -> Callable[[Any], Any]:
    """Return a decorator that names the module from which programs import a function."""
    def named(function: Any) -> Any:
        function.__module__ = module
        return function
    return named
