"""Adding at indices on NumPy: `np.add.at` is fast for one axis of indices alone, so places are counted along the flat array.

Found on one core: 4096 rows of 128 added to 65 of them take 0.59 ms there; 3.5 ms by `np.add.at` on rows, 0.74 sorted and then reduced.
"""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..dispatch import OpDispatch
from ..ops.indexing import ARRAY, IndexAddInto, ScatterAdd

BLOCK = 1 << 16


def register(op: str) -> Any:
    return OpDispatch.register(op, "cpu")


@register("embedding")
def embedding(x: Any, index: Any, *, padding: Any = None, by_frequency: bool = False) -> Any:
    return x.take(index, axis=0)


@register("embedding_add")
def embedding_add(x: Any, index: Any, *, rows: int) -> Any:
    tail = x.shape[index.ndim:]
    return add_rows(np.zeros((rows, prod(tail)), x.dtype), index.reshape(-1), x).reshape(rows, *tail)


def add_rows(out: Any, index: Any, x: Any) -> Any:
    """Add rows of x to rows of a matrix, block by block."""
    count, width = out.shape
    if index.size and index.min() < 0:
        index = np.where(index < 0, index + count, index)
    x = x.reshape(len(index), width)
    flat, places = out.reshape(-1), np.arange(width)
    for start in range(0, len(index), max(BLOCK // max(width, 1), 1)):
        part = slice(start, start + max(BLOCK // max(width, 1), 1))
        np.add.at(flat, (index[part, None] * width + places).reshape(-1), x[part].reshape(-1))
    return out


@register("scatter_add")
def scatter_add(x: Any, value: Any, index: Any, *, axis: int) -> Any:
    if x.dtype.kind not in "fiu" or not x.flags.c_contiguous:
        return ScatterAdd.forward(np, x, value, index, axis=axis)
    out = x.copy()
    if index.size and index.min() < 0:
        index = np.where(index < 0, index + x.shape[axis], index)
    places = index * (x.strides[axis] // x.itemsize)
    for d, n in enumerate(index.shape):
        if d != axis:
            places += (np.arange(n) * (x.strides[d] // x.itemsize)).reshape((1,) * d + (n,) + (1,) * (index.ndim - d - 1))
    np.add.at(out.reshape(-1), places.reshape(-1), value[tuple(map(slice, index.shape))].reshape(-1))
    return out


@register("index_add_into")
def index_add_into(x: Any, *indices: Any, shape: Any, template: Any) -> Any:
    lead = len(indices)
    if template[:lead] != (ARRAY,) * lead or any(part not in (slice(None), Ellipsis) for part in template[lead:]) or any(
            i.dtype.kind not in "iu" for i in indices):
        return IndexAddInto.forward(np, x, *indices, shape=shape, template=template)
    index: Any = 0
    for i, n in zip(indices, shape, strict=False):
        index = index * n + np.where(i < 0, i + n, i)
    rows, width = prod(shape[:lead]), prod(shape[lead:])
    x = np.broadcast_to(x, (*index.shape, *shape[lead:]))
    return add_rows(np.zeros((rows, width), x.dtype), index.reshape(-1), x).reshape(shape)
