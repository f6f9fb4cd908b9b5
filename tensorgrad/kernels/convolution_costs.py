"""Estimates of the fastest way to compute a convolution on NumPy, from the numbers that each way multiplies and copies.

By rows, windows are copied along all axes but the first (rows_numpy.py); by columns, along all axes (columns_numpy.py);
by points, with fewer products (winograd_numpy.py).
"""
from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

from ..runtime.thread_pool import available
from .windows_numpy import BLOCK, WIDE

# Nanoseconds, on one core with 512 bits: of a product with a sum; of a number of rows, columns or the input's points; of one of the output, or of its points;
# of one of the input, or of a tile; of one of the kernel, or of its points; of one that all rows of the kernel see, where these are multiplied one by one or
# have to be copied, or of a product that is added up; and for all calls together. Least squares of the relative errors, for the gradient of the kernel over
# 31,677 convolutions in float32, else over 2,453: n of 1 to 32, channels of 1 to 512, images of 4 to 112, kernels of 1 to 7, strides of 1 and 2. With the way
# chosen by them, these (the kernel's) and 11,297 others took 3 % (the output, the kernel) and 5 % (the input's gradient) more time, in the geometric mean, than
# if the quickest had been known. Points of a kernel take a quarter of a nanosecond more than there: in a network, kernels come from memory (ResNet-18 takes
# 4 % less time so, and DCGAN 3 %).
COSTS = {
    "output": {"rows": (0.013, 0.41, 0.23, 0.36, 0.52, 0.2, 14e3), "columns": (0.011, 0.43, 0.025, 0, 0.15, 0, 10e3),
               "points": (0.014, 0.5, 0.51, 6.9, 1.1, 0, 28e3)},
    "input": {"rows": (0.013, 0.53, 0, 0.28, 1.1, 0, 17e3), "columns": (0.012, 0.98, 0.046, 0.096, 0.36, 0, 17e3),
              "points": (0.014, 0.43, 0.51, 4.3, 0.92, 0, 30e3)},
    "weight": {"rows": (0.013, 0, 0.3, 0.16, 0.84, 0.14, 26e3), "columns": (0.012, 0.24, 0.35, 0.06, 0.14, 0.36, 10e3),
               "points": (0.011, 0.53, 0.37, 3, 0.91, 0, 25e3)},
}


def as_it_lies(n: int, places: int, height: int) -> bool:
    """Return True if the kernel's gradient is computed image by image from y in its own layout, and summed."""
    return (n == 1 or places >= WIDE) and height <= places


def amounts(way: str, of: str, x: Any, w: Any, y: Any, stride: Any) -> tuple[int, ...]:
    """Return the counts that COSTS is multiplied by, for input (N, C, *D), kernel (O, C, *K) and output (N, O, *L)."""
    (n, c, *size), (o, _, *kernel), length = x, w, y[2:]
    places = n * prod(length)
    if way == "points":
        taps = [-(-k // s) for k, s in zip(kernel, stride, strict=True)]
        tiled = [-(-d // s) for d, s in zip(size, stride, strict=True)] if of == "input" else length
        points, tiles, numbers = prod(r + 1 for r in taps), n * prod(-(-m // 2) for m in tiled), prod(stride) * c
        return points * tiles * o * numbers, points * tiles * numbers, points * tiles * o, points * tiles, o * numbers * points, 0, 1
    seen = c * prod(kernel) if way == "columns" else (o * stride[0] if of == "input" else c) * prod(kernel[1:])
    images = min(n, max(BLOCK // (length[0] * stride[0] * seen * prod(length[1:])), 1))
    if way == "columns" and of == "weight" and as_it_lies(n, prod(length), seen):
        return places * prod(w), places * seen, 0, n * c * prod(size), prod(w), n * o * seen, 1
    copied = places * c * prod(kernel) if of == "weight" and way == "rows" or images * prod(length[1:]) < WIDE else 0
    return places * prod(w), places * seen, places * o, n * c * prod(size), prod(w), copied, 1


@lru_cache(1 << 14)
def nanoseconds(way: str, of: str, x: Any, w: Any, y: Any, stride: Any) -> float:
    """Estimate the time that one way takes on one core."""
    return sum(a * b for a, b in zip(COSTS[of][way], amounts(way, of, x, w, y, stride), strict=True))


def threads_for(way: str, of: str, x: Any, w: Any, y: Any, how: Any) -> int:
    """Return how many threads should share the work of one way."""
    return available(nanoseconds(way, of, x.shape, w.shape, y.shape, how[0]))


def ranked(of: str, ways: tuple[str, ...], x: Any, w: Any, y: Any, stride: Any) -> tuple[str, ...]:
    """Sort the ways by estimated time for `of`: the output, or the gradient of the input or the weight."""
    return tuple(sorted(ways, key=lambda way: nanoseconds(way, of, x, w, y, stride)))
