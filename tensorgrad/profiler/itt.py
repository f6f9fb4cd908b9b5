"""Ranges for Intel's tracing tools, which no build of this package reports to.

https://pytorch.org/docs → torch.profiler

>>> from tensorgrad.profiler import itt
>>> itt.is_available()
False
"""
from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available() -> bool:
    """Return False: no tracing tool is connected."""
    return False


def _missing(*args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError("ITT functions not installed. Are you sure you have a ITT build?")


mark = range = range_pop = range_push = _missing
