"""Convolution by shifted rows of the padded input, stacked so that the windows of a row of the result form a matrix.

With a kernel of K₁ × K₂, memory holds (row, place in K₂, channel, image, column). The K₁ rows that a row of the result
depends on are adjacent there: without a copy they are a matrix (K₁ · K₂ · channels, images · columns), with each number
copied K₂ times and not K₁ · K₂ (M. Cho & D. Brand, MEC, 2017). Blocks of images, or rows, fit the cache, in memory that
is reused; threads share the images. The gradient of x is a convolution of y for each phase of x (the remainder of a
place by the strides).
"""
from __future__ import annotations

from functools import lru_cache, partial
from itertools import product
from math import gcd, prod
from typing import Any, NamedTuple

import numpy as np

from ..runtime.thread_pool import add_up, finish, scratch
from .convolution_costs import threads_for
from .products_numpy import FEW, is_small, rows_with_rows, with_columns
from .windows_numpy import WIDE, along, around, images_inside, inside, laid, parts, place_by_place, strided, trimmed, useful

# ── shifted rows ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Shifted(NamedTuple):
    """Scratch memory for rows of an input, and the plan to fill it: parts to clear, copies from x, internal moves."""

    memory: Any
    clears: list[Any]
    copies: list[tuple[Any, Any]]
    moves: list[tuple[Any, Any]]

    def fill(self, x: Any) -> None:
        for part in self.clears:
            part[...] = 0
        for part, at in self.copies:
            part[...] = x[at]
        for part, of in self.moves:
            part[...] = of


