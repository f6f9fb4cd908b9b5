"""Copies, and several arrays copied into one."""
from __future__ import annotations

from typing import Any

from ..memory import Value, in_order
from . import emits


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
