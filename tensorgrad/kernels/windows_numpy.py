"""The ranges of an input that the windows of a convolution read, and scratch memory for them."""
from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..runtime.thread_pool import available, scratch, share, spans

BLOCK = 1 << 19      # elements of windows at a time
NARROW = 16          # columns below which images are the innermost axis
WIDE = 48            # columns from which on BLAS multiplies row by row of the result


# ── along an axis ─────────────────────────────────────────────────────────────────────────────────────────────────────


def inside(first: int, step: int, count: int, size: int) -> tuple[slice, slice]:
    """Return which of `count` places first, first + step, … are in [0, size), and these places, as slices."""
    low, high = max(-(first // step), 0), min(-((first - size) // step), count)
    return (slice(low, high), slice(first + low * step, first + (high - 1) * step + 1, step)) if high > low else (slice(0, 0), slice(0, 0))


def useful(size: Any, kernel: Any, length: Any, stride: Any, padding: Any, dilation: Any) -> tuple[slice, ...]:
    """Return the part of a kernel that meets more than padding: for images of one place, the middle."""
    found = []
    for d, k, n, s, p, e in zip(size, kernel, length, stride, padding, dilation, strict=True):
        seen = [i for i in range(k) if inside(i * e - p, s, n, d)[0].stop]
        found.append(slice(seen[0], seen[-1] + 1) if seen else slice(0, 0))
    return tuple(found)


def trimmed(how: Any, part: Any) -> Any:
    """(stride, padding, dilation) for a part of a kernel."""
    stride, padding, dilation = how
    return stride, tuple(p - t.start * e for p, t, e in zip(padding, part, dilation, strict=True)), dilation


def around(out: Any, axis: int, inside: slice) -> Iterator[Any]:
    """Yield the non-empty parts of `out` before and after the slice `inside`, along an axis."""
    for part in (slice(0, inside.start), slice(inside.stop, None)):
        if (some := out[(slice(None),) * axis + (part,)]).size:
            yield some


# ── memory ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def strided(x: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """Return a view of x that starts where x does, ten times faster than `as_strided` for contiguous x."""
    return np.ndarray(shape, x.dtype, x, 0, strides) if x.flags.c_contiguous else as_strided(x, shape, strides)


def laid(name: str, order: str, dtype: Any, **sizes: Any) -> tuple[Any, Any]:
    """Return scratch memory with its groups of axes in `order`, and a view (n, c, h, *k, *l): images, channels, rows, kernel, columns."""
    memory = scratch.take(name, tuple([n for axis in order for n in sizes[axis]]), dtype)
    return memory, memory.transpose(turned(order, tuple([len(sizes[axis]) for axis in order])))


@lru_cache(1 << 8)
def turned(order: str, lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Return the positions of the axes of groups n, c, h, k, l, if the groups have these lengths and this order."""
    places, start = {}, 0
    for axis, length in zip(order, lengths, strict=True):
        places[axis] = range(start, start := start + length)
    return tuple(i for axis in "nchkl" if axis in places for i in places[axis])


def images_inside(count: int, length: Any) -> bool:
    """Return True if images should be innermost: rows are so short that copying them one by one is slow."""
    return bool(count >= 8 and length[-1] < NARROW)


def parts(count: int, rows: int, heavy: int, fixed: int, split: int) -> list[tuple[slice, slice]]:
    """Split the work to blocks (images, rows of the result): a row needs `heavy` elements per image, an image `fixed` more."""
    each = rows * heavy + fixed
    if count * each <= BLOCK and split == 1:
        return [(slice(0, count), slice(0, rows))]
    if each <= BLOCK:
        return [(images, slice(0, rows)) for images in spans(count, min(-(-count * each // (BLOCK * split)) * split, count))]
    step = max((BLOCK - fixed) // heavy, 1)
    return [(slice(i, i + 1), slice(j, min(j + step, rows))) for i in range(count) for j in range(0, rows, step)]


# ── kernels and biases ────────────────────────────────────────────────────────────────────────────────────────────────


def place_by_place(to: Any, of: Any) -> None:
    """Copy kernels (O, C, *K) one kernel position at a time, so that copies run along channels."""
    def task(part: slice) -> None:
        for place in product(*map(range, to.shape[2:])):
            to[(part, slice(None), *place)] = of[(part, slice(None), *place)]
    share(task, spans(len(to), available(of.size * 2)))


def along(b: Any, axes: int) -> Any:
    """Shape a bias to broadcast with (n, c, *places)."""
    return None if b is None else b.reshape(-1, *(1,) * axes)
