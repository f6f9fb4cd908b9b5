"""Convolution on NumPy: its formulas (ops/convolution.py) for a few images at a time, in memory that is reused.

Copied side by side, the windows of these images are the columns of a matrix (C · K, places). Kernels (O, C · K) times
columns are the result; the gradient of the input adds up the columns that transposed kernels give; the gradient of the
kernels is the result's gradient times transposed columns. Threads share the images.

To follow conv2d's backward, read three files: ops/convolution.py for the gradients, this one, and
runtime/thread_pool.py for its threads and memory.
"""
from __future__ import annotations

from contextlib import nullcontext
from functools import lru_cache, partial
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..core.dispatch import OpDispatch
from ..ops.convolution import Convolution, ConvolutionInput, ConvolutionWeight
from ..ops.windows import output_length
from ..runtime.thread_pool import WORTH, add_up, available, finish, scratch, spans
from ..runtime.threads import single_blas
from .windows_arrays import padded

CPU = OpDispatch.backend("cpu")
EVERY = slice(None)
BLOCK = 1 << 19                     # elements of columns at a time: more would leave the cache
WIDE = 48                           # places from which on a product for each image is as fast as one for all
# so many images become the innermost axis if rows are shorter: NumPy copies short rows slowly
MANY, NARROW = 8, 16
COPY, PRODUCT = 0.4, 0.015          # nanoseconds for an element of columns, and for a product of two numbers


