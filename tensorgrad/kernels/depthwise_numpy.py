"""Depthwise convolution: each channel has a separate kernel, which multiplies shifted rows (rows_numpy.py) of that channel."""
from __future__ import annotations

from functools import lru_cache, partial
from math import prod
from typing import Any

import numpy as np

from ..runtime.thread_pool import add_up, available, finish, scratch
from .rows_numpy import by_remainders, shifted
from .windows_numpy import along

PLANES = 1 << 19     # elements of shifted rows at a time


class Planes:
    """Sizes of a depthwise convolution. Each row of the kernel sees, of each channel, a matrix (places in that row, places) of shifted rows."""

    def __init__(self, size: Any, kernel: Any, length: Any, how: Any) -> None:
        (self.rows, *self.others), self.size, self.length = kernel, size, length
        (self.stride, *stride), (self.padding, *padding), (self.dilation, *dilation) = how
        self.rest = stride, padding, dilation
        self.height, self.inner = length[0] + self.dilation * (self.rows - 1) // self.stride, prod(length[1:])

    def blocks(self, n: int, c: int) -> list[tuple[int, slice]]:
        """Return blocks of work: pairs (image, its channels)."""
        step = max(PLANES // (self.height * self.inner * prod(self.others) * min(self.stride, self.rows)), 1)
        return [(i, slice(j, min(j + step, c))) for i in range(n) for j in range(0, c, step)]

    def views(self, channels: int, dtype: Any) -> Any:
        """Return the shifted rows of each phase of the stride, and the part of them that each kernel row multiplies."""
        s, d, found, seen = self.stride, self.dilation, {}, []
        for phase in sorted({i * d % s for i in range(self.rows)}):
            found[phase] = shifted(f"shifted{phase}", "nkchl", self.size, phase - self.padding, s, self.rest, dtype,
                                   n=(1,), c=(channels,), h=(self.height,), k=self.others, l=self.length[1:])
        for i in range(self.rows):
            start = i * d // s * self.inner
            lines = found[i * d % s].memory.reshape(prod(self.others), channels, -1).swapaxes(0, 1)
            seen.append(lines[..., start:start + self.length[0] * self.inner])
        return [*found.values()], seen

    def seen(self, x: Any) -> list[Any]:
        """Fill the shifted rows from x (C, *D), and return the views that each row of the kernel multiplies."""
        shifted, seen = scratch.view(Planes.views, self, len(x), x.dtype)
        for some in shifted:
            some.fill(x[None])
        return seen  # type: ignore[no-any-return]


@lru_cache(1 << 10)
def planes_of(size: Any, kernel: Any, length: Any, how: Any) -> Planes:
    return Planes(size, kernel, length, how)


def correlate(x: Any, w: Any, b: Any, y: Any, how: Any) -> None:
    """Fill y (N, C, *L) with windows of x times w (C, 1, *K), plus b."""
    finish(correlation(x, w, b, y, how, 1), threads_for(w, y, how))


def correlation(x: Any, w: Any, b: Any, y: Any, how: Any, _: int) -> list[Any]:
    """The jobs that `correlate` consists of."""
    if not w.size:
        y[...] = 0 if b is None else along(b, y.ndim - 2)
        return []
    planes, numbers = planes_of(x.shape[2:], w.shape[2:], y.shape[2:], how), np.ascontiguousarray(w).reshape(len(w), w.shape[2], 1, -1)
    places = prod(y.shape[2:])

    def job(image: int, channels: slice) -> None:
        target, few = y[image, channels], numbers[channels]
        runs, part = scratch.take("product", (2, len(few), 1, places), x.dtype)
        if target.flags.c_contiguous:
            runs = target.reshape(runs.shape)
        for i, seen in enumerate(planes.seen(x[image, channels])):
            np.matmul(few[:, i], seen, out=part if i else runs)
            if i:
                runs += part
        if b is not None:
            runs += b[channels, None, None]
        if not target.flags.c_contiguous:
            target[...] = runs.reshape(target.shape)
    return [partial(job, *block) for block in planes.blocks(*x.shape[:2])]


def back(y: Any, w: Any, b: Any, x: Any, how: Any) -> bool:
    """Fill x (N, C, *D) with the gradient of the input; return True if w is finite."""
    return by_remainders(correlation, y, w, b, x, how, threads_for(w, y, how))


def threads_for(w: Any, y: Any, how: Any) -> int:
    """Return how many threads should share a depthwise convolution: its products, and copies for strides."""
    return available(y.size * (w[0].size / 6 + 2 * (max(how[0]) > 1)))


def weight(y: Any, x: Any, out: Any, how: Any) -> None:
    """Fill out (C, 1, *K) with the gradient of the kernel."""
    planes, (n, c) = planes_of(x.shape[2:], out.shape[2:], y.shape[2:], how), x.shape[:2]
    blocks, threads = planes.blocks(n, c), threads_for(out, y, how)
    totals = np.zeros((min(threads, len(blocks)), c, planes.rows, prod(planes.others), 1), x.dtype)

    def task(blocks: Any, number: int) -> None:
        for image, channels in blocks:
            g = y[image, channels].reshape(-1, prod(y.shape[2:]), 1)
            for i, seen in enumerate(planes.seen(x[image, channels])):
                totals[number, channels, i] += np.matmul(seen, g)
    add_up(task, blocks, len(totals))
    out[...] = totals.sum(axis=0).reshape(out.shape)
