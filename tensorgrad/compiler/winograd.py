"""Convolution with kernels of 3 × 3 by 16 products for every four places, in place of 36: for NumPy alone.

A tile of 4 × 4 places d, a kernel g and the 2 × 2 results are linked by

    y = Aᵀ [(G g Gᵀ) · (Bᵀ d B)] A

with small matrices that need additions only. S. Winograd (1980); A. Lavin, S. Gray, arXiv:1509.09308. Sums of channels
make the product · one of matrices, for each of the 16 places of a tile. Kernels are transformed ahead.

Images are kept as four planes, of their even and odd rows and columns: tiles are then neighbours in planes, and
additions run along whole rows.
"""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..graph.records import Record
from ..runtime.thread_pool import available, finish, scratch, spans
from .targets import Joined

TRANSFORM = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])     # G
TILES = 256                         # the number of tiles at a time: their planes fit the cache
LEAST = 40                          # the least number of tiles: with fewer, matrices are too narrow
PRODUCT = 0.015                     # nanoseconds for a product of two numbers


class WinogradKernels(Record):
    """G g Gᵀ of kernels (O, C, 3, 3), as (4, 4, O, C)."""

    __name__ = "winograd_kernels"

    def __call__(self, w: Any) -> Any:
        g = TRANSFORM.astype(w.dtype)
        return np.ascontiguousarray(np.matmul(np.matmul(g, w), g.T).transpose(2, 3, 0, 1))


class Winograd(Record):
    """`joined`, a convolution, of x, kernels, the bias, and the residual if it has one; then transformed kernels."""

    joined: Joined
    padding: tuple[int, int]
    new_memory = True

    def __call__(self, x: Any, w: Any, b: Any, *rest: Any) -> Any:
        *residual, kernels = rest
        if not np.isfinite(x.sum()):                    # an infinity would spread over its tile
            return self.joined(x, w, b, *residual, stride=(1, 1), padding=self.padding, dilation=(1, 1), groups=1)
        n, _, *size = x.shape
        rows, columns = (length + 2 * p - 2 for length, p in zip(size, self.padding, strict=True))
        y = np.empty((n, len(w), rows, columns), x.dtype)
        tall, wide = -(-rows // 2), -(-columns // 2)
        some = max(TILES // (tall * wide), 1)
        parts = spans(tall, -(-tall * wide // TILES))
        jobs = [partial(self.block, x[i:i + some], y[i:i + some], kernels, b, part)
                for i in range(0, n, some) for part in parts]
        finish(jobs, available(PRODUCT * 4 * y.size * x.shape[1]))
        for other in residual:
            y += other
        return y if self.joined.activation is None else self.joined.activation.over(y)

    @property
    def __name__(self) -> str:
        return f"winograd_{self.joined.__name__}"

    def block(self, x: Any, y: Any, kernels: Any, b: Any, part: slice) -> None:
        """Compute some rows of tiles of some images."""
        n, channels = x.shape[:2]
        tall, wide = part.stop - part.start, -(-y.shape[3] // 2) + 1
        planes = self.planes(x, part.start, tall + 1, wide)
        length = planes.shape[-1] - 1
        across = scratch.take("winograd across", (4, 2, channels, n, length), x.dtype)
        even, odd = planes[:, 0], planes[:, 1]
        combine(even[..., :-1], odd[..., :-1], even[..., 1:], odd[..., 1:], across)
        tiles = scratch.take("winograd tiles", (4, 4, channels, n, tall * wide), x.dtype)
        end, down = tall * wide, across[..., wide:wide + tall * wide]
        combine(across[:, 0, ..., :end], across[:, 1, ..., :end], down[:, 0], down[:, 1], tiles)
        sums = scratch.take("winograd sums", (4, 4, len(y[0]), n * end), x.dtype)
        np.matmul(kernels, tiles.reshape(4, 4, channels, -1), out=sums)
        if b is not None:
            sums[1, 1] += b[:, None]                    # part of each of the four results
        halves = scratch.take("winograd halves", (2, *sums.shape[1:]), x.dtype)
        fold(sums, halves)
        found = scratch.take("winograd results", (2, 2, *sums.shape[2:]), x.dtype)
        fold(halves.swapaxes(0, 1), found)
        found = found.reshape(2, 2, len(y[0]), n, tall, wide)
        for i, j in np.ndindex(2, 2):
            to = y[:, :, 2 * part.start + i:2 * part.stop:2, j::2]
            to[...] = found[j, i, :, :, :to.shape[2], :to.shape[3]].swapaxes(0, 1)

    def planes(self, x: Any, start: int, tall: int, wide: int) -> Any:
        """Return the planes (2, 2, C, N, places) of rows from `start` on, with zeros for the border, and one more
        place."""
        n, channels, *size = x.shape
        memory = scratch.take("winograd planes", (2, 2, channels, n, tall * wide + 1), x.dtype)
        memory[...] = 0
        view = memory[..., :-1].reshape(2, 2, channels, n, tall, wide)
        first = 2 * start - self.padding[0]
        for i, j in np.ndindex(2, 2):
            skip = max(-(-(-first - i) // 2), 0)        # rows of the plane that are border
            left = max(-(-(self.padding[1] - j) // 2), 0)
            from_x = x[:, :, first + i + 2 * skip:first + i + 2 * tall:2, j + 2 * left - self.padding[1]::2]
            from_x = from_x[..., :tall - skip, :wide - left]
            view[i, j, :, :, skip:skip + from_x.shape[2], left:left + from_x.shape[3]] = from_x.swapaxes(0, 1)
        return memory


def combine(a: Any, b: Any, c: Any, d: Any, out: Any) -> None:
    """Bᵀ of four rows: a − c, b + c, c − b, b − d."""
    np.subtract(a, c, out=out[0])
    np.add(b, c, out=out[1])
    np.subtract(c, b, out=out[2])
    np.subtract(b, d, out=out[3])


def fold(four: Any, out: Any) -> None:
    """Aᵀ of four rows: a + b + c, b − c − d."""
    np.add(four[0], four[1], out=out[0])
    out[0] += four[2]
    np.subtract(four[1], four[2], out=out[1])
    out[1] -= four[3]
