"""Convolution on NumPy: rows of the padded input, shifted sideways and laid one above the other, so that the windows of a row of the result are a matrix.

With a kernel of K₁ × K₂, memory holds (row, place in K₂, channel, image, column). The K₁ rows that a row of the result sees lie behind one another there:
without a copy they are a matrix (K₁ · K₂ · channels, images · columns), with each number copied K₂ times and not K₁ · K₂ (M. Cho & D. Brand, MEC, 2017).
It holds as many images, or rows, as the cache does, in memory that is used again and again; threads share the images. The gradient of x is a convolution
of y for each remainder of the places in x by the strides.
"""
from __future__ import annotations

from functools import lru_cache, partial
from itertools import product
from math import gcd, prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..dispatch import OpDispatch
from ..ops.convolution import Convolution, ConvolutionInput, ConvolutionWeight, output_length, padded
from ..sharing import SPEED, add_up, available, finish, scratch, share, spans
from . import winograd_numpy as winograd
from .convolution_costs import ranked
from .windows_numpy import clear, inside, trimmed, useful

CPU = OpDispatch.backend("cpu")
BLOCK = 1 << 19      # elements of shifted rows at a time
COPIED = 1.5         # nanoseconds that an element of columns takes
PLANES = 1 << 18     # elements of shifted rows at a time, of channels that are not mixed
NARROW = 16          # columns below which images lie innermost
WIDE = 48            # columns from which on BLAS multiplies row by row of the result


def served(*arrays: Any) -> bool:
    return all(a.size and a.dtype == arrays[0].dtype and a.dtype.kind == "f" and a.dtype.itemsize > 2 for a in arrays)


# ── shifted rows ──────────────────────────────────────────────────────────────────────────────────────────────────────


def laid(name: str, order: str, dtype: Any, **sizes: Any) -> tuple[Any, Any]:
    """Scratch memory whose axes, or groups of axes, lie in this order, and a view of it as (n, c, h, *k, *l): images, channels, rows, kernel, columns."""
    memory = scratch.take(name, tuple([n for axis in order for n in sizes[axis]]), dtype)
    return memory, memory.transpose(turned(order, tuple([len(sizes[axis]) for axis in order])))


