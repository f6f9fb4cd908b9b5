"""Copies, and several arrays copied into one."""
from __future__ import annotations

from typing import Any

from ...kernels.shape_arrays import look
from ...storage.cpu import NumpyStorage
from ..memory import Value, in_order
from . import emits
from .views import seen

XP = NumpyStorage.xp


@emits("clone", "contiguous")
def clone(build: Any, node: Any, x: Value) -> Any:
    out = build.new(x.shape, x.dtype)
    build.copy(x, out)
    return out


@emits("concat")
def concat(build: Any, node: Any, xs: Any, *, axis: int = 0) -> Any:
    shape, dtype = tuple(node.meta["shape"]), node.meta["dtype"]
    if any(not isinstance(x, Value) or x.dtype != dtype or x.ndim != len(shape) for x in xs) or not shape:
        return NotImplemented
    out, axis, start = build.new(shape, dtype), axis % len(shape), 0
    for x in xs:
        if x.size:
            build.copy(x, build.view(out, x.shape, out.strides, start * out.strides[axis]))
        start += x.shape[axis]
    return out


@emits("stack")
def stack(build: Any, node: Any, xs: Any, *, axis: int = 0) -> Any:
    shape, dtype = tuple(node.meta["shape"]), node.meta["dtype"]
    if any(not isinstance(x, Value) or x.dtype != dtype for x in xs):
        return NotImplemented
    out, axis = build.new(shape, dtype), axis % len(shape)
    steps = in_order(shape)
    for i, x in enumerate(xs):
        build.copy(x, build.view(out, x.shape, (*steps[:axis], *steps[axis + 1:]), i * steps[axis]))
    return out


@emits("view")
def part(build: Any, node: Any, x: Value, *, view: Any, order: Any = None) -> Any:
    if order is not None or view[0][0].by_memory:
        return NotImplemented
    shown = seen(x, lambda array: look(XP, array, view))
    return shown if shown is NotImplemented else clone(build, node, shown)


@emits("set_view")
def set_view(build: Any, node: Any, x: Value, value: Any, *, view: Any, order: Any = None,
             written: bool = False) -> Any:
    """Write to a part of a copy; to x itself, if nothing needs it afterwards."""
    if order is not None or written or view[0][0].by_memory or not x.size:
        return NotImplemented
    out = x if isinstance(value, Value) and value.buffer is x.buffer else build.reuse(x, x.shape, x.dtype)
    if out.buffer is not x.buffer or out is x:
        out = clone(build, node, x)
    part = seen(out, lambda array: look(XP, array, view))
    if part is NotImplemented:
        return part
    if not isinstance(value, Value):
        if type(value) not in (int, float) or x.dtype.kind != "f":
            return NotImplemented
        build.fill(part, value)
    elif value.dtype != x.dtype or value.ndim > part.ndim:
        return NotImplemented
    elif part.size:
        steps = (0,) * (part.ndim - value.ndim) + tuple(
            0 if n == 1 else step for n, step in zip(value.shape, value.strides, strict=True))
        build.copy(build.view(value, part.shape, steps), part)
    return out
