"""Rows and elements at given places by compiled code: native/scatter.inc.

NumPy's kernels raise the errors of indices out of range.
"""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..ops.indexing import ARRAY
from .compiled import in_rows, native, register, whole

SMALL = 1 << 9          # elements: below, NumPy is as fast


def moved(kernel: Any, x: Any, index: Any, out: Any, *sizes: int) -> Any:
    """`out`, or NotImplemented where arrays or indices do not fit."""
    bad = np.empty(1, np.int64)
    if kernel(whole(x), whole(index), out, bad, *sizes) is not None or bad[0]:
        return NotImplemented
    return out


def plain(x: Any) -> Any:
    """View the array as floating-point numbers of the same width: they are moved, not computed with."""
    if x.dtype.char in "fd":
        return x
    return (x.view(np.float64 if x.itemsize == 8 else np.float32) if x.itemsize in (4, 8) and x.dtype.kind in "iuc"
            and x.flags.c_contiguous else None)


def rows_taken(x: Any, index: Any, axis: int) -> Any:
    """Slices x[…, index, …] along an axis."""
    n, size = x.shape[axis], index.size
    if (index.dtype.char != "l" or not x.size or size * prod(x.shape[:axis]) * prod(x.shape[axis + 1:]) < SMALL
            or (values := plain(x)) is None):
        return NotImplemented
    out = np.empty((*x.shape[:axis], *index.shape, *x.shape[axis + 1:]), values.dtype)
    out = moved(native.take_rows, values, index, out, prod(x.shape[:axis]), n, size, prod(x.shape[axis + 1:]))
    return out if out is NotImplemented else out.view(x.dtype)


def rows_added(out: Any, x: Any, index: Any, axis: int) -> Any:
    """out[…, index, …] += x along an axis."""
    return moved(native.add_rows, x, index, out, prod(out.shape[:axis]), out.shape[axis], index.size,
                 prod(out.shape[axis + 1:]))


def addable(x: Any, index: Any) -> bool:
    return x.dtype.char in "fd" and index.dtype.char == "l" and x.size >= SMALL


@register("embedding")
def embedding(x: Any, index: Any, *, padding: Any = None, by_frequency: bool = False) -> Any:
    return rows_taken(x, index, 0) if x.ndim > 1 else NotImplemented


@register("index_select")
def index_select(x: Any, index: Any, *, axis: int) -> Any:
    return rows_taken(x, index, axis % x.ndim) if x.ndim and index.ndim == 1 else NotImplemented


def taken(x: Any, index: Any, *, axis: int) -> Any:
    return rows_taken(x, index, axis) if index.ndim == 1 else NotImplemented


register("take_axis")(taken)
register("border")(taken)
register("upsample_nearest")(taken)


@register("add_axis")
def add_axis(x: Any, index: Any, *, size: int, axis: int) -> Any:
    if index.ndim != 1 or not addable(x, index) or not size:
        return NotImplemented
    return rows_added(np.zeros((*x.shape[:axis], size, *x.shape[axis + 1:]), x.dtype), x, index, axis)


@register("index")
def index(x: Any, *indices: Any, template: Any) -> Any:
    places = [axis for axis, part in enumerate(template) if part is ARRAY]
    if (len(indices) != 1 or not x.ndim or any(part != slice(None) for axis, part in enumerate(template)
                                               if axis != places[0])):
        return NotImplemented
    return rows_taken(x, indices[0], places[0])


@register("embedding_add")
def embedding_add(x: Any, index: Any, *, rows: int) -> Any:
    if not addable(x, index) or not rows:
        return NotImplemented
    return rows_added(np.zeros((rows, *x.shape[index.ndim:]), x.dtype), x, index, 0)


@register("index_add_into")
def index_add_into(x: Any, *indices: Any, shape: Any, template: Any) -> Any:
    places = [axis for axis, part in enumerate(template) if part is ARRAY]
    if (len(indices) != 1 or not addable(x, indices[0])
            or any(part != slice(None) for axis, part in enumerate(template) if axis != places[0])):
        return NotImplemented
    axis = places[0]
    if x.shape != (*shape[:axis], *indices[0].shape, *shape[axis + 1:]):
        return NotImplemented
    return rows_added(np.zeros(shape, x.dtype), x, indices[0], axis)


@register("index_put")
def index_put(x: Any, value: Any, *indices: Any, template: Any, accumulate: bool = False) -> Any:
    places = [axis for axis, part in enumerate(template) if part is ARRAY]
    if not accumulate or len(indices) != 1 or not addable(value, indices[0]) or value.dtype is not x.dtype or \
            any(part != slice(None) for axis, part in enumerate(template) if axis != places[0]):
        return NotImplemented
    axis = places[0]
    if value.shape != (*x.shape[:axis], *indices[0].shape, *x.shape[axis + 1:]):
        return NotImplemented
    return rows_added(in_rows(x), value, indices[0], axis)


def along(x: Any, index: Any, axis: int) -> Any:
    """(outer, length in x, length of the index, inner), or None where the index is shorter along another axis."""
    if index.dtype.char != "l" or index.ndim != x.ndim or index.size < SMALL or any(
            n != m for d, (n, m) in enumerate(zip(x.shape, index.shape, strict=True)) if d != axis):
        return None
    return prod(x.shape[:axis]), x.shape[axis], index.shape[axis], prod(x.shape[axis + 1:])


def gathered(x: Any, index: Any, *, axis: int) -> Any:
    axis = axis % x.ndim if x.ndim else 0
    if (sizes := along(x, index, axis)) is None or (values := plain(x)) is None:
        return NotImplemented
    out = moved(native.gather, values, index, np.empty(index.shape, values.dtype), *sizes)
    return out if out is NotImplemented else out.view(x.dtype)


register("gather")(gathered)
register("take_along_axis")(gathered)


@register("scatter_add")
def scatter_add(x: Any, value: Any, index: Any, *, axis: int) -> Any:
    axis = axis % x.ndim if x.ndim else 0
    if x.dtype.char not in "fd" or value.dtype is not x.dtype or (sizes := along(x, index, axis)) is None:
        return NotImplemented
    return moved(native.scatter_add, value[tuple(map(slice, index.shape))], index, in_rows(x), *sizes)
