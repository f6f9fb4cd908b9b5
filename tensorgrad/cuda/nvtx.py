"""Marks for NVIDIA's profilers; without a real device they are counted and otherwise do nothing.

https://pytorch.org/docs → torch.cuda.nvtx
"""
from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from ..storage.cuda import device_count, import_cupy, simulated_count

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


class _Open(threading.local):
    depth = 0       # the number of open ranges in this thread


_open, _numbers = _Open(), count(1)


def _profiler() -> Any:
    found = None if simulated_count() or not device_count() else import_cupy().cuda.nvtx
    return found if hasattr(found, "RangePush") else None       # CuPy may have been built without


def range_push(msg: str) -> int:
    """Open a range; return the number of ranges that were open."""
    if (profiler := _profiler()) is not None:
        profiler.RangePush(msg)
    _open.depth += 1
    return _open.depth - 1


def range_pop() -> int:
    """Close the innermost range; how many stay open. -2 if there was none, as NVIDIA's library answers."""
    if not _open.depth:
        return -2
    if (profiler := _profiler()) is not None:
        profiler.RangePop()
    _open.depth -= 1
    return _open.depth


def range_start(msg: str) -> int:
    """Open a range that any thread may close, and return its number."""
    mark(msg)
    return next(_numbers)


def range_end(range_id: int) -> None:
    """Close the range of that number."""


def mark(msg: str) -> None:
    """Note that something happened."""
    if (profiler := _profiler()) is not None:
        profiler.Mark(msg)


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range for the length of a block; the arguments are put into the message by `str.format`."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
