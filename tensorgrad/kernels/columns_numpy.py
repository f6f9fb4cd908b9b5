"""Convolution by a matrix of columns (im2col): each number is copied for each position in the kernel.

This is fast for kernels that are larger than their input, or have few channels.
"""
from __future__ import annotations

from functools import lru_cache, partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ..runtime.thread_pool import add_up, finish, scratch
from .convolution_costs import threads_for
from .products_numpy import FEW, is_small, rows_with_rows, with_columns
from .windows_numpy import WIDE, along, images_inside, inside, laid, parts, place_by_place, strided, trimmed, useful

MANY = 1 << 10       # number of columns from which on to transpose a kernel
LONG = 32            # row length from which on strided sums are stored by phase of the stride, unless images are the innermost axis


def seen_through(x: Any, kernel: Any, length: Any, stride: Any, dilation: Any) -> Any:
    """Return all windows of x, which includes its border, as a view (N, C, *K, *L)."""
    n, c, *steps = x.strides
    apart = [step * by for step, by in zip((*steps, *steps), (*dilation, *stride), strict=True)]
    return strided(x, (*x.shape[:2], *kernel, *length), (n, c, *apart))


class Columns:
    """Windows of some images as a matrix (C · K, places)."""

    def __init__(self, size: Any, channels: int, kernel: Any, length: Any, how: Any) -> None:
        self.part, self.channels, self.length = useful(size, kernel, length, *how), channels, length
        self.kernel = tuple(t.stop - t.start for t in self.part)
        self.whole, self.height, self.places = self.kernel == kernel, channels * prod(self.kernel), prod(length)
        self.stride, self.padding, self.dilation = trimmed(how, self.part)
        self.reach = tuple((m - 1) * s + e * (k - 1) + 1 for m, s, e, k in zip(length, self.stride, self.dilation, self.kernel, strict=True))
        frame = [inside(-p, 1, r, d) for p, r, d in zip(self.padding, self.reach, size, strict=True)]
        self.to, self.of = (..., *(to for to, _ in frame)), (..., *(of for _, of in frame))
        self.bordered = any(to != slice(0, r) for (to, _), r in zip(frame, self.reach, strict=True))

    def matrix(self, w: Any, n: int = 0) -> Any:
        """Return the kernel as (O, C · K), column-major if that is faster for the columns of n images."""
        if self.whole:
            matrix = np.ascontiguousarray(w).reshape(len(w), -1)
            return np.ascontiguousarray(matrix.T).T if len(w) > FEW and n * self.places >= MANY and is_small(w.size) else matrix
        part = np.empty((*w.shape[:2], *self.kernel), w.dtype)
        place_by_place(part, w[(slice(None), slice(None), *self.part)])
        return part.reshape(len(w), -1)

    def order(self, count: int, apart: bool = True) -> str:
        """Return the memory order of images, channels, kernel and places: per image if `apart` and faster."""
        return "nckl" if apart and (count == 1 or self.places >= WIDE) else "ckln" if images_inside(count, self.length) else "cknl"

    def memory(self, order: str, count: int, dtype: Any) -> tuple[Any, Any]:
        """Return scratch memory for columns: as one matrix or one per image, and as a view (n, c, *k, *l)."""
        memory, view = laid("columns", order, dtype, n=(count,), c=(self.channels,), k=self.kernel, l=self.length)
        return memory.reshape(count, self.height, -1) if order[0] == "n" else memory.reshape(self.height, -1), view

    def frame(self, order: str, count: int, dtype: Any) -> tuple[Any, Any, Any]:
        """Return scratch images with a border, (n, c, *reach), their interior, and all their windows."""
        frame = laid("frame", order.replace("k", ""), dtype, n=(count,), c=(self.channels,), l=self.reach)[1]
        return frame, frame[self.to], seen_through(frame, self.kernel, self.length, self.stride, self.dilation)

    def filled(self, x: Any, order: str) -> Any:
        """The columns of images."""
        memory, columns = scratch.view(Columns.memory, self, order, len(x), x.dtype)
        if self.bordered or order[-1] == "n":
            frame, within, seen = scratch.view(Columns.frame, self, order, len(x), x.dtype)
            if self.bordered:
                frame[...] = 0
            within[...] = x[self.of]
        else:
            seen = seen_through(x[self.of], self.kernel, self.length, self.stride, self.dilation)
        columns[...] = seen
        return memory

    def sums(self, order: str, count: int, dtype: Any) -> Any:
        """Return scratch memory for columns and for their sums, pairs (target, columns) to add, and pairs (index, sums) to copy.

        Where rows are long, sums are stored by phase (the remainder of their place by the strides), so that additions
        run along rows.
        """
        memory, view = self.memory(order, count, dtype)
        every, apart = (slice(None), slice(None)), self.stride if order[-1] == "n" or self.length[-1] >= LONG else (1,) * len(self.stride)
        frame, sums = laid("frame", order, dtype, n=(count,), c=(self.channels,), k=apart, l=tuple(-(-r // q) for r, q in zip(self.reach, apart, strict=True)))
        added, within = [], []
        for place in product(*map(range, self.kernel)):
            rest, to = [], []
            for i, e, m, s, q in zip(place, self.dilation, self.length, self.stride, apart, strict=True):
                rest.append(i * e % q)
                to.append(slice(i * e // q, i * e // q + (m - 1) * (s // q) + 1, s // q))
            added.append((sums[(*every, *rest, *to)], view[(*every, *place)]))
        for rest in product(*map(range, apart)):
            at, of = [], []
            for r, q, inner in zip(rest, apart, self.to[1:], strict=True):
                first = max(-(-(inner.start - r) // q), 0)
                at.append(slice(first * q + r - inner.start, None, q))
                of.append(slice(first, first + len(range(first * q + r, inner.stop, q))))
            within.append(((..., *at), sums[(*every, *rest, *of)]))
        return memory, frame, added, within

    def result(self, outputs: int, order: str, count: int, dtype: Any) -> tuple[Any, Any]:
        """Return scratch memory for images of the output, or its gradient: as a matrix (O, places) in column order, and as (n, O, *L)."""
        memory, view = laid("product", order.replace("k", ""), dtype, n=(count,), c=(outputs,), l=self.length)
        return memory.reshape(outputs, -1), view

    def gathered(self, y: Any, order: str) -> Any:
        """y (n, O, *L) as the matrix (O, places) in the order of columns."""
        memory, view = scratch.view(Columns.result, self, y.shape[1], order, len(y), y.dtype)
        view[...] = y
        return memory

    def threads(self, of: str, x: Any, w: Any, y: Any, how: Any) -> int:
        """Return how many threads should share the images.

        With a kernel larger than its columns, only BLAS's threads work: each of ours would read the whole kernel.
        """
        return threads_for("columns", of, x, w, y, how) if w.size <= self.height * self.places * len(x) else 1

    def blocks(self, n: int, threads: int) -> list[slice]:
        """Return blocks of images."""
        return [images for images, _ in parts(n, 1, self.height * self.places, 0, threads)]


@lru_cache(1 << 10)
def columns_of(size: Any, channels: int, kernel: Any, length: Any, how: Any) -> Columns:
    return Columns(size, channels, kernel, length, how)


def correlate(x: Any, w: Any, b: Any, y: Any, how: Any) -> None:
    """Fill y (N, O, *L) with windows of x times w (O, C, *K), plus b."""
    columns, (n, o, *length) = columns_of(x.shape[2:], w.shape[1], w.shape[2:], y.shape[2:], how), y.shape
    matrix, b, threads = columns.matrix(w, n), along(b, len(length)), columns.threads("output", x, w, y, how)

    def job(images: slice) -> None:
        few, target = x[images], y[images]
        order = columns.order(len(few))
        seen = columns.filled(few, order)
        if order[0] == "n":
            with_columns(matrix, seen, target.reshape(len(few), o, -1))
            if b is not None:
                target += b
            return
        out, view = scratch.view(Columns.result, columns, o, order, len(few), x.dtype)
        with_columns(matrix, seen, out)
        if b is None:
            target[...] = view
        else:
            np.add(view, b, out=target)
    finish([partial(job, images) for images in columns.blocks(n, threads)], threads)


def back(y: Any, w: Any, b: Any, x: Any, how: Any) -> None:
    """Fill x (N, C, *D) with the gradient of the input, given y and w (O, C, *K): sums of columns, plus b."""
    columns, (n, o, *length) = columns_of(x.shape[2:], w.shape[1], w.shape[2:], y.shape[2:], how), y.shape
    matrix, b, threads = columns.matrix(w).T, along(b, len(length)), columns.threads("input", x, w, y, how)

    def job(images: slice) -> None:
        few, target = y[images], x[images]
        order = columns.order(len(few))
        memory, frame, added, within = scratch.view(Columns.sums, columns, order, len(few), x.dtype)
        with_columns(matrix, few.reshape(len(few), o, -1) if order[0] == "n" else columns.gathered(few, order), memory)
        frame[...] = 0
        for to, some in added:
            to += some                  # a view
        if (part := target[columns.of]).shape != target.shape:
            target[...] = 0 if b is None else b
        for at, sums in within:
            if b is None:
                part[at] = sums
            else:
                np.add(sums, b, out=part[at])
    finish([partial(job, images) for images in columns.blocks(n, threads)], threads)


def weight(y: Any, x: Any, out: Any, how: Any) -> None:
    """Fill out (O, C, *K) with the gradient of the kernel, given y (N, O, *L) and x."""
    columns, (n, o) = columns_of(x.shape[2:], out.shape[1], out.shape[2:], y.shape[2:], how), y.shape[:2]
    threads = columns.threads("weight", x, out, y, how)
    blocks = columns.blocks(n, threads)
    count = min(threads, len(blocks))
    direct = columns.whole and out.flags.c_contiguous
    totals = out.reshape(1, o, -1) if direct and count == 1 else np.empty((count, o, columns.height), x.dtype)

    def task(blocks: Any, number: int) -> None:
        for i, images in enumerate(blocks):
            few, g = x[images], y[images]
            order = columns.order(len(few), apart=columns.height <= columns.places)      # then the gradient needs no copy
            seen = columns.filled(few, order)
            rows = g.reshape(len(few), o, -1) if order[0] == "n" else columns.gathered(g, order)
            product = rows_with_rows(rows, seen, None if i else totals[number])
            if i:
                totals[number] += product
    add_up(task, blocks, count)
    if direct:
        if count > 1:
            totals.sum(axis=0, out=out.reshape(o, -1))
        return
    total = totals[0] if count == 1 else totals.sum(axis=0)
    if not columns.whole:
        out[...] = 0
    place_by_place(out[(slice(None), slice(None), *columns.part)], total.reshape(o, out.shape[1], *columns.kernel))
