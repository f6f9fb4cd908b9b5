"""Memory of a plan: buffers, arrays in them, and offsets in one arena for buffers in use at different times."""
from __future__ import annotations

import mmap
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

ARENA, INPUT, CONSTANT, OUTPUT = range(4)               # kinds of buffers, as native/program.c has them
WEAK, STRONG = 16, 64                                   # alignment in bytes: of memory from outside, and of the arena
MAPPED = 1 << 18        # bytes of a template from which on it is mapped
LINE = 64               # bytes of a cache line: every buffer begins at one


def lines(size: int) -> int:
    """Return the bytes of whole cache lines that hold a buffer."""
    return -(-size // LINE) * LINE


def arranged(buffers: Sequence[tuple[int, int, int]]) -> tuple[list[int], int]:
    """Return the offset of each buffer (bytes, first use, last use), and the bytes of the arena.

    Buffers whose uses overlap get separate memory. The largest are placed first, each in the smallest gap that holds it
    among those that it must not meet, or behind them.

    >>> arranged([(100, 0, 1), (60, 1, 2), (120, 2, 3)])
    ([0, 128, 0], 192)
    """
    offsets = [0] * len(buffers)
    placed: list[tuple[int, int, int, int]] = []
    for i in sorted(range(len(buffers)), key=lambda i: (-buffers[i][0], buffers[i][1])):
        size, first, last = lines(buffers[i][0]), *buffers[i][1:]
        best, gap, end = None, 0, 0
        for start, stop, begun, ended in placed:
            if begun <= last and first <= ended:
                if start - end >= size and (best is None or start - end < gap):
                    best, gap = end, start - end
                end = max(end, stop)
        offsets[i] = end if best is None else best
        placed.append((offsets[i], offsets[i] + size, first, last))
        placed.sort()
    return offsets, max((stop for _, stop, _, _ in placed), default=0)


def template(size: int, alignment: int) -> Any:
    """Return bytes at an address that is a multiple of `alignment`, but not of twice as much (up to `STRONG`).

    Large ones are mapped, so that memory which nobody touches takes no pages: of others, the C library and NumPy make
    large pages, and write beside them.
    """
    memory = (np.empty if size < MAPPED else mapped)(size + 2 * STRONG, np.uint8)
    start = -memory.ctypes.data % STRONG + alignment % STRONG
    return memory[start:start + size]


def mapped(size: int, dtype: Any) -> Any:
    """Return an array like `numpy.empty`, in pages of its own."""
    try:
        return np.frombuffer(mmap.mmap(-1, size, access=mmap.ACCESS_COPY), dtype)
    except OSError as error:
        raise MemoryError(f"there are no {size} bytes to plan with") from error


class Buffer:
    """Memory of a plan, for an array of some shape and dtype.

    `used` are the first and the last step that touch it, `holders` the nodes whose values are in it. `memory` is its
    template, `place` the number of the program's buffer that contains it, and `shift` its offset there. `source` names
    the origin of a constant.
    """

    __slots__ = ("kind", "shape", "dtype", "bytes", "used", "holders", "memory", "place", "shift", "source")

    def __init__(self, kind: int, shape: Sequence[int], dtype: Any, source: Any = None) -> None:
        self.kind, self.shape, self.dtype, self.source = kind, tuple(shape), np.dtype(dtype), source
        self.bytes = prod(self.shape) * self.dtype.itemsize
        self.used: tuple[int, int] | None = None
        self.holders: set[Any] = set()
        self.memory = template(self.bytes, STRONG if kind == ARENA else WEAK)
        self.place, self.shift = -1, 0

    @property
    def whole(self) -> Value:
        """Return the array that fills this memory."""
        return Value(self.shape, self.dtype, in_order(self.shape), 0, self)

    def touch(self, step: int) -> None:
        self.used = (step, step) if self.used is None else (self.used[0], step)


class Value:
    """An array of the plan; strides and offset count elements."""

    __slots__ = ("shape", "dtype", "strides", "offset", "buffer")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...], offset: int,
                 buffer: Buffer) -> None:
        self.shape, self.dtype, self.strides, self.offset, self.buffer = shape, dtype, strides, offset, buffer

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def contiguous(self) -> bool:
        """Return True if the elements follow each other in C order."""
        step = 1
        for n, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n != 1 and stride != step:
                return not self.size
            step *= n
        return True

    @property
    def fills(self) -> bool:
        """Return True if this is the whole of its buffer, in C order."""
        return self.offset == 0 and self.contiguous and self.size * self.dtype.itemsize == self.buffer.bytes

    @property
    def is_whole(self) -> bool:
        """Return True if this is the array that its buffer was made for."""
        return self.fills and self.shape == self.buffer.shape and self.dtype == self.buffer.dtype

    def within(self, memory: Any, shift: int = 0) -> Any:
        """Return this array in memory, given as bytes, in which the buffer begins at `shift`."""
        size = self.dtype.itemsize
        return np.ndarray(self.shape, self.dtype, memory, shift + self.offset * size,
                          [step * size for step in self.strides])

    def among(self, memories: Sequence[Any]) -> Any:
        """Return this array in the memory of a run, given the bytes of each place."""
        return self.within(memories[self.buffer.place], self.buffer.shift)


def in_order(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous array.

    >>> in_order((2, 3, 4))
    (12, 4, 1)
    """
    steps = [1]
    for n in reversed(shape[1:]):
        steps.append(steps[-1] * max(n, 1))
    return tuple(reversed(steps))[-len(shape):] if shape else ()
