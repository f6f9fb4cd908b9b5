"""Memory that runs out, in PyTorch's words: NumPy's MemoryError, and its ValueError for sizes beyond all memory, become
one RuntimeError.

Nothing is checked in advance: errors that kernels raise are translated where they pass through ops, tape steps and
public functions.
"""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

BEYOND = ("array is too big", "Maximum allowed dimension exceeded", "Maximum allowed size exceeded",
          "iterator is too large")


class HostMemoryError(RuntimeError, MemoryError):
    """The error for missing main memory: PyTorch's RuntimeError, and a MemoryError for programs that catch that."""


class OutOfMemoryError(RuntimeError):
    """A device has no memory left for an array. https://pytorch.org/docs → torch.OutOfMemoryError"""

    @classmethod
    def on(cls, index: int, size: int, total: int, free: int) -> OutOfMemoryError:
        return cls(f"CUDA out of memory. Tried to allocate {in_units(size)}. GPU {index} has a total capacity of "
                   f"{in_units(total)} of which {in_units(free)} is free.")


def in_units(size: float) -> str:
    """Bytes for people to read.

    >>> in_units(1536), in_units(20 << 30)
    ('1.50 KiB', '20.00 GiB')
    """
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size} bytes" if unit == "bytes" else f"{size:.2f} {unit}"
        size /= 1024
    return f"{size:.2f} GiB"


def in_words(bytes_: int | None, name: str = "") -> HostMemoryError:
    """PyTorch's error for memory that the system refuses."""
    asked = "" if bytes_ is None else f": you tried to allocate {bytes_} bytes. Error code 12 (Cannot allocate memory)"
    place = f"\n(in {name})" if name else ""
    return HostMemoryError(f"[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate "
                           f"memory{asked}{place}")


def overflowed(shape: Any = None, name: str = "") -> RuntimeError:
    """PyTorch's error for a size in bytes that no number holds, or for a stride."""
    if shape is not None and not prod(shape):
        return RuntimeError("Stride calculation overflowed")
    sizes = "" if shape is None else f" with sizes={list(shape)}"
    return RuntimeError(f"Storage size calculation overflowed{sizes}" + (f"\n(in {name})" if name else ""))


def beyond(error: BaseException | None) -> bool:
    """Return True for NumPy's error about an array of more bytes than there are addresses."""
    return isinstance(error, ValueError) and str(error).startswith(BEYOND)


def memory_error(error: BaseException, name: str = "", shape: Any = None) -> RuntimeError | None:
    """Return a memory error in PyTorch's words; None for other errors, and for those that have these words already."""
    if isinstance(error, MemoryError):
        if isinstance(error, RuntimeError):
            return None
        wanted, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
        return in_words(None if wanted is None or dtype is None else prod(wanted) * dtype.itemsize, name)
    return overflowed(shape, name) if beyond(error) else None


def check_error(error: BaseException | None, name: str) -> bool:
    """Raise a memory error in PyTorch's words; return True if it is one already. Imports nothing, to save memory."""
    if error is None:
        return False
    if (found := memory_error(error, name)) is not None:
        raise found from None
    return isinstance(error, MemoryError)


ASKED_FROM = 1 << 26        # bytes from which on to check for memory


def check_room(shape: Any, itemsize: int, name: str = "") -> None:
    """Raise PyTorch's error for a result that memory cannot hold, before intermediate results are made.

    Memory is reserved, not touched.
    """
    size = prod(shape) * itemsize
    if size < ASKED_FROM:
        return
    if size >= 1 << 63:
        raise overflowed(shape, name)
    try:
        np.empty(size, np.uint8)
    except MemoryError:
        raise in_words(size, name) from None