@lru_cache(1 << 8)
def turned(order: str, lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Where the axes of the groups n, c, h, k and l are, if groups of so many lie in this order."""
    places, start = {}, 0
    for axis, length in zip(order, lengths, strict=True):
        places[axis] = range(start, start := start + length)
    return tuple(i for axis in "nchkl" if axis in places for i in places[axis])


def images_inside(count: int, length: Any) -> bool:
    """Whether images lie innermost: where rows are so short that copying them one by one is slow."""
    return bool(count >= 8 and length[-1] < NARROW)


def fill(out: Any, x: Any, first: int, step: int, how: Any) -> None:
    """out[n, c, r, *k, *l] = x[n, c, first + r · step, *(l · stride + k · dilation − padding)], 0 outside of x.

    All but x are without their first axis of places.
    """
    stride, padding, dilation = how
    kernel, length, lead = out.shape[3:3 + len(stride)], out.shape[3 + len(stride):], (slice(None), slice(None))
    rows, source = inside(first, step, out.shape[2], x.shape[2])
    found = [[inside(i * e - p, s, n, d) for i in range(k)]
             for k, e, p, s, n, d in zip(kernel, dilation, padding, stride, length, x.shape[3:], strict=True)]
    clear(out, 2, rows)
    for place in product(*map(range, kernel)):
        at = [axis[i] for i, axis in zip(place, found, strict=True)]
        target = out[(*lead, rows, *place)]
        for i, (to, _) in enumerate(at, 3):
            clear(target, i, to)
        target[(*lead, slice(None), *(to for to, _ in at))] = x[(*lead, source, *(of for _, of in at))]


def fill_turned(out: Any, order: str, x: Any, first: int, step: int, how: Any) -> None:
    """The same where images lie innermost: x is turned once, its columns apart by the stride, so that all shifts are long runs."""
    stride, padding, dilation = how
    n, c, h, *sizes = out.shape
    kernel, length = sizes[:len(stride)], sizes[len(stride):]
    reach = tuple(m + e * (k - 1) // s for m, e, k, s in zip(length, dilation, kernel, stride, strict=True))
    _, turned = laid("turned", order, x.dtype, n=(n,), c=(c,), h=(h,), k=stride, l=reach)
    fill(turned, x, first, step, (stride, padding, (1,) * len(stride)))
    every = (slice(None),) * 3
    for place in product(*map(range, kernel)):
        shifts = [divmod(k * e, s) for k, e, s in zip(place, dilation, stride, strict=True)]
        out[(*every, *place)] = turned[(*every, *(i for _, i in shifts), *(slice(j, j + m) for (j, _), m in zip(shifts, length, strict=True)))]


def parts(count: int, rows: int, heavy: int, fixed: int, split: int) -> list[tuple[slice, slice]]:
    """Which images, and which rows of the result, to take at a time: a row takes `heavy` elements an image, and an image `fixed` more."""
    each = rows * heavy + fixed
    if each <= BLOCK:
        return [(images, slice(0, rows)) for images in spans(count, min(-(-count * each // (BLOCK * split)) * split, count))]
    step = max((BLOCK - fixed) // heavy, 1)
    return [(slice(i, i + 1), slice(j, min(j + step, rows))) for i in range(count) for j in range(0, rows, step)]


def threads_for(w: Any, places: int) -> int:
    """How many threads should share products with all of a kernel at so many places."""
    return available(w.size * places / SPEED)


def place_by_place(to: Any, of: Any) -> None:
    """Copy kernels (O, C, *K) one place after the other, so that copies run along channels."""
    def task(part: slice) -> None:
        for place in product(*map(range, to.shape[2:])):
            to[(part, slice(None), *place)] = of[(part, slice(None), *place)]
    share(task, spans(len(to), available(of.size * 2)))


def as_matrix(w: Any) -> Any:
    """A kernel (O, C, *K) as a matrix (O, K · C). It is copied along the channels that lie closer to each other: BLAS takes a matrix either way."""
    o, places = len(w), range(2, w.ndim)
    if abs(w.strides[0]) >= abs(w.strides[1]):
        return np.ascontiguousarray(w.transpose(0, *places, 1)).reshape(o, -1)
    return np.ascontiguousarray(w.transpose(*places, 1, 0)).reshape(-1, o).T


def correlate(x: Any, w: Any, b: Any, y: Any, how: Any) -> None:
    """Fill y (N, O, *L), which may lie anywhere, with windows of x times w (O, C, *K), plus b."""
    threads = threads_for(w, len(x) * prod(y.shape[2:]))
    finish(correlation(x, w, b, y, how, threads), threads)


def correlation(x: Any, w: Any, b: Any, y: Any, how: Any, split: int) -> list[Any]:
    """The jobs that `correlate` consists of, at least `split` where there are so many images."""
    part = useful(x.shape[2:], w.shape[2:], y.shape[2:], *how)
    w, (stride, padding, dilation) = w[(slice(None), slice(None), *part)], trimmed(how, part)
    o, c, k, *others = w.shape
    n, length, s, d = len(x), y.shape[2:], stride[0], dilation[0]
    if not w.size:
        y[...] = 0 if b is None else b.reshape(-1, *(1,) * len(length))
        return []
    matrix = as_matrix(w)
    height, inner = prod(others) * c, prod(length[1:])
    offset = None if b is None else b.reshape(-1, *(1,) * len(length))
    rest = [numbers[1:] for numbers in (stride, padding, dilation)]

    def job(images: slice, rows: slice) -> None:
        count, m = images.stop - images.start, rows.stop - rows.start
        tall, wide = (m - 1) * s + d * (k - 1) + 1, count * inner
        order = "hkcln" if images_inside(count, length) else "hkcnl"
        memory, view = laid("shifted", order, x.dtype, n=(count,), c=(c,), h=(tall,), k=others, l=length[1:])
        (fill_turned if order[-1] == "n" else fill)(view, *(order,) * (order[-1] == "n"), x[images], rows.start * s - padding[0], 1, rest)
        line, item = height * wide * x.itemsize, x.itemsize
        order = order.replace("k", "")
        if d == 1 and (wide >= WIDE or m == 1):
            out, view = laid("product", order, x.dtype, n=(count,), c=(o,), h=(m,), l=length[1:])
            np.matmul(matrix, as_strided(memory, (m, k * height, wide), (s * line, wide * item, item)), out=out.reshape(m, o, wide))
        else:
            columns = scratch.take("columns", (k, height, m, wide), x.dtype)
            np.copyto(columns, as_strided(memory, columns.shape, (d * line, wide * item, s * line, item)))
            out, view = laid("product", "c" + order.replace("c", ""), x.dtype, n=(count,), c=(o,), h=(m,), l=length[1:])
            np.matmul(matrix, columns.reshape(k * height, -1), out=out.reshape(o, -1))
        if offset is None:
            y[images, :, rows] = view
        else:
            np.add(view, offset, out=y[images, :, rows])
    blocks = parts(n, length[0], s * height * inner, max(d * (k - 1) + 1 - s, 0) * height * inner, split)
    return [partial(job, *block) for block in blocks]


def weight(y: Any, x: Any, out: Any, how: Any) -> None:
    """Fill out (O, C, *K) with the gradient of the kernel, given y (N, O, *L) and x.

    Here rows of one remainder by the stride lie together, and the channels apart: then what a row of the kernel sees is a matrix.
    """
    part = useful(x.shape[2:], out.shape[2:], y.shape[2:], *how)
    stride, padding, dilation = trimmed(how, part)
    c, n, o, length = x.shape[1], len(x), y.shape[1], y.shape[2:]
    k, *others = (t.stop - t.start for t in part)
    out[...] = 0
    if not k * prod(others):
        return
    height, inner, s, d = prod(others) * c, prod(length[1:]), stride[0], dilation[0]
    rest = [numbers[1:] for numbers in (stride, padding, dilation)]
    phases = sorted({i * d % s for i in range(k)})
    more = d * (k - 1) // s
    threads = available(o * k * height * n * prod(length) / SPEED)
    blocks = parts(n, length[0], len(phases) * height * inner, len(phases) * more * height * inner, threads)
    totals = np.empty((min(threads, len(blocks)), k, o, height), x.dtype)

    def task(blocks: Any, number: int) -> None:
        total = totals[number]
        for i, (images, rows) in enumerate(blocks):
            count, m = images.stop - images.start, rows.stop - rows.start
            order = "kchln" if images_inside(count, length) else "kchnl"
            memory = []
            for phase in phases:
                lines, view = laid(f"shifted{phase}", order, x.dtype, n=(count,), c=(c,), h=(m + more,), k=others, l=length[1:])
                (fill_turned if order[-1] == "n" else fill)(view, *(order,) * (order[-1] == "n"), x[images], rows.start * s - padding[0] + phase, s, rest)
                memory.append(lines)
            g, view = laid("product", order[1:], x.dtype, n=(count,), c=(o,), h=(m,), l=length[1:])
            np.copyto(view, y[images, :, rows])
            flat, wide = g.reshape(o, -1), count * inner
            for j in range(k):
                start = j * d // s * wide
                seen = memory[phases.index(j * d % s)].reshape(height, -1)[:, start:start + m * wide].T
                if i:
                    total[j] += np.matmul(flat, seen)
                else:
                    np.matmul(flat, seen, out=total[j])
    add_up(task, blocks, len(totals))
    total = totals[0] if len(totals) == 1 else totals.sum(axis=0)
    total = total.reshape(k, o, *others, c)
    place_by_place(out[(slice(None), slice(None), *part)], np.moveaxis(total, (1, -1), (0, 1)))


def back(y: Any, w: Any, b: Any, x: Any, how: Any) -> None:
    """Fill x (N, C, *D) with the gradient of the input, given y and w (O, C, *K)."""
    by_remainders(correlation, y, w.swapaxes(0, 1), b, x, how, threads_for(w, len(y) * prod(y.shape[2:])))


def by_remainders(correlation: Any, y: Any, w: Any, b: Any, x: Any, how: Any, threads: int) -> None:
    """Fill x with y spread by w: places in x that leave one remainder by the stride see the same part of the kernel, without a stride."""
    jobs, split = [], -(-threads // prod(how[0]))
    for phase in product(*map(range, how[0])):
        taps, shifts, apart = [], [], []
        for i, s, p, d, k in zip(phase, *how, w.shape[2:], strict=True):
            g = gcd(s, d)
            first = next((j for j in range(min(s // g, k)) if (i + p - j * d) % s == 0), k)
            count = len(range(first, k, s // g))
            taps.append(slice(first + (count - 1) * (s // g), first - 1 if first else None, -(s // g)) if count else slice(0, 0))
            shifts.append((count - 1) * (d // g) - (i + p - first * d) // s)
            apart.append(d // g)
        target = x[(..., *(slice(i, None, s) for i, s in zip(phase, how[0], strict=True)))]
        if target.size:
            jobs += correlation(y, w[(slice(None), slice(None), *taps)], b, target, ((1,) * len(phase), tuple(shifts), tuple(apart)), split)
    finish(jobs, threads)


# ── one channel at a time ─────────────────────────────────────────────────────────────────────────────────────────────


def is_depthwise(w: Any, groups: int) -> bool:
    """Whether each channel has a kernel of its own: then there is nothing to multiply as matrices."""
    return groups > 1 and w.shape[1] == 1 and w.shape[0] == groups


class Planes:
    """Rows of some channels of an image, shifted sideways as above: each row of the kernel sees, of each channel, a matrix (places in that row, places)."""

    def __init__(self, kernel: Any, length: Any, how: Any) -> None:
        (self.rows, *self.others), self.length, self.how = kernel, length, how
        self.height = length[0] + how[2][0] * (self.rows - 1) // how[0][0]
        self.inner = prod(length[1:])

    def blocks(self, n: int, c: int) -> list[tuple[int, slice]]:
        """Which image, and which of its channels, to take at a time."""
        step = max(PLANES // (self.height * self.inner * prod(self.others) * min(self.how[0][0], self.rows)), 1)
        return [(i, slice(j, min(j + step, c))) for i in range(n) for j in range(0, c, step)]

    def seen(self, x: Any) -> Any:
        """What each row of the kernel sees of an x (C, *D): (C, places in the row, places)."""
        (s, *stride), (p, *padding), (d, *dilation) = self.how
        phases = {}
        for phase in sorted({i * d % s for i in range(self.rows)}):
            lines, view = laid(f"shifted{phase}", "nkchl", x.dtype, n=(1,), c=(len(x),), h=(self.height,), k=self.others, l=self.length[1:])
            fill(view, x[None], phase - p, s, (stride, padding, dilation))
            phases[phase] = lines.reshape(prod(self.others), len(x), -1).swapaxes(0, 1)
        for i in range(self.rows):
            start = i * d // s * self.inner
            yield phases[i * d % s][..., start:start + self.length[0] * self.inner]


def depthwise(x: Any, w: Any, b: Any, y: Any, how: Any) -> None:
    finish(depthwise_jobs(x, w, b, y, how, 1), plane_threads(w, y))


def depthwise_jobs(x: Any, w: Any, b: Any, y: Any, how: Any, _: int) -> list[Any]:
    if not w.size:
        y[...] = 0 if b is None else b.reshape(-1, *(1,) * (y.ndim - 2))
        return []
    planes, numbers = Planes(w.shape[2:], y.shape[2:], how), np.ascontiguousarray(w).reshape(len(w), w.shape[2], 1, -1)
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


def depthwise_back(y: Any, w: Any, b: Any, x: Any, how: Any) -> None:
    by_remainders(depthwise_jobs, y, w, b, x, how, plane_threads(w, y))


def plane_threads(w: Any, y: Any) -> int:
    """How many threads should share products of y's size with each place of a depthwise kernel."""
    return available(w[0].size * y.size / 6)


def depthwise_weight(y: Any, x: Any, out: Any, how: Any) -> None:
    planes, (n, c) = Planes(out.shape[2:], y.shape[2:], how), x.shape[:2]
    blocks, threads = planes.blocks(n, c), plane_threads(out, y)
    totals = np.zeros((min(threads, len(blocks)), c, planes.rows, prod(planes.others), 1), x.dtype)

    def task(blocks: Any, number: int) -> None:
        for image, channels in blocks:
            g = y[image, channels].reshape(-1, prod(y.shape[2:]), 1)
            for i, seen in enumerate(planes.seen(x[image, channels])):
                totals[number, channels, i] += np.matmul(seen, g)
    add_up(task, blocks, len(totals))
    out[...] = totals.sum(axis=0).reshape(out.shape)


# ── windows as columns ────────────────────────────────────────────────────────────────────────────────────────────────


def seen_through(x: Any, kernel: Any, length: Any, stride: Any, dilation: Any) -> Any:
    """All windows of x, which has its border, as a view (N, C, *K, *L)."""
    n, c, *steps = x.strides
    apart = [step * by for step, by in zip((*steps, *steps), (*dilation, *stride), strict=True)]
    return as_strided(x, (*x.shape[:2], *kernel, *length), (n, c, *apart))


class Columns:
    """Windows of some images as the columns of a matrix (C · K, places), each number copied for all of K, for a kernel that is a matrix as it lies.

    Worth it where a kernel is larger than what it sees, or sees few channels.
    """

    def __init__(self, size: Any, channels: int, kernel: Any, length: Any, how: Any) -> None:
        self.part, self.channels, self.length = useful(size, kernel, length, *how), channels, length
        self.kernel = tuple(t.stop - t.start for t in self.part)
        self.whole, self.height, self.places = self.kernel == kernel, channels * prod(self.kernel), prod(length)
        self.stride, self.padding, self.dilation = trimmed(how, self.part)
        self.reach = tuple((m - 1) * s + e * (k - 1) + 1 for m, s, e, k in zip(length, self.stride, self.dilation, self.kernel, strict=True))
        frame = [inside(-p, 1, r, d) for p, r, d in zip(self.padding, self.reach, size, strict=True)]
        self.to, self.of = (..., *(to for to, _ in frame)), (..., *(of for _, of in frame))
        self.bordered = any(to != slice(0, r) for (to, _), r in zip(frame, self.reach, strict=True))

    def matrix(self, w: Any) -> Any:
        """The kernel as (O, C · K)."""
        if self.whole:
            return np.ascontiguousarray(w).reshape(len(w), -1)
        part = np.empty((*w.shape[:2], *self.kernel), w.dtype)
        place_by_place(part, w[(slice(None), slice(None), *self.part)])
        return part.reshape(len(w), -1)

    def order(self, count: int, apart: bool = True) -> str:
        """How images, channels, kernel and places lie: image by image, if they may lie `apart` and it pays, or together as one matrix."""
        return "nckl" if apart and (count == 1 or self.places >= WIDE) else "ckln" if images_inside(count, self.length) else "cknl"

    def memory(self, name: str, order: str, count: int, dtype: Any) -> tuple[Any, Any]:
        """Scratch memory for columns, and a view of it as (n, c, *k, *l)."""
        return laid(name, order, dtype, n=(count,), c=(self.channels,), k=self.kernel, l=self.length)

    def framed(self, order: str, count: int, dtype: Any) -> Any:
        """Memory for images with their border, (n, c, *reach)."""
        return laid("frame", order.replace("k", ""), dtype, n=(count,), c=(self.channels,), l=self.reach)[1]

    def filled(self, x: Any, order: str) -> Any:
        """The columns of images."""
        whole = x[self.of]
        if self.bordered or order[-1] == "n":
            whole = self.framed(order, len(x), x.dtype)
            if self.bordered:
                whole[...] = 0
            whole[self.to] = x[self.of]
        memory, view = self.memory("columns", order, len(x), x.dtype)
        np.copyto(view, seen_through(whole, self.kernel, self.length, self.stride, self.dilation))
        return memory

    def spread(self, view: Any, order: str, b: Any, x: Any) -> None:
        """Fill images x with the sums of columns, (n, c, *k, *l), plus b."""
        whole = self.framed(order, len(x), x.dtype)
        whole[...] = 0
        for place in product(*map(range, self.kernel)):
            whole[(..., *(slice(i * e, i * e + (m - 1) * s + 1, s) for i, e, m, s in
                          zip(place, self.dilation, self.length, self.stride, strict=True)))] += view[(slice(None), slice(None), *place)]
        target = x[self.of]
        if target.shape != x.shape:
            x[...] = 0 if b is None else b
        if b is None:
            target[...] = whole[self.to]
        else:
            np.add(whole[self.to], b, out=target)

    def gathered(self, y: Any, order: str) -> Any:
        """y (n, O, *L) as the matrix (O, places) in the order of columns."""
        memory, view = laid("product", order.replace("k", ""), y.dtype, n=(len(y),), c=(y.shape[1],), l=self.length)
        np.copyto(view, y)
        return memory.reshape(y.shape[1], -1)

    def threads(self, w: Any, n: int) -> int:
        """How many threads should share n images. A kernel larger than all that it sees is left to BLAS's: each of ours would have to go through all of it."""
        columns = self.height * self.places * n
        return available(w.size * n * self.places / SPEED + columns * COPIED) if w.size <= columns else 1

    def blocks(self, n: int, threads: int) -> list[slice]:
        """Which images to take at a time."""
        return [images for images, _ in parts(n, 1, self.height * self.places, 0, threads)]


@lru_cache(1 << 10)
def columns_of(size: Any, channels: int, kernel: Any, length: Any, how: Any) -> Columns:
    return Columns(size, channels, kernel, length, how)


def along(b: Any, axes: int) -> Any:
    """A bias that goes with (n, c, *places)."""
    return None if b is None else b.reshape(-1, *(1,) * axes)


def by_columns(x: Any, w: Any, b: Any, y: Any, how: Any) -> None:
    """`correlate` by columns."""
    columns, (n, o, *length) = columns_of(x.shape[2:], w.shape[1], w.shape[2:], y.shape[2:], how), y.shape
    matrix, b, threads = columns.matrix(w), along(b, len(length)), columns.threads(w, n)

    def job(images: slice) -> None:
        few, target = x[images], y[images]
        order = columns.order(len(few))
        seen = columns.filled(few, order)
        if order[0] == "n":
            np.matmul(matrix, seen.reshape(len(few), columns.height, -1), out=target.reshape(len(few), o, -1))
            if b is not None:
                target += b
            return
        out, view = laid("product", order.replace("k", ""), x.dtype, n=(len(few),), c=(o,), l=length)
        np.matmul(matrix, seen.reshape(columns.height, -1), out=out.reshape(o, -1))
        if b is None:
            np.copyto(target, view)
        else:
            np.add(view, b, out=target)
    finish([partial(job, images) for images in columns.blocks(n, threads)], threads)


def back_by_columns(y: Any, w: Any, b: Any, x: Any, how: Any) -> None:
    """`back` by columns."""
    columns, (n, o, *length) = columns_of(x.shape[2:], w.shape[1], w.shape[2:], y.shape[2:], how), y.shape
    matrix, b, threads = columns.matrix(w).T, along(b, len(length)), columns.threads(w, n)

    def job(images: slice) -> None:
        few = y[images]
        order = columns.order(len(few))
        memory, view = columns.memory("columns", order, len(few), x.dtype)
        if order[0] == "n":
            np.matmul(matrix, few.reshape(len(few), o, -1), out=memory.reshape(len(few), columns.height, -1))
        else:
            np.matmul(matrix, columns.gathered(few, order), out=memory.reshape(columns.height, -1))
        columns.spread(view, order, b, x[images])
    finish([partial(job, images) for images in columns.blocks(n, threads)], threads)


def weight_by_columns(y: Any, x: Any, out: Any, how: Any) -> None:
    """`weight` by columns."""
    columns, (n, o) = columns_of(x.shape[2:], out.shape[1], out.shape[2:], y.shape[2:], how), y.shape[:2]
    threads = columns.threads(out, n)
    blocks = columns.blocks(n, threads)
    count = min(threads, len(blocks))
    direct = columns.whole and out.flags.c_contiguous
    totals = out.reshape(1, o, -1) if direct and count == 1 else np.empty((count, o, columns.height), x.dtype)

    def task(blocks: Any, number: int) -> None:
        for i, images in enumerate(blocks):
            few, g = x[images], y[images]
            order = columns.order(len(few), apart=False)
            seen = columns.filled(few, order).reshape(columns.height, -1).T
            if i:
                totals[number] += np.matmul(columns.gathered(g, order), seen)
            else:
                np.matmul(columns.gathered(g, order), seen, out=totals[number])
    add_up(task, blocks, count)
    if direct:
        if count > 1:
            totals.sum(axis=0, out=out.reshape(o, -1))
        return
    total = totals[0] if count == 1 else totals.sum(axis=0)
    if not columns.whole:
        out[...] = 0
    place_by_place(out[(slice(None), slice(None), *columns.part)], total.reshape(o, out.shape[1], *columns.kernel))


# ── the kernels ───────────────────────────────────────────────────────────────────────────────────────────────────────


def by_groups(task: Any, groups: int, how: Any, *arrays: Any) -> None:
    """`task(*arrays, how)` for each group: parts of the arrays along an axis (array, axis). One axis of places is the second of two, so that rows are long."""
    if len(how[0]) == 1:
        how = ((1, *how[0]), (0, *how[1]), (1, *how[2]))
        arrays = tuple((a if a is None or a.ndim == 1 else a[:, :, None], axis) for a, axis in arrays)
    if groups == 1:
        return task(*(a for a, _ in arrays), how)
    for i in range(groups):
        task(*(None if a is None else a[(slice(None),) * axis + (spans(a.shape[axis], groups)[i],)] for a, axis in arrays), how)


COMPUTE = {         # what fills the output, the gradient of the input or of the weight, in each way; by points it may have to be found in another way
    "output": {"rows": correlate, "columns": by_columns, "points": winograd.correlate},
    "input": {"rows": back, "columns": back_by_columns, "points": winograd.back},
    "weight": {"rows": weight, "columns": weight_by_columns, "points": winograd.weight},
}


def ways(of: str, x: Any, w: Any, y: Any, how: Any) -> tuple[str, ...]:
    """The ways to compute one of them from the others, the quickest first."""
    columns = 0 < columns_of(x.shape[2:], w.shape[1], w.shape[2:], y.shape[2:], how).height * prod(y.shape[2:]) <= BLOCK    # 0: nothing but padding is seen
    there_are = ("rows", *["columns"] * columns, *["points"] * winograd.fits(w.shape[2:], how))
    return ranked(of, there_are, x.shape, w.shape, y.shape, how[0])


def compute(of: str, found: tuple[str, ...], *arrays: Any) -> None:
    """Do it in the first of the ways that were found which succeeds."""
    for way in found:
        if COMPUTE[of][way](*arrays) is not False:
            return


def forward(x: Any, w: Any, b: Any, y: Any, how: Any) -> None:
    compute("output", ways("output", x, w, y, how), x, w, b, y, how)


def backward(y: Any, w: Any, b: Any, x: Any, how: Any) -> None:
    compute("input", ways("input", x, w, y, how), y, w, b, x, how)


def of_weight(y: Any, x: Any, out: Any, how: Any) -> None:
    compute("weight", ways("weight", x, out, y, how), y, x, out, how)


def is_matrix(w: Any, stride: Any, padding: Any, groups: int, places: int) -> bool:
    """Whether convolution is a product with a matrix, for as many places as it takes for one an image to be fast."""
    return groups == 1 and prod(w.shape[2:]) == 1 and set(stride) == {1} and not any(padding) and places >= WIDE


@OpDispatch.register("convolution", "cpu")
def convolution(x: Any, w: Any, b: Any, *, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    length = output_length(x.shape[2:], w.shape[2:], stride, padding, dilation)
    if not served(x, w) or not prod(length):
        return Convolution.forward(np, x, w, b, stride=stride, padding=padding, dilation=dilation, groups=groups)
    n, o = len(x), len(w)
    y = np.empty((n, o, *length), x.dtype)
    if is_depthwise(w, groups):
        by_groups(depthwise, 1, (stride, padding, dilation), (x, 1), (w, 0), (b, 0), (y, 1))
    elif is_matrix(w, stride, padding, groups, prod(length)):
        np.matmul(w.reshape(o, -1), x.reshape(n, x.shape[1], -1), out=y.reshape(n, o, -1))
        if b is not None:
            y += b.reshape(-1, *(1,) * len(length))
    else:
        by_groups(forward, groups, (stride, padding, dilation), (x, 1), (w, 0), (b, 0), (y, 1))
    return y


@OpDispatch.register("convolution_input", "cpu")
def convolution_input(y: Any, w: Any, b: Any, *, size: Any, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    if not served(y, w) or not prod(size):
        return ConvolutionInput.forward(np, y, w, b, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups)
    n, c = len(y), w.shape[1] * groups
    x = np.empty((n, c, *size), y.dtype)
    if is_depthwise(w, groups):
        by_groups(depthwise_back, 1, (stride, padding, dilation), (y, 1), (w, 0), (b, 0), (x, 1))
    elif is_matrix(w, stride, padding, groups, prod(size)) and y.shape[2:] == x.shape[2:]:
        np.matmul(w.reshape(len(w), -1).T, y.reshape(n, len(w), -1), out=x.reshape(n, c, -1))
        if b is not None:
            x += b.reshape(-1, *(1,) * len(size))
    else:
        by_groups(backward, groups, (stride, padding, dilation), (y, 1), (w, 0), (b, 0), (x, 1))
    return x


@OpDispatch.register("convolution_weight", "cpu")
def convolution_weight(y: Any, x: Any, *, size: Any, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    if not served(y, x) or not prod(size):
        return ConvolutionWeight.forward(np, y, x, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups)
    o, c = y.shape[1], x.shape[1] // groups
    out = np.empty((o, c, *size), y.dtype)
    if groups > 1 and c == 1 and o == groups:
        by_groups(depthwise_weight, 1, (stride, padding, dilation), (y, 1), (x, 1), (out, 0))
    else:
        by_groups(of_weight, groups, (stride, padding, dilation), (y, 1), (x, 1), (out, 0))
    return out


@OpDispatch.register("columns", "cpu")
def windows(x: Any, *, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """All windows in one copy."""
    (n, c, *size), length = x.shape, output_length(x.shape[2:], kernel, stride, padding, dilation)
    x = np.ascontiguousarray(padded(np, x, padding)).reshape(1, n * c, *(d + 2 * p for d, p in zip(size, padding, strict=True)))
    out = np.empty((n, c, *kernel, *length), x.dtype)
    CPU.assign(out.reshape(n * c, *kernel, *length), seen_through(x, kernel, length, stride, dilation)[0])
    return out
