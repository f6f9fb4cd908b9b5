"""Read and write at computed indices."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.indexing import ARRAY
from ._graph import BOOL, Graph, Refused
from ._sizes import Varying
from ._table import rule


def _int64(g: Graph, index: Any) -> Any:
    return index if index.dtype in ("int32", "int64") else g.cast(index, "int64")


def _arranged(g: Graph, x: Any, indices: Any, template: Any) -> Any:
    """Return (x with the indexed axes first, the stacked indices, their number of axes, the position of their axes
    in a result)."""
    if not all(p is ARRAY or isinstance(p, slice) and p == slice(None) for p in template):
        raise Refused("by arrays and numbers at once")
    axes = [i for i, p in enumerate(template) if p is ARRAY]
    order = [*axes, *(d for d in range(x.ndim) if d not in axes)]
    count = max(i.ndim for i in indices)
    shape = _broadcast([i.shape for i in indices])
    places = [g.Unsqueeze(g.expand(g.cast(i, "int64"), shape, *indices), [count]) for i in indices]
    stacked = g.Concat(*places, axis=count) if len(places) > 1 else places[0]
    moved = g.Transpose(x, perm=order) if order != list(range(x.ndim)) else x
    at = axes[0] if axes == list(range(axes[0], axes[0] + len(axes))) else 0
    return moved, stacked, count, at, order


def _broadcast(shapes: Any) -> tuple[Any, ...]:
    ndim = max(map(len, shapes))
    columns = zip(*[(1,) * (ndim - len(s)) + tuple(s) for s in shapes], strict=True)
    return tuple(next((n for n in column if isinstance(n, Varying) or n != 1), 1) for column in columns)


def _no_masks(indices: Any) -> None:
    if any(i.dtype == BOOL for i in indices):
        raise Refused("by a mask")


@rule("index")
def index(g: Graph, x: Any, *indices: Any, template: Any) -> Any:
    _no_masks(indices)
    if len(indices) == 1 and all(p is ARRAY or isinstance(p, slice) and p == slice(None) for p in template):
        return g.Gather(x, _int64(g, indices[0]), axis=template.index(ARRAY))
    moved, stacked, count, at, _ = _arranged(g, x, indices, template)
    out = g.GatherND(moved, stacked)
    rest = x.ndim - len(indices)
    order = [*range(count, count + at), *range(count), *range(count + at, count + rest)]
    return out if order == list(range(len(order))) else g.Transpose(out, perm=order)


@rule("index_put")
def index_put(g: Graph, x: Any, value: Any, *indices: Any, template: Any, accumulate: bool = False) -> Any:
    _no_masks(indices)
    moved, stacked, count, at, order = _arranged(g, x, indices, template)
    rest = [x.shape[d] for d in order[len(indices):]]
    full = (*rest[:at], *_broadcast([i.shape for i in indices]), *rest[at:])
    value = g.expand(g.cast(value, x.dtype), full, x, *indices)
    arrange = [*range(at, at + count), *range(at), *range(at + count, len(full))]
    value = value if arrange == list(range(len(full))) else g.Transpose(value, perm=arrange)
    out = g.ScatterND(moved, stacked, value, reduction="add" if accumulate else None)
    return out if moved is x else g.Transpose(out, perm=[order.index(d) for d in range(x.ndim)])


@rule("index_add_into")
def index_add_into(g: Graph, x: Any, *indices: Any, shape: Any, template: Any) -> Any:
    zeros = g.Expand(g.like(0, x), g.sizes(shape, x))
    zeros.shape, zeros.dtype = tuple(shape), x.dtype
    return index_put(g, zeros, x, *indices, template=template, accumulate=True)


@rule("index_select take_axis border upsample_nearest")
def index_select(g: Graph, x: Any, index: Any, *, axis: int) -> Any:
    return g.Gather(x, _int64(g, index), axis=axis)


@rule("embedding")
def embedding(g: Graph, x: Any, index: Any, **params: Any) -> Any:
    return g.Gather(x, _int64(g, index), axis=0)


@rule("embedding_add")
def embedding_add(g: Graph, x: Any, index: Any, *, rows: Any) -> Any:
    zeros = g.Expand(g.like(0, x), g.sizes(g.out[0].shape, x, index))
    return g.ScatterND(zeros, g.Unsqueeze(g.cast(index, "int64"), [-1]), x, reduction="add")


def _cut(g: Graph, x: Any, index: Any, axis: int | None = None) -> Any:
    """Cut x to the sizes of the index along the other axes."""
    axes = [d for d in range(x.ndim) if d != axis and not x.shape[d] == index.shape[d]]
    return g.Slice(x, [0] * len(axes), g.sizes([index.shape[d] for d in axes], index), axes) if axes else x


@rule("gather take_along_axis")
def gather(g: Graph, x: Any, index: Any, *, axis: int) -> Any:
    if not x.ndim:
        return g.Reshape(x, g.Shape(index))
    axis %= x.ndim
    if g.op == "take_along_axis":
        shape = [n if d == axis else x.shape[d] for d, n in enumerate(index.shape)]
        own = index.shape
        index = g.expand(index, shape, x)
        x = g.expand(x, [x.shape[d] if d == axis else n for d, n in enumerate(own)], index) if any(
            x.shape[d] == 1 and n != 1 for d, n in enumerate(own) if d != axis) else x
        return g.GatherElements(x, g.cast(index, "int64"), axis=axis)
    return g.GatherElements(_cut(g, x, index, axis), g.cast(index, "int64"), axis=axis)


@rule("scatter scatter_add scatter_extreme")
def scatter(g: Graph, x: Any, value: Any, index: Any, *, axis: int, reduce: str | None = None,
            include_self: bool = True, equal_nan: bool = False) -> Any:
    how = {"scatter": None, "scatter_add": "add"}.get(g.op,
                                                      {"amax": "max", "amin": "min", "prod": "mul"}.get(reduce or ""))
    if not include_self:
        raise Refused("without the values that are there")
    value, places = g.cast(_cut(g, value, index), x.dtype), g.cast(index, "int64")
    if not x.ndim:
        return g.Reshape(g.ScatterElements(g.Reshape(x, [1]), g.Reshape(places, [1]), g.Reshape(value, [1]), axis=0,
                                           reduction=how), np.zeros(0, np.int64))
    return g.ScatterElements(x, places, value, axis=axis, reduction=how)


@rule("place_along_axis")
def place_along_axis(g: Graph, x: Any, index: Any, *, shape: Any, axis: int) -> Any:
    zeros = g.Expand(g.like(0, x), g.sizes(shape, x))
    return g.ScatterElements(zeros, g.cast(index, "int64"), x, axis=axis)