class Sizes:
    """Sizes of a convolution: images (C, *D), kernels (O, C / groups, *K), results (O, *L)."""

    def __init__(self, size: Any, outputs: int, channels: int, kernel: Any, length: Any, how: Any) -> None:
        stride, padding, self.dilation, self.groups = how
        self.stride = tuple(s if m > 1 else 1 for s, m in zip(stride, length, strict=True))
        self.size, self.outputs, self.channels, self.length = size, outputs, channels, length
        self.part: tuple[slice, ...] = (EVERY,) * (2 + len(size))
        if all(d == m == 1 and p % e == 0 and p // e < k
               for d, m, k, p, e in zip(size, length, kernel, padding, self.dilation, strict=True)):
            # Images of one place: only one place of the kernel meets more than padding.
            at = [p // e for p, e in zip(padding, self.dilation, strict=True)]
            self.part, kernel, padding = ((EVERY, EVERY, *(slice(i, i + 1) for i in at)), (1,) * len(size),
                                          (0,) * len(size))
        self.kernel, self.padding = kernel, padding
        self.height, self.each = channels // self.groups * prod(kernel), channels * prod(kernel) * prod(length)
        self.bare = prod(kernel) == 1 and size == length and not any(padding)      # images are columns as they are
        self.axes = [*zip(size, length, kernel, self.stride, padding, self.dilation, strict=True)]
        # images with their border
        self.framed = tuple(max(p + d, (m - 1) * s + (k - 1) * e + 1) for d, m, k, s, p, e in self.axes)
        self.within = (EVERY, EVERY, *(slice(p, p + d) for d, p in zip(size, padding, strict=True)))

    def nanoseconds(self, n: int) -> float:
        return n * self.each * (COPY + PRODUCT * self.outputs / self.groups)

    def few_threads(self, n: int) -> Any:
        """Return a context in which BLAS uses one thread if there is little work: on a busy machine, waiting for
        another takes ten times as long.
        """
        return single_blas if self.nanoseconds(n) <= WORTH else nullcontext()

    def images(self, n: int) -> tuple[list[slice], int]:
        """Return blocks of images, and how many threads should share them."""
        threads = available(self.nanoseconds(n))
        return spans(n, min(-(-max(-(-n * self.each // BLOCK), threads) // threads) * threads, n)), threads

    def rows(self) -> list[slice]:
        """Return blocks of rows of the result, for images whose columns are more than a block."""
        return spans(self.length[0], min(-(-self.each // BLOCK), self.length[0]))

    def order(self, n: int) -> str:
        """Return the place of the images among the axes of columns: "first" (a matrix each), "middle" (between K and L)
        or "last".
        """
        if n >= MANY and self.length[-1] < NARROW:
            return "last"
        return "first" if n == 1 or prod(self.length) >= WIDE else "middle"

    def columns(self, n: int, length: tuple[int, ...], order: str, dtype: Any) -> tuple[Any, Any]:
        """Return memory for the columns of n images, for results of some length: as matrices, and as (n, C, *K,
        *length).
        """
        shape = [self.channels, *self.kernel, *length]
        at = {"first": 0, "middle": 1 + len(self.kernel), "last": len(shape)}[order]
        shape.insert(at, n)
        memory = scratch.take("columns", tuple(shape), dtype)
        return (memory.reshape(*[n] * (order == "first"), self.groups, self.height, -1),
                memory.transpose(at, *(i for i in range(len(shape)) if i != at)))

    def zeros(self, n: int, size: tuple[int, ...], order: str, dtype: Any) -> Any:
        """Return memory for images with a border, (n, C, *size), cleared."""
        if order == "last":
            out = np.moveaxis(scratch.take("frame", (self.channels, *size, n), dtype), -1, 0)
        else:
            out = scratch.take("frame", (n, self.channels, *size), dtype)
        out[...] = 0
        return out

    def frame(self, x: Any, rows: slice, order: str) -> Any:
        """Copy the part of images (n, C, *D) that some rows of the result depend on, with its border."""
        first, d = rows.start * self.stride[0] - self.padding[0], self.size[0]
        stop = (rows.stop - 1) * self.stride[0] - self.padding[0] + (self.kernel[0] - 1) * self.dilation[0] + 1
        start, end = min(max(first, 0), d), max(min(stop, d), 0)
        frame = self.zeros(len(x), (stop - first, *self.framed[1:]), order, x.dtype)
        frame[(EVERY, EVERY, slice(start - first, max(start, end) - first), *self.within[3:])] = x[:, :, start:end]
        return frame

    def windows(self, x: Any, rows: slice, order: str) -> Any:
        """The windows of images (n, C, *D) for some rows of the result, as matrices of columns."""
        if self.bare and order == "first":
            return x[:, :, rows].reshape(len(x), self.groups, self.height, -1)
        matrices, view = self.columns(len(x), (rows.stop - rows.start, *self.length[1:]), order, x.dtype)
        view[...] = seen_through(self.frame(x, rows, order), view.shape, self.stride, self.dilation)
        return matrices

    def add_windows(self, x: Any, y: Any, matrices: Any, b: Any) -> None:
        """Fill images x (n, C, *D) with the sums of the columns that transposed kernels make of results y (n, O, *L),
        plus b.

        Sums for places of x with equal remainders by the stride are adjacent in memory, so that additions run along
        rows.
        """
        order, matrices = self.order(len(x)), matrices.swapaxes(1, 2)
        if self.bare and order == "first":
            np.matmul(matrices, self.flat(y, order), out=x.reshape(len(x), self.groups, self.height, -1))
            if b is not None:
                x += b
            return
        wide = tuple(max(m + (k - 1) * e // s, -(-n // s))
                     for n, (_, m, k, s, _, e) in zip(self.framed, self.axes, strict=True))
        sums = self.zeros(len(x), (*self.stride, wide[0] + 1, *wide[1:]), order, x.dtype)
        for rows in self.rows():
            y_rows = y[:, :, rows]
            # with zeros behind them, rows of columns are as long as those of sums: `add` takes all rows as one
            if order != "last":
                y_rows = np.zeros((*y_rows.shape[:3], *wide[1:]), y.dtype)
                y_rows[(EVERY, EVERY, EVERY, *map(slice, self.length[1:]))] = y[:, :, rows]
            columns, view = self.columns(len(x), y_rows.shape[2:], order, x.dtype)
            np.matmul(matrices, self.flat(y_rows, order), out=columns)
            self.add(view, sums[(EVERY, EVERY, *(EVERY for _ in self.stride), slice(rows.start, None))], order)
        for phase in product(*map(range, self.stride)):
            first = [(r - p) % s for r, (_, _, _, s, p, _) in zip(phase, self.axes, strict=True)]
            of = (slice((i + p) // s, (i + p) // s + len(range(i, d, s)))
                  for i, (d, _, _, s, p, _) in zip(first, self.axes, strict=True))
            to, part = ((EVERY, EVERY, *(slice(i, None, s) for i, s in zip(first, self.stride, strict=True))),
                        sums[(EVERY, EVERY, *phase, *of)])
            if b is None:
                x[to] = part
            else:
                np.add(part, b, out=x[to])

    def add(self, columns: Any, sums: Any, order: str) -> None:
        """Add columns (n, C, *K, *length) to sums (n, C, *stride, *size), one place of the kernel at a time."""
        length, size = columns.shape[2 + len(self.kernel):], sums.shape[2 + len(self.kernel):]
        if order != "last":
            columns = columns.reshape(*columns.shape[:2], *self.kernel, -1)
            sums = sums.reshape(*sums.shape[:2], *self.stride, -1)
        for place in product(*map(range, self.kernel)):
            steps, phase = zip(*(divmod(i * e, s) for i, (_, _, _, s, _, e) in zip(place, self.axes, strict=True)),
                               strict=True)
            if order != "last":
                start = sum(step * prod(size[i + 1:]) for i, step in enumerate(steps))
                to: tuple[slice, ...] = (slice(start, start + prod(length)),)
            else:
                to = tuple(slice(step, step + m) for step, m in zip(steps, length, strict=True))
            some = sums[(EVERY, EVERY, *phase, *to)]
            some += columns[(EVERY, EVERY, *place)]

    def flat(self, y: Any, order: str) -> Any:
        """Some rows of results (n, O, *L) as matrices (O / groups, places), in the order of columns."""
        n, o = y.shape[:2]
        if order == "first":
            return y.reshape(n, self.groups, o // self.groups, -1)
        y = y.reshape(n, o, -1)
        rows = np.ascontiguousarray(y.transpose(1, 2, 0) if order == "last" else y.swapaxes(0, 1))
        return rows.reshape(self.groups, o // self.groups, -1)

    def matrices(self, w: Any) -> Any:
        """The kernels as matrices (groups, O / groups, C / groups · K)."""
        return w[self.part].reshape(self.groups, -1, self.height)


def seen_through(x: Any, shape: Any, stride: Any, dilation: Any) -> Any:
    """Return a view of x, which includes its border, as windows of `shape`, (N, C, *K, *L)."""
    n, c, *steps = x.strides
    return as_strided(x, shape,
                      (n, c, *(step * by for step, by in zip((*steps, *steps), (*dilation, *stride), strict=True))))


@lru_cache(1 << 10)
def sizes_of(size: Any, outputs: int, channels: int, kernel: Any, length: Any, *how: Any) -> Sizes:
    return Sizes(size, outputs, channels, kernel, length, how)


def served(a: Any, b: Any) -> bool:
    """Return True if the kernels below take two arrays: not empty, both float32 or both float64."""
    return bool(a.dtype == b.dtype and a.dtype.kind == "f" and a.dtype.itemsize > 2 and a.size and b.size)


def is_depthwise(w: Any, groups: int) -> bool:
    """Return True for a depthwise convolution: each channel has a separate kernel."""
    return groups > 1 and w.shape[1] == 1 and w.shape[0] == groups


def along(b: Any, axes: int) -> Any:
    """Shape a bias to broadcast with (n, c, *places)."""
    return None if b is None else b.reshape(-1, *(1,) * axes)


@OpDispatch.register("convolution", "cpu")
def convolution(x: Any, w: Any, b: Any, *, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    length = output_length(x.shape[2:], w.shape[2:], stride, padding, dilation)
    if not served(x, w) or not prod(length):
        return Convolution.forward(CPU.xp, x, w, b, stride=stride, padding=padding, dilation=dilation, groups=groups)
    (n, c, *size), o = x.shape, len(w)
    sizes = sizes_of(tuple(size), o, c, w.shape[2:], length, stride, padding, dilation, groups)
    y, matrices, b = np.empty((n, o, *length), x.dtype), sizes.matrices(w), along(b, len(size))

    def job(images: slice, rows: slice) -> None:
        target = y[images, :, rows]
        order = sizes.order(len(target))
        columns = sizes.windows(x[images], rows, order)
        if order == "first":
            np.matmul(matrices, columns, out=sizes.flat(target, order))
        elif order == "last":
            target[...] = np.moveaxis(np.matmul(matrices, columns).reshape(o, *target.shape[2:], -1), -1, 0)
        else:
            target[...] = np.matmul(matrices, columns).reshape(o, len(target), *length).swapaxes(0, 1)
        if b is not None:
            target += b
    blocks, threads = sizes.images(n)
    with sizes.few_threads(n):
        finish([partial(job, images, rows) for images in blocks for rows in sizes.rows()], threads)
    return y


@OpDispatch.register("convolution_input", "cpu")
def convolution_input(y: Any, w: Any, b: Any, *, size: Any, stride: Any, padding: Any, dilation: Any,
                      groups: int = 1) -> Any:
    if not served(y, w) or not prod(size):
        return ConvolutionInput.forward(CPU.xp, y, w, b, size=size, stride=stride, padding=padding, dilation=dilation,
                                        groups=groups)
    (n, o, *length), c = y.shape, w.shape[1] * groups
    sizes = sizes_of(tuple(size), o, c, w.shape[2:], tuple(length), stride, padding, dilation, groups)
    x, matrices, b = np.empty((n, c, *size), y.dtype), sizes.matrices(w), along(b, len(size))
    blocks, threads = sizes.images(n)
    with sizes.few_threads(n):
        finish([partial(sizes.add_windows, x[images], y[images], matrices, b) for images in blocks], threads)
    return x


@OpDispatch.register("convolution_weight", "cpu")
def convolution_weight(y: Any, x: Any, *, size: Any, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    if not served(y, x) or not prod(size):
        return ConvolutionWeight.forward(CPU.xp, y, x, size=size, stride=stride, padding=padding, dilation=dilation,
                                         groups=groups)
    (n, o, *length), c = y.shape, x.shape[1]
    sizes = sizes_of(x.shape[2:], o, c, tuple(size), tuple(length), stride, padding, dilation, groups)
    blocks, threads = sizes.images(n)
    blocks = [(images, rows) for images in blocks for rows in sizes.rows()]
    w = np.zeros((o, c // groups, *size), y.dtype)
    shape = groups, o // groups, sizes.height
    first = w.reshape(shape) if sizes.kernel == tuple(size) else np.empty(shape, y.dtype)
    totals = [first, *(np.empty_like(first) for _ in range(min(threads, len(blocks)) - 1))]

    def task(blocks: Any, number: int) -> None:
        for i, (images, rows) in enumerate(blocks):
            order, total = sizes.order(images.stop - images.start), totals[number]
            g, columns = sizes.flat(y[images, :, rows], order), sizes.windows(x[images], rows, order).swapaxes(-2, -1)
            out = None if i else total
            found = np.matmul(g, columns).sum(axis=0, out=out) if order == "first" else np.matmul(g, columns, out=out)
            if i:
                total += found
    with sizes.few_threads(n):
        add_up(task, blocks, len(totals))
    for more in totals[1:]:
        first += more
    if sizes.kernel != tuple(size):
        w[sizes.part] = first.reshape(o, -1, *sizes.kernel)
    return w


@OpDispatch.register("columns", "cpu")
def windows(x: Any, *, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """Return a copy of all windows."""
    length = output_length(x.shape[2:], kernel, stride, padding, dilation)
    out = np.empty((*x.shape[:2], *kernel, *length), x.dtype)
    CPU.assign(out, seen_through(np.ascontiguousarray(padded(np, x, padding)), out.shape, stride, dilation))
    return out
