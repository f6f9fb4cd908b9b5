"""A block of memory for the packed weights of a graph.

NumPy asks for pages of 2 MiB where an array has 4 MiB or more. Weights that are too many for the second cache are then
read in three quarters of the time, and so are many of 2 MiB each, if they are parts of one block.
"""
from __future__ import annotations

import threading
from math import prod
from typing import Any

import numpy as np

from ..runtime.native import empty_memory

LEAST = 1 << 20         # bytes of a graph's weights that are worth a block
APART = 128


class Room(threading.local):
    """The block that packed weights of this thread go to: none outside of `with room.of(size)`."""

    left = 0
    memory: Any = None

    def of(self, size: int) -> Room:
        """Let up to `size` bytes go to one block, until the end of a `with` statement."""
        self.left = size if size >= LEAST else 0
        return self

    def __enter__(self) -> None:
        self.memory = None

    def __exit__(self, *error: Any) -> None:
        self.memory, self.left = None, 0

    def reserve(self) -> None:
        """Make the block, if there is to be one, before the first array in it."""
        if self.left:
            empty_memory()                                          # blocks that are kept do not serve this one
            block = np.empty(self.left + APART, np.uint8)           # not more, so that no large page stays empty
            self.memory = block[-block.ctypes.data % APART:]

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array like `numpy.empty`."""
        size = padded(prod(shape) * dtype.itemsize)
        if not 0 < size <= self.left:
            return np.empty(shape, dtype)
        if self.memory is None:
            self.reserve()
        part, self.memory = self.memory[:prod(shape) * dtype.itemsize], self.memory[size:]
        self.left -= size
        return part.view(dtype).reshape(shape)

    def copy(self, array: Any) -> Any:
        """Return a copy in C order."""
        out = self.empty(array.shape, array.dtype)
        out[...] = array
        return out


def padded(size: int) -> int:
    """Return the bytes that an array takes of a block."""
    return -(-size // APART) * APART


room = Room()
