"""Convolution with fewer products, on NumPy: adjacent results are computed together from shared products, called points (Winograd).

Along an axis, y₀ = d₀w₀ + d₁w₁ and y₁ = d₁w₀ + d₂w₁ are m₀ + m₁ and m₁ + m₂, with three products and not four: m₀ = (d₀
− d₁) w₀, m₁ = d₁ (w₀ + w₁), m₂ = (d₂ − d₁) w₁. Along two axes, kernels of 3 × 3 take 16 products for a tile of 2 × 2
results, not 36; each is one of matrices (tiles, C) × (C, O). With strides, each phase of the input (places of one
remainder by the strides) is convolved with its part of the kernel. (S. Winograd, Arithmetic complexity of computations,
1980; A. Lavin & S. Gray, Fast algorithms for convolutional neural networks, 2015.)

Transforms to and from points are products with small matrices, too: NumPy has few, long calls, so that threads seldom
wait for one another. A number has coefficient 0 in results whose windows do not hold it, so that rounding stays local.
Infinity and NaN spread, as 0 times either is NaN: if a result is not finite, the functions return False, and callers
compute all of them in another way.
"""
from __future__ import annotations

from functools import lru_cache, partial
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..runtime.thread_pool import add_up, available, finish, scratch, share, spans
from ..runtime.threads import single_blas
from .convolution_costs import threads_for
from .products_numpy import is_small, with_rows
from .windows_numpy import along, inside

BLOCK = 1 << 19      # points of the input at a time
PIECE = 1 << 11      # numbers of a point per product: BLAS has faster kernels for small products
FEW = 1 << 8         # columns per product, if they are rows of another array
PITCH = 16           # padding between rows that would be a power of two apart
PASSING = "passing"  # scratch memory for intermediates, the places of tiles and the products
PAGE = 1 << 12       # addresses this many bytes apart share a cache set
GATHERED = 1 << 17   # elements of some images that are turned at a time: their channels become innermost
SCATTERED = 1 << 15  # elements of some rows of an image that are turned back at a time
KEPT = 1 << 21       # points of a kernel whose memory is used again
KERNEL = 0.8         # nanoseconds that a point of a kernel takes


class Transform(NamedTuple):
    """Points of the input and of the kernel, and results from their products: y = A (G w · B d)."""

    B: Any
    G: Any
    A: Any


TRANSFORMS = {          # by how many numbers a window holds
    2: Transform([[1, -1, 0], [0, 1, 0], [0, -1, 1]], [[1, 0], [1, 1], [0, 1]], [[1, 1, 0], [0, 1, 1]]),
    3: Transform([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, -1, 0, 1]], [[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]],
                 [[1, 1, 1, 0], [0, 1, -1, 1]]),
}


# ── points ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(1 << 8)
def along_both(part: str, taps: Any, dtype: Any) -> Any:
    """The matrix of a transform along both axes."""
    return np.kron(*(getattr(TRANSFORMS[r], part) for r in taps)).astype(dtype)


