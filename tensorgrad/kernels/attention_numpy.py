"""Attention on NumPy, some heads or rows of queries at a time: the scores of a block stay in the cache, and are not
saved.

The backward recomputes the exponentials, from the sums of each row, as T. Dao et al. do (FlashAttention, 2022). With P
the attention weights, out = P V, D = g Vᵀ and S the scores, dL/dS = P (D − rows of g · out), since P's own share of a
row's gradient is Σ P D = Σ g out.
"""
from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ..core.dispatch import OpDispatch
from ..runtime import thread_pool
from ..runtime.thread_pool import available, scratch
from .activation_numpy import LIMITS, row_sums
from .reduction_numpy import dots

BLOCK = 1 << 17      # scores at a time
FORTH, BACK = 2, 4   # nanoseconds that each takes

Part = tuple[slice, slice, slice, slice]


def parts(shape: tuple[int, ...], causal: bool, threads: int) -> list[list[Part]]:
    """Return blocks (images, heads, queries, keys) of scores (N, H, L, S), a list for each group of images and heads.

    Threads can share the groups. If causal, blocks have no keys past the last query.
    """
    n, h, rows, keys = shape
    r = rows if rows * keys <= BLOCK else max(BLOCK // keys, 1)
    heads = max(min(BLOCK // (r * keys), h if n >= threads else -(-h // threads)), 1)
    images = max(min(BLOCK // (h * r * keys), -(-n // threads)), 1)
    return [[(slice(i, i + images), slice(j, j + heads), slice(k, k + r),
              slice(0, min(k + r, keys) if causal else keys)) for k in range(0, rows, r)]
            for i in range(0, n, images) for j in range(0, h, heads)]


def in_rows(x: Any) -> Any:
    """Return the array, or a copy if BLAS could not use its rows directly."""
    return x if x.strides[-1] == x.itemsize and x.strides[-2] >= x.shape[-1] * x.itemsize else np.ascontiguousarray(x)


def in_columns(x: Any) -> Any:
    """Copy Kᵀ to contiguous memory: BLAS multiplies small matrices by it in a third of the time."""
    return np.ascontiguousarray(x.swapaxes(-1, -2))


@lru_cache(8)
def ahead(rows: int, keys: int, dtype: Any) -> Any:
    """−∞ for keys behind the place of their query, 0 for others."""
    return np.where(np.tri(rows, keys, dtype=bool), dtype.type(0), dtype.type(-np.inf))


def scores(few: Any, columns: Any, mask: Any, causal: bool, part: Part) -> Any:
    """Scaled queries times keys, plus the mask; if causal, −∞ beyond each query's own place."""
    images, heads, rows, keys = part
    columns = columns[images, heads, :, keys]
    out = np.matmul(few, columns, out=scratch.take("scores", (*few.shape[:3], columns.shape[3]), few.dtype))
    if mask is not None:
        out += mask[part]
    if causal:
        near = out[..., rows.start:]        # no key before it is hidden from these queries
        near += ahead(*near.shape[2:], few.dtype)
    return out


@OpDispatch.register("attention", "cpu")
class Attention:
    @staticmethod
    def forward(query: Any, key: Any, value: Any, mask: Any, *, causal: bool, scale: float) -> Any:
        arrays = (query, key, value) if mask is None else (query, key, value, mask)
        if any(a.dtype not in LIMITS or a.dtype != query.dtype or not a.size for a in arrays) or not (
                query.ndim == 4 and query.shape[:2] == key.shape[:2] == value.shape[:2]
                and query.shape[3] == key.shape[3] and key.shape[2] == value.shape[2]):
            return NotImplemented
        q, v, columns = in_rows(query), in_rows(value), in_columns(key)
        shape = n, h, rows, _ = (*q.shape[:3], key.shape[2])
        extra = None if mask is None else np.broadcast_to(mask, shape)
        # heads side by side, as the output projection reads them
        out = np.empty((n, rows, h, v.shape[3]), q.dtype).transpose(0, 2, 1, 3)
        share, top = np.empty((2, n, h, rows), q.dtype)      # 1 / Σ exp(score − top) of each row

        def task(some: list[Part]) -> None:
            for part in some:
                few = q[part[:3]] * q.dtype.type(scale)
                e = scores(few, columns, extra, causal, part)
                np.exp(e, out=e)
                sums, first = _sums(e), 0
                # of NaN, too; and sums that leave room for their products with values
                if not LIMITS[q.dtype] < sums.min() or not sums.max() < 1 / LIMITS[q.dtype]:
                    e = scores(few, columns, extra, causal, part)
                    first = e.max(axis=-1)
                    first[first == -np.inf] = 0
                    e -= first[..., None]
                    np.exp(e, out=e)
                    sums = _sums(e)
                    sums[sums == 0] = np.inf
                top[part[:3]], share[part[:3]] = first, 1 / sums
                y = np.matmul(e, v[part[0], part[1], part[3]], out=out[part[:3]])
                y /= sums[..., None]
        threads = available(prod(shape) * FORTH)
        thread_pool.share(task, parts(shape, causal, threads), threads)
        return out, (query, key, value, mask, out, share, top if top.any() else None, causal, scale)

    @staticmethod
    def backward(g: Any, residual: Any, needs: Any) -> Any:
        query, key, value, mask, out, share, top, causal, scale = residual
        q, k, g, scale = in_rows(query), in_rows(key), in_rows(g), query.dtype.type(scale)
        keys, values = in_columns(key), in_columns(value)
        shape = (*q.shape[:3], k.shape[2])
        extra = None if mask is None else np.broadcast_to(mask, shape)
        gq, gk, gv = np.empty(q.shape, q.dtype), np.zeros(k.shape, q.dtype), np.zeros(value.shape, q.dtype)
        gm = np.zeros(shape, q.dtype) if needs[3] else None

        def task(some: list[Part]) -> None:
            for part in some:
                rows, kv = part[:3], (part[0], part[1], part[3])
                few = q[rows] * scale
                e = scores(few, keys, extra, causal, part)
                if top is not None:
                    e -= top[rows][..., None]
                np.exp(e, out=e)
                pulled = g[rows] * share[rows][..., None]
                gv[kv] += np.matmul(e.swapaxes(-1, -2), pulled)
                d = np.matmul(pulled, values[part[0], part[1], :, part[3]],
                              out=scratch.take("slopes", e.shape, e.dtype))
                d -= dots(pulled, out[rows])[..., None]
                d *= e
                if gm is not None:
                    gm[part] = d
                np.matmul(d, k[kv], out=gq[rows])
                gk[kv] += np.matmul(d.swapaxes(-1, -2), few)
        threads = available(prod(shape) * BACK)
        thread_pool.share(task, parts(shape, causal, threads), threads)
        gq *= scale
        return [gq if needs[0] else None, gk if needs[1] else None, gv if needs[2] else None, gm]


def _sums(e: Any) -> Any:
    return row_sums(e.reshape(-1, e.shape[-1])).reshape(e.shape[:-1])
