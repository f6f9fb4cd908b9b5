"""Rows and elements at given indices: native/scatter.inc. An index out of range ends the run; then Python runs the
graph,
and raises the error."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...ops.indexing import ARRAY
from ..memory import Value
from ..packed import PackedRows
from . import emits

NUMBERS = {4: np.dtype(np.float32), 8: np.dtype(np.float64)}


def plain(build: Any, x: Value) -> Any:
    """View the array as floating-point numbers of the same width: they are moved, not computed with."""
    number = NUMBERS.get(x.dtype.itemsize)
    return None if number is None or x.dtype.kind not in "fiuc" else build.view(x, x.shape, x.strides, dtype=number)


def check(build: Any, index: Any, n: int) -> None:
    """End a run at a negative index, or one that is too large."""
    if isinstance(index, Value) and index.size and n:
        build.call("within", build.whole(index), build.new((1,), np.int64), index.size, n)


def moved(build: Any, kernel: str, x: Value, index: Value, shape: Any, *sizes: int) -> Any:
    values = plain(build, build.whole(x))
    if values is None or index.dtype != np.int64:
        return NotImplemented
    out, bad = build.new(shape, values.dtype), build.new((1,), np.int64)
    build.call(kernel, values, build.whole(index), out, bad, *sizes)
    return build.view(out, shape, out.strides, dtype=x.dtype)


def taken(build: Any, x: Value, index: Value, axis: int) -> Any:
    """Slices x[…, index, …] along an axis."""
    axis %= x.ndim
    outer, inner = prod(x.shape[:axis]), prod(x.shape[axis + 1:])
    return moved(build, "take_rows", x, index, (*x.shape[:axis], *index.shape, *x.shape[axis + 1:]), outer,
                 x.shape[axis], index.size, inner)


@emits("embedding")
def embedding(build: Any, node: Any, x: Value, index: Any, *, padding: Any = None, by_frequency: bool = False) -> Any:
    if not x.ndim or not isinstance(index, Value):
        return NotImplemented
    if x.ndim > 1:                      # `take` counts negative indices from the end
        check(build, index, x.shape[0])
    return taken(build, x, index, 0)


@emits(PackedRows)
def packed_rows(build: Any, node: Any, packed: Value, index: Any, **params: Any) -> Any:
    target: PackedRows = node.target
    if not isinstance(index, Value) or not packed.size or not index.size:
        return NotImplemented
    if target.op.opname in ("embedding", "index_select"):
        check(build, index, target.n)
    out, bad = build.new((*index.shape, packed.shape[1]), packed.dtype), build.new((1,), np.int64)
    build.call("packed_rows", packed, build.whole(index), out, bad, target.n, index.size, packed.shape[1])
    return out


@emits("index_select")
def index_select(build: Any, node: Any, x: Value, index: Any, *, axis: int) -> Any:
    check(build, index, x.shape[axis] if x.ndim else 0)
    return take_axis(build, node, x, index, axis=axis)


@emits("take_axis", "border", "upsample_nearest")
def take_axis(build: Any, node: Any, x: Value, index: Any, *, axis: int) -> Any:
    return taken(build, x, index, axis) if x.ndim and isinstance(index, Value) and index.ndim == 1 else NotImplemented


@emits("index")
def index(build: Any, node: Any, x: Value, *indices: Any, template: Any) -> Any:
    places = [axis for axis, part in enumerate(template) if part is ARRAY]
    if len(indices) != 1 or not x.ndim or any(part != slice(None) for axis, part in enumerate(template)
                                              if axis != places[0]):
        return NotImplemented
    return taken(build, x, indices[0], places[0])


@emits("gather")
def gather(build: Any, node: Any, x: Value, index: Any, *, axis: int) -> Any:
    check(build, index, x.shape[axis] if x.ndim else 0)
    return take_along_axis(build, node, x, index, axis=axis)


@emits("take_along_axis")
def take_along_axis(build: Any, node: Any, x: Value, index: Any, *, axis: int) -> Any:
    if not x.ndim or not isinstance(index, Value) or index.ndim != x.ndim:
        return NotImplemented
    axis %= x.ndim
    if any(n != m for d, (n, m) in enumerate(zip(x.shape, index.shape, strict=True)) if d != axis):
        return NotImplemented
    return moved(build, "gather", x, index, index.shape, prod(x.shape[:axis]), x.shape[axis], index.shape[axis],
                 prod(x.shape[axis + 1:]))