def shifted(name: str, order: str, size: Any, first: int, step: int, how: Any, dtype: Any, **sizes: Any) -> Shifted:
    """Plan out[n, c, r, *k, *l] = x[n, c, first + r · step, *(l · stride + k · dilation − padding)], 0 outside of x (N, C, *size).

    `how` is for all axes but the first. With images innermost, x is transposed once, its columns grouped by phase of
    the stride: copies are long runs.
    """
    memory, out = laid(name, order, dtype, **sizes)
    if order[-1] != "n":
        return Shifted(memory, *filling(out, size, first, step, how), [])
    stride, padding, dilation = how
    kernel, length = sizes["k"], sizes["l"]
    reach = tuple(m + e * (k - 1) // s for m, e, k, s in zip(length, dilation, kernel, stride, strict=True))
    _, turned = laid("turned", order, dtype, **(sizes | {"k": stride, "l": reach}))
    every, moves = (slice(None),) * 3, []
    for place in product(*map(range, kernel)):
        shifts = [divmod(k * e, s) for k, e, s in zip(place, dilation, stride, strict=True)]
        of = turned[(*every, *(i for _, i in shifts), *(slice(j, j + m) for (j, _), m in zip(shifts, length, strict=True)))]
        moves.append((out[(*every, *place)], of))
    return Shifted(memory, *filling(turned, size, first, step, (stride, padding, (1,) * len(stride))), moves)


def filling(out: Any, size: Any, first: int, step: int, how: Any) -> tuple[list[Any], list[tuple[Any, Any]]]:
    """The parts of `out` to clear, and those to copy to, each with the part of x to copy."""
    stride, padding, dilation = how
    kernel, length, lead = out.shape[3:3 + len(stride)], out.shape[3 + len(stride):], (slice(None), slice(None))
    rows, source = inside(first, step, out.shape[2], size[0])
    found = [[inside(i * e - p, s, n, d) for i in range(k)]
             for k, e, p, s, n, d in zip(kernel, dilation, padding, stride, length, size[1:], strict=True)]
    clears, copies = [*around(out, 2, rows)], []
    for place in product(*map(range, kernel)):
        at = [axis[i] for i, axis in zip(place, found, strict=True)]
        target = out[(*lead, rows, *place)]
        for i, (to, _) in enumerate(at, 3):
            clears += around(target, i, to)
        copies.append((target[(*lead, slice(None), *(to for to, _ in at))], (*lead, source, *(of for _, of in at))))
    return clears, copies


# ── the output ────────────────────────────────────────────────────────────────────────────────────────────────────────


def as_matrix(w: Any) -> Any:
    """Return a kernel (O, C, *K) as a matrix (O, K · C), column-major if it is small or its output channels are closer in memory."""
    o, places = len(w), range(2, w.ndim)
    if o > FEW if is_small(w.size) else abs(w.strides[0]) < abs(w.strides[1]):
        return np.ascontiguousarray(w.transpose(*places, 1, 0)).reshape(-1, o).T
    return np.ascontiguousarray(w.transpose(0, *places, 1)).reshape(o, -1)


class Rows:
    """Sizes of a convolution by rows: of the input, of the part of the kernel that sees more than padding, and of the output."""

    def __init__(self, size: Any, shape: Any, length: Any, how: Any) -> None:
        self.outputs, self.channels, *kernel = shape
        self.size, self.length = size, length
        self.part = useful(size, kernel, length, *how)
        (self.stride, *stride), (self.padding, *padding), (self.dilation, *dilation) = trimmed(how, self.part)
        self.rest = stride, padding, dilation
        self.kernel, *self.others = (t.stop - t.start for t in self.part)
        self.height, self.inner = prod(self.others) * self.channels, prod(length[1:])

    def useful(self, w: Any) -> Any:
        return w[(slice(None), slice(None), *self.part)]

    def order(self, count: int, apart: str) -> str:
        """Return the memory order of the axes, with those in `apart` outermost."""
        return apart.replace("n", "ln" if images_inside(count, self.length) else "nl")

    def sizes(self, count: int, rows: int) -> dict[str, Any]:
        return {"n": (count,), "c": (self.channels,), "h": (rows,), "k": self.others, "l": self.length[1:]}

    def result(self, order: str, count: int, rows: int, dtype: Any) -> tuple[Any, Any]:
        """Memory for some rows of the output, or of its gradient."""
        return laid("product", order, dtype, n=(count,), c=(self.outputs,), h=(rows,), l=self.length[1:])


class OutputRows(Rows):
    """The output by rows: all input rows that a row of the output depends on form one matrix."""

    def blocks(self, n: int, split: int) -> list[tuple[slice, slice]]:
        """Return blocks of work: pairs (images, rows of the output)."""
        line = self.height * self.inner
        return parts(n, self.length[0], self.stride * line, max(self.dilation * (self.kernel - 1) + 1 - self.stride, 0) * line, split)

    def one_by_one(self, count: int, m: int) -> bool:
        """Return True if BLAS multiplies m rows of the output one by one, from shifted rows without a copy."""
        return self.dilation == 1 and (count * self.inner >= WIDE or m == 1)

    def views(self, count: int, start: int, m: int, one_by_one: bool, dtype: Any) -> Any:
        """Return the arrays for m rows of the output, from `start` on: (rows, source, columns, factor, product, view).

        Fill `rows`, copy `source` to `columns` (both None if one by one), multiply the kernel by `factor` into
        `product`, and read `view` (n, o, m, *l).
        """
        o, k, s, d = self.outputs, self.kernel, self.stride, self.dilation
        order = self.order(count, "hkcn")
        rows = shifted("shifted", order, self.size, start * s - self.padding, 1, self.rest, dtype, **self.sizes(count, (m - 1) * s + d * (k - 1) + 1))
        height, wide, item, order = self.height, count * self.inner, dtype.itemsize, order.replace("k", "")
        line = height * wide * item
        if one_by_one:
            out, view = self.result(order, count, m, dtype)
            return rows, None, None, strided(rows.memory, (m, k * height, wide), (s * line, wide * item, item)), out.reshape(m, o, wide), view
        columns = scratch.take("columns", (k, height, m, wide), dtype)
        seen = strided(rows.memory, columns.shape, (d * line, wide * item, s * line, item))
        out, view = self.result("c" + order.replace("c", ""), count, m, dtype)
        return rows, seen, columns, columns.reshape(k * height, -1), out.reshape(o, -1), view


@lru_cache(1 << 10)
def output_rows(size: Any, shape: Any, length: Any, how: Any) -> OutputRows:
    return OutputRows(size, shape, length, how)


def correlate(x: Any, w: Any, b: Any, y: Any, how: Any) -> None:
    """Fill y (N, O, *L), of any strides, with windows of x times w (O, C, *K), plus b."""
    threads = threads_for("rows", "output", x, w, y, how)
    finish(correlation(x, w, b, y, how, threads), threads)


def correlation(x: Any, w: Any, b: Any, y: Any, how: Any, split: int) -> list[Any]:
    """The jobs that `correlate` consists of, at least `split` where there are so many images."""
    plan = output_rows(x.shape[2:], w.shape, y.shape[2:], how)
    w, b, dtype = plan.useful(w), along(b, y.ndim - 2), x.dtype
    if not w.size:
        y[...] = 0 if b is None else b
        return []
    matrix = as_matrix(w)

    def job(images: slice, rows: slice) -> None:
        count, m = images.stop - images.start, rows.stop - rows.start
        shifted, seen, columns, factor, out, view = scratch.view(OutputRows.views, plan, count, rows.start, m, plan.one_by_one(count, m), dtype)
        shifted.fill(x[images])
        if seen is not None:
            columns[...] = seen
        with_columns(matrix, factor, out)
        if b is None:
            y[images, :, rows] = view
        else:
            np.add(view, b, out=y[images, :, rows])
    return [partial(job, *block) for block in plan.blocks(len(x), split)]


# ── gradients ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class WeightRows(Rows):
    """The kernel's gradient by rows: with input rows grouped by phase, each row of the kernel multiplies a matrix."""

    def __init__(self, *sizes: Any) -> None:
        super().__init__(*sizes)
        self.phases = sorted({i * self.dilation % self.stride for i in range(self.kernel)})
        self.more = self.dilation * (self.kernel - 1) // self.stride

    def blocks(self, n: int, split: int) -> list[tuple[slice, slice]]:
        """Return blocks of work: pairs (images, rows of the output)."""
        lines = len(self.phases) * self.height * self.inner
        return parts(n, self.length[0], lines, lines * self.more, split)

    def views(self, count: int, start: int, m: int, dtype: Any) -> Any:
        """Return the arrays for m rows of the output's gradient, from `start` on.

        They are memory for the gradient as (n, o, m, *l) and as a matrix, the shifted rows of each phase, and their
        part for each kernel row.
        """
        order, (s, d), wide = self.order(count, "kchn"), (self.stride, self.dilation), count * self.inner
        rows = {phase: shifted(f"shifted{phase}", order, self.size, start * s - self.padding + phase, s, self.rest, dtype, **self.sizes(count, m + self.more))
                for phase in self.phases}
        seen = []
        for j in range(self.kernel):
            first = j * d // s * wide
            seen.append(rows[j * d % s].memory.reshape(self.height, -1)[:, first:first + m * wide])
        out, view = self.result(order[1:], count, m, dtype)
        return view, out.reshape(self.outputs, -1), [*rows.values()], seen


@lru_cache(1 << 10)
def weight_rows(size: Any, shape: Any, length: Any, how: Any) -> WeightRows:
    return WeightRows(size, shape, length, how)


def weight(y: Any, x: Any, out: Any, how: Any) -> None:
    """Fill out (O, C, *K) with the gradient of the kernel, given y (N, O, *L) and x."""
    plan, n, dtype = weight_rows(x.shape[2:], out.shape, y.shape[2:], how), len(x), x.dtype
    out[...] = 0
    if not (target := plan.useful(out)).size:
        return
    threads = threads_for("rows", "weight", x, out, y, how)
    blocks = plan.blocks(n, threads)
    totals = np.empty((min(threads, len(blocks)), plan.kernel, plan.outputs, plan.height), dtype)

    def task(blocks: Any, number: int) -> None:
        total = totals[number]
        for i, (images, rows) in enumerate(blocks):
            gathered, flat, shifted, seen = scratch.view(WeightRows.views, plan, images.stop - images.start, rows.start, rows.stop - rows.start, dtype)
            gathered[...] = y[images, :, rows]
            for some in shifted:
                some.fill(x[images])
            for j, matrix in enumerate(seen):
                product = rows_with_rows(flat, matrix, None if i else total[j])
                if i:
                    total[j] += product
    add_up(task, blocks, len(totals))
    total = totals[0] if len(totals) == 1 else totals.sum(axis=0)
    total = total.reshape(plan.kernel, plan.outputs, *plan.others, plan.channels)
    place_by_place(target, np.moveaxis(total, (1, -1), (0, 1)))


def back(y: Any, w: Any, b: Any, x: Any, how: Any) -> bool:
    """Fill x (N, C, *D) with the gradient of the input, given y and w (O, C, *K); return True if w is finite."""
    return by_remainders(correlation, y, w.swapaxes(0, 1), b, x, how, threads_for("rows", "input", x, w, y, how))


def by_remainders(correlation: Any, y: Any, w: Any, b: Any, x: Any, how: Any, threads: int) -> bool:
    """Fill x with y spread by w, phase by phase: places in x with equal remainders by the stride use one part of the kernel, without a stride.

    Return True if w is finite. Otherwise x is wrong: y counts as 0 beyond the border, and 0 times infinity or NaN is
    NaN.
    """
    jobs, split = [], -(-threads // prod(how[0]))
    for at, taps, of in remainders(w.shape[2:], x.shape[2:], how):
        jobs += correlation(y, w[taps], b, x[at], of, split)
    finish(jobs, threads)
    flat = w.reshape(-1)
    with np.errstate(all="ignore"):
        return bool(np.isfinite(flat @ flat))


@lru_cache(1 << 8)
def remainders(kernel: Any, size: Any, how: Any) -> list[tuple[Any, Any, Any]]:
    """Return for each phase the places of x, their part of the kernel, and the convolution's (stride, padding, dilation)."""
    found = []
    for phase in product(*(range(min(s, n)) for s, n in zip(how[0], size, strict=True))):       # no place of x leaves more
        taps, shifts, apart = [], [], []
        for i, s, p, d, k in zip(phase, *how, kernel, strict=True):
            g = gcd(s, d)
            first = next((j for j in range(min(s // g, k)) if (i + p - j * d) % s == 0), k)
            count = len(range(first, k, s // g))
            taps.append(slice(first + (count - 1) * (s // g), first - 1 if first else None, -(s // g)) if count else slice(0, 0))
            shifts.append((count - 1) * (d // g) - (i + p - first * d) // s)
            apart.append(d // g)
        at = (..., *(slice(i, None, s) for i, s in zip(phase, how[0], strict=True)))
        found.append((at, (slice(None), slice(None), *taps), ((1,) * len(phase), tuple(shifts), tuple(apart))))
    return found