@lru_cache(1 << 8)
def of_kernel(kernel: Any, stride: Any, backward: bool, dtype: Any) -> Any:
    """Return the matrix (points · phases, K₁ · K₂) that transforms a kernel to points, separately for each phase of the stride.

    For the backward pass the kernel is reversed within each phase.
    """
    lines = []
    for k, s in zip(kernel, stride, strict=True):
        r = -(-k // s)
        taps = np.zeros((s, r, k))
        for place in range(k):
            m, phase = divmod(place, s)
            taps[phase, r - 1 - m if backward else m, place] = 1
        lines.append(np.asarray(TRANSFORMS[r].G) @ taps)
    return np.einsum("aik,bjl->ijabkl", *lines).reshape(-1, prod(kernel)).astype(dtype)


def rows_of(name: str, count: int, size: int, dtype: Any) -> Any:
    """Scratch memory of so many rows, in whole pieces each."""
    wide = -(-size // PIECE) * PIECE if size > PIECE else size
    return scratch.take(name, (count, wide + PITCH), dtype)[:, :wide]


def in_pieces(rows: Any) -> Any:
    """Rows as a stack of matrices that BLAS multiplies quickly."""
    return rows.reshape(len(rows), -1, min(PIECE, rows.shape[1])).swapaxes(0, 1)


def times_columns(matrix: Any, rows: Any, out: Any) -> None:
    """Fill out with the matrix times the rows as columns, some of them at a time."""
    whole = len(rows) // FEW * FEW
    if whole:
        np.matmul(matrix, rows[:whole].reshape(-1, FEW, rows.shape[1]).swapaxes(1, 2), out=out[:, :whole].reshape(len(out), -1, FEW).swapaxes(0, 1))
    if whole < len(rows):
        np.matmul(matrix, rows[whole:].T, out=out[:, whole:])


class Planes(NamedTuple):
    """Scratch memory (n, rows, columns, C) for zero-padded images with channels innermost; `of` is the part to copy, `to` the target."""

    memory: Any
    of: Any
    to: Any
    whole: bool

    def fill(self, x: Any) -> None:
        x, n = x[self.of], len(x)
        if not self.whole:
            self.memory[...] = 0
        step = max(GATHERED * n // max(x.size, 1), 1)
        for i in range(0, n, step):
            some = x[i:i + step]
            self.to[i:i + step] = (some if some.strides[1] % PAGE else unaligned(some)).transpose(0, 2, 3, 1)


def planes(name: str, shape: Any, first: Any, sizes: Any, dtype: Any) -> Planes:
    """Plan `sizes` rows and columns of images (N, C, H, W), starting at `first`."""
    n, c, *size = shape
    (rows, high), (columns, wide) = (inside(i, 1, length, d) for i, length, d in zip(first, sizes, size, strict=True))
    memory = scratch.take(name, (n, *sizes, c), dtype)
    to = memory[:, rows, columns]
    return Planes(memory, (slice(None), slice(None), high, wide), to, to.shape == memory.shape)


def unaligned(x: Any) -> Any:
    """Copy x so that its channels do not start at addresses that share a cache set."""
    n, c, *size = x.shape
    out = scratch.take("unaligned", (n, c, prod(size) + PITCH), x.dtype)[..., :prod(size)].reshape(x.shape)
    np.copyto(out, x)
    return out


class Tiles(NamedTuple):
    """Tiles of planes as points.

    `seen` is a view of the planes and `places` its copy; `pieces` and `out` hold `places` and the points in blocks.
    """

    seen: Any
    places: Any
    pieces: Any
    out: Any
    points: Any

    def turn(self, matrix: Any) -> Any:
        self.places[...] = self.seen
        np.matmul(matrix, self.pieces, out=self.out)
        return self.points


def tiles_of_planes(name: str, d: Any, size: Any, tiles: Any, stride: Any, count: int) -> Tiles:
    """Tiles of planes (n, rows, columns, C), as (count, images · tiles, phases · C): tiles, and their places, are as far apart as the stride has it."""
    n, _, _, c = d.shape
    (s, t), (step, row, column, item) = stride, d.strides
    shape = (*size, n, *tiles, s, t, c)
    numbers, between = prod(shape[2:]), n * prod(tiles)
    rows, out = rows_of(PASSING, prod(size), numbers, d.dtype), rows_of(name, count, numbers, d.dtype)
    seen = as_strided(d, shape, (s * row, t * column, step, 2 * s * row, 2 * t * column, row, column, item))
    return Tiles(seen, rows[:, :numbers].reshape(shape), in_pieces(rows), in_pieces(out), out[:, :numbers].reshape(count, between, -1))


class Results(NamedTuple):
    """Scratch memory (N, rows, 2, stride, columns, 2, stride, O) for the tiles of a target (N, O, H, W), separate for each phase of the strides.

    `flat` has all numbers, `view` is the target's shape, `phases` has a view (2, 2, N, rows, columns, O) for each
    phase.
    """

    flat: Any
    view: Any
    phases: Any

    def put(self, b: Any, target: Any) -> bool:
        """Copy the results plus b to the target; return True if all are finite."""
        rows, columns = target.shape[2:]
        step = max(SCATTERED // (columns * target.shape[1]), 1)
        for i in range(0, rows, step):
            if b is None:
                target[:, :, i:i + step] = self.view[:, :, i:i + step]
            else:
                np.add(self.view[:, :, i:i + step], b, out=target[:, :, i:i + step])
        return bool(np.isfinite(self.flat @ self.flat))


def results_of(shape: Any, tiles: Any, stride: Any, dtype: Any) -> Results:
    (n, o, rows, columns), (s, t) = shape, stride
    memory = scratch.take("results", (n, tiles[0], 2, s, tiles[1], 2, t, o), dtype)
    view = memory.reshape(n, 2 * s * tiles[0], 2 * t * tiles[1], o)[:, :rows, :columns].transpose(0, 3, 1, 2)
    phases = [[memory[:, :, :, i, :, :, j].transpose(2, 4, 0, 1, 3, 5) for j in range(t)] for i in range(s)]
    return Results(memory.reshape(-1), view, phases)


class Scheme:
    """Sizes of a convolution (K₁, K₂) with strides: `taps` of a phase's window, and `points` of a tile, per axis."""

    def __init__(self, kernel: Any, how: Any) -> None:
        self.kernel, (self.stride, self.padding, _) = kernel, how
        self.taps = tuple(-(-k // s) for k, s in zip(kernel, self.stride, strict=True))
        self.points, self.phases = tuple(r + 1 for r in self.taps), prod(self.stride)
        self.count = prod(self.points)
        # Backward, place u · s + i of the input sees places of the output up to u + above, with places of the kernel that leave one remainder.
        ends = [[divmod(i + p, s) for i in range(s)] for p, s in zip(self.padding, self.stride, strict=True)]
        self.first = tuple(axis[0][0] - r + 1 for axis, r in zip(ends, self.taps, strict=True))
        self.more = tuple(axis[-1][0] - axis[0][0] for axis in ends)
        self.back: dict[Any, list[Any]] = {}            # by shift of the part of y that they depend on: (i, j) of the input's phase, and the kernel's phase
        for (i, (above, row)), (j, (left, column)) in product(*map(enumerate, ends)):
            self.back.setdefault((above - ends[0][0][0], left - ends[1][0][0]), []).append((i, j, row * self.stride[1] + column))

    def matrices(self, w: Any, backward: bool = False) -> Any:
        """Points of a kernel (points, phases, O, C)."""
        (o, c), numbers = w.shape[:2], of_kernel(self.kernel, self.stride, backward, w.dtype)
        shape, flat = (len(numbers), o * c), w.reshape(o * c, -1)
        out = scratch.take("matrices", shape, w.dtype) if prod(shape) <= KEPT else np.empty(shape, w.dtype)

        def task(part: slice) -> None:
            times_columns(numbers, flat[part], out[:, part])
        with single_blas:
            share(task, spans(o * c, available(out.size * KERNEL)))
        return out.reshape(self.count, self.phases, o, c)

    def images(self, name: str, x: Any, first: Any, sizes: Any) -> Any:
        """Return `sizes` rows and columns of x, starting at `first`, as planes."""
        found = scratch.view(planes, name, x.shape, first, sizes, x.dtype)
        found.fill(x)
        return found.memory

    def tiles(self, shape: Any, first: Any, tiles: Any, stride: Any, dtype: Any) -> Tiles:
        d = scratch.take("planes", shape, dtype)[:, first[0]:, first[1]:]
        return tiles_of_planes("points", d, self.points, tiles, stride, self.count)

    def seen(self, d: Any, first: Any, tiles: Any, stride: Any = (1, 1)) -> Any:
        """Points of planes (points, images · tiles, phases · C), from some row and column on."""
        return scratch.view(Scheme.tiles, self, d.shape, first, tiles, stride, d.dtype).turn(along_both("B", self.taps, d.dtype))

    def seen_of(self, x: Any, rows: slice, wide: int) -> Any:
        """Points of an input, for some rows of tiles of the result."""
        tiles = (rows.stop - rows.start, wide)
        first = (2 * rows.start * self.stride[0] - self.padding[0], -self.padding[1])
        sizes = tuple([n * s for n, s in zip(self.sizes(tiles), self.stride, strict=True)])
        return self.seen(self.images("planes", x, first, sizes), (0, 0), tiles, self.stride)

    def sizes(self, tiles: Any, more: Any = (0, 0)) -> tuple[int, ...]:
        """Return how many rows and columns of a phase the tiles depend on."""
        return tuple([2 * n + r - 1 + i for n, r, i in zip(tiles, self.taps, more, strict=True)])

    def products(self, shape: Any, dtype: Any) -> Any:
        """Return memory for products of points, as (points, images · tiles, O) and in pieces, and for results, in pieces and as `shape`."""
        size = prod(shape[2:])
        rows, found = rows_of(PASSING, self.count, size, dtype), rows_of("found", 4, size, dtype)
        return rows[:, :size].reshape(self.count, -1, shape[-1]), in_pieces(rows), in_pieces(found), found[:, :size].reshape(shape)

    def results(self, points: Any, matrices: Any, out: Any) -> None:
        """Fill out (2, 2, n, rows of tiles, columns of tiles, O) with products of points and matrices (points, C, O)."""
        products, pieces, found, view = scratch.view(Scheme.products, self, out.shape, out.dtype)
        with_rows(points, matrices, products)
        np.matmul(along_both("A", self.taps, out.dtype), pieces, out=found)
        out[...] = view

    def spread_tiles(self, shape: Any, tiles: Any, dtype: Any) -> Tiles:
        return tiles_of_planes("spread", scratch.take("gradient", shape, dtype), (2, 2), tiles, (1, 1), self.count)

    def spread(self, g: Any, rows: slice, wide: int) -> Any:
        """Return the points of the results' gradient, (points, images · tiles, O): the gradient of each product."""
        tiles = (rows.stop - rows.start, wide)
        d = self.images("gradient", g, (2 * rows.start, 0), (2 * tiles[0], 2 * wide))
        return scratch.view(Scheme.spread_tiles, self, d.shape, tiles, d.dtype).turn(along_both("A", self.taps, d.dtype).T)

    def blocks(self, n: int, tiles: Any, channels: int, threads: int) -> list[tuple[slice, slice]]:
        """Return blocks of work: pairs (images, rows of tiles)."""
        each = self.count * prod(tiles) * channels
        if each <= BLOCK and n >= threads:
            return [(images, slice(0, tiles[0])) for images in spans(n, min(-(-n * each // (BLOCK * threads)) * threads, n))]
        count = min(max(-(-each // BLOCK), -(-threads // n)), tiles[0])
        return [(slice(i, i + 1), rows) for i in range(n) for rows in spans(tiles[0], count)]


@lru_cache(1 << 8)
def scheme_of(kernel: Any, how: Any) -> Scheme:
    return Scheme(kernel, how)


@lru_cache(1 << 10)
def fits(kernel: Any, how: Any) -> bool:
    """Return True for kernels of two axes, without dilation, with windows of two or three numbers in each phase."""
    stride, _, dilation = how
    return len(kernel) == 2 and set(dilation) == {1} and all(-(-k // s) in TRANSFORMS for k, s in zip(kernel, stride, strict=True))


# ── the three convolutions ────────────────────────────────────────────────────────────────────────────────────────────


def tiles_of(length: Any) -> tuple[int, ...]:
    return tuple(-(-n // 2) for n in length)


def run(job: Any, blocks: Any, threads: int) -> bool:
    """Run `job(images, rows of tiles)` for all blocks; return True if all results are finite."""
    finite = []

    def quietly(*block: slice) -> None:
        with np.errstate(all="ignore"):         # results that are not finite are computed again in another way, which may warn
            finite.append(job(*block))
    finish([partial(quietly, *block) for block in blocks], threads)
    return all(finite)


def correlate(x: Any, w: Any, b: Any, y: Any, how: Any) -> bool:
    """Fill y (N, O, *L) with windows of x times w (O, C, *K), plus b; return True if all is finite."""
    scheme, (o, c), tiles, b = scheme_of(w.shape[2:], how), w.shape[:2], tiles_of(y.shape[2:]), along(b, 2)
    if is_small(o * c * scheme.phases):
        matrices = scheme.matrices(w.swapaxes(0, 1)).reshape(scheme.count, -1, o)
    else:                   # for BLAS their transposes are nearly as good
        matrices = np.ascontiguousarray(scheme.matrices(w).swapaxes(1, 2)).reshape(scheme.count, o, -1).swapaxes(1, 2)
    threads = threads_for("points", "output", x, w, y, how)

    def job(images: slice, rows: slice) -> bool:
        target = y[images, :, 2 * rows.start:2 * rows.stop]
        found = scratch.view(results_of, target.shape, (rows.stop - rows.start, tiles[1]), (1, 1), target.dtype)
        scheme.results(scheme.seen_of(x[images], rows, tiles[1]), matrices, found.phases[0][0])
        return found.put(b, target)
    return run(job, scheme.blocks(len(x), tiles, scheme.phases * c, threads), threads)


def back(y: Any, w: Any, b: Any, x: Any, how: Any) -> bool:
    """Fill x (N, C, *D) with the gradient of the input, given y and w (O, C, *K); return True if all is finite."""
    scheme, s, b = scheme_of(w.shape[2:], how), how[0][0], along(b, 2)
    tiles = tiles_of(-(-d // step) for d, step in zip(x.shape[2:], how[0], strict=True))
    matrices, threads = scheme.matrices(w, backward=True), threads_for("points", "input", x, w, y, how)

    def job(images: slice, rows: slice) -> bool:
        target, some = x[images, :, 2 * s * rows.start:2 * s * rows.stop], (rows.stop - rows.start, tiles[1])
        d = scheme.images("planes", y[images], (2 * rows.start + scheme.first[0], scheme.first[1]), scheme.sizes(some, scheme.more))
        found = scratch.view(results_of, target.shape, some, how[0], target.dtype)
        for further, phases in scheme.back.items():
            points = scheme.seen(d, further, some)
            for i, j, part in phases:
                scheme.results(points, matrices[:, part], found.phases[i][j])
        return found.put(b, target)
    return run(job, scheme.blocks(len(x), tiles, len(w), threads), threads)


def weight(y: Any, x: Any, out: Any, how: Any) -> bool:
    """Fill out (O, C, *K) with the gradient of the kernel, given y (N, O, *L) and x; return True if all is finite."""
    scheme, (o, c), n, tiles = scheme_of(out.shape[2:], how), out.shape[:2], len(x), tiles_of(y.shape[2:])
    threads = threads_for("points", "weight", x, out, y, how)
    apart = o > n * prod(tiles)         # then threads share the gradient's channels: it is less to find the input's points in each than to add up their sums
    blocks = scheme.blocks(n, tiles, scheme.phases * c, 1 if apart else threads)
    count = 1 if apart else min(threads, len(blocks))
    totals = np.empty((count, scheme.count, o, scheme.phases * c), x.dtype)
    found, numbers = out if out.flags.c_contiguous else np.empty(out.shape, x.dtype), of_kernel(scheme.kernel, scheme.stride, False, x.dtype)

    def add(blocks: Any, number: int, channels: slice = slice(None)) -> None:
        total = totals[number, :, channels]
        for i, (images, rows) in enumerate(blocks):
            spread, seen = scheme.spread(y[images, channels], rows, tiles[1]).swapaxes(1, 2), scheme.seen_of(x[images], rows, tiles[1])
            if i:
                total += np.matmul(spread, seen)
            else:
                np.matmul(spread, seen, out=total)

    def turn(channels: slice) -> None:
        points = totals[0, :, channels].reshape(scheme.count, -1, scheme.phases, c).swapaxes(1, 2)
        np.matmul(np.ascontiguousarray(points).reshape(len(numbers), -1).T, numbers, out=found[channels].reshape(-1, numbers.shape[1]))
    with np.errstate(all="ignore"):
        if apart:
            share(lambda channels: (add(blocks, 0, channels), turn(channels)), spans(o, min(threads, o)))
        else:
            add_up(add, blocks, count)
            for more in totals[1:]:
                totals[0] += more
        with single_blas:
            if not apart:
                share(turn, spans(o, min(available(totals[0].size * KERNEL), o)))
            flat = found.reshape(-1)
            finite = np.isfinite(flat @ flat)
    if found is not out:
        out[...] = found
    return bool(finite)
