"""Reductions, and running sums: native/reduce.inc and native/scans.inc."""
from __future__ import annotations

from math import prod
from typing import Any

from ...ops import reduction
from ..memory import Value
from . import emits

SUM, SQUARES, GREATEST, LEAST = range(4)
axes_of: Any = reduction.axes_of
count_of: Any = reduction.count_of


def spans(x: Value, axis: Any) -> tuple[int, int, int, list[int]] | None:
    """Return the sizes before, along and after the reduced axes, if these are adjacent, and the axes."""
    axes = sorted(axes_of(x.ndim, axis))
    first = next((a for a in axes if x.shape[a] != 1), axes[0] if axes else 0)
    stop = next((a + 1 for a in reversed(axes) if x.shape[a] != 1), first + 1)
    if not axes and x.ndim or any(a not in axes and x.shape[a] != 1 for a in range(first, stop) if x.ndim):
        return None
    return prod(x.shape[:first]), prod(x.shape[first:stop]), prod(x.shape[stop:]), axes


def fronted(build: Any, x: Value, axis: Any) -> Value:
    """Return an array whose reduced axes are the last: a copy."""
    axes = axes_of(x.ndim, axis)
    order = [a for a in range(x.ndim) if a not in axes] + sorted(axes)
    return build.whole(build.view(x, [x.shape[a] for a in order],  # type: ignore[no-any-return]
                                  [x.strides[a] for a in order]))


def reduced(build: Any, node: Any, x: Value, axis: Any, kind: int, divisor: float = 1.0,
            centre: Value | None = None) -> Any:
    """Reduce along some axes: `out` has the node's shape."""
    if x.dtype.char not in "fd" or not x.size or x.dtype != node.meta["dtype"]:
        return NotImplemented
    found = spans(x, axis)
    if found is None:
        if not axes_of(x.ndim, axis):
            return NotImplemented
        x = fronted(build, x, axis)
        n = len(axes_of(x.ndim, axis))
        found = spans(x, tuple(range(x.ndim - n, x.ndim)))
        assert found is not None
    outer, n, inner, _ = found
    shape = tuple(node.meta["shape"])
    out = build.new(shape, x.dtype)
    build.call("reduce", build.whole(x), centre, out, outer, n, inner, kind, divisor)
    return out


@emits("sum")
def total(build: Any, node: Any, x: Value, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    return NotImplemented if dtype is not None else reduced(build, node, x, axis, SUM)


@emits("mean")
def mean(build: Any, node: Any, x: Value, axis: Any = None, keepdims: bool = False) -> Any:
    return reduced(build, node, x, axis, SUM, float(count_of(x.shape, axis))) if x.size else NotImplemented


@emits("variance")
def variance(build: Any, node: Any, x: Value, *, axis: Any = None, correction: float = 1,
             keepdims: bool = False) -> Any:
    degrees = count_of(x.shape, axis) - correction
    if degrees <= 0 or not x.size:
        return NotImplemented
    if spans(x, axis) is None:
        n = len(axes_of(x.ndim, axis))
        x = fronted(build, x, axis)
        axis = tuple(range(x.ndim - n, x.ndim))
    centre = reduced(build, node, x, axis, SUM, float(count_of(x.shape, axis)))
    return centre if centre is NotImplemented else reduced(build, node, x, axis, SQUARES, float(degrees), centre)


def extreme(*ops: str, kind: int) -> None:
    @emits(*ops)
    def emit(build: Any, node: Any, x: Value, axis: Any = None, keepdims: bool = False) -> Any:
        return reduced(build, node, x, axis, kind)


extreme("amax", "max", "greatest_of_all", kind=GREATEST)
extreme("amin", "min", "least_of_all", kind=LEAST)


def places(build: Any, x: Value, axis: Any, shape: Any, kind: int, values: bool) -> Any:
    """Return the extremes along the last axis, if wanted, and their positions."""
    if axis is None or not x.ndim or axis % x.ndim != x.ndim - 1 or not x.size:
        return NotImplemented
    top, at = build.new(shape, x.dtype) if values else None, build.new(shape, "int64")
    build.call("extremes", build.whole(x), top, at, x.size // x.shape[-1], x.shape[-1], kind)
    return (top, at) if values else at


def places_of(op: str, with_values: str, kind: int) -> None:
    @emits(op)
    def place(build: Any, node: Any, x: Value, axis: Any = None, keepdims: bool = False) -> Any:
        return places(build, x, axis, tuple(node.meta["shape"]), kind, False)

    @emits(with_values)
    def both(build: Any, node: Any, x: Value, *, axis: int, keepdims: bool = False) -> Any:
        return places(build, x, axis, tuple(node.meta["shape"][0]), kind, True)


places_of("argmax", "max_dim", GREATEST)
places_of("argmin", "min_dim", LEAST)


@emits("cumsum")
def cumsum(build: Any, node: Any, x: Value, axis: Any = None, dtype: Any = None) -> Any:
    if dtype is not None or axis is None or not x.ndim or x.dtype != node.meta["dtype"]:
        return NotImplemented
    axis, out = axis % x.ndim, build.new(x.shape, x.dtype)
    build.call("cumsum", build.whole(x), out, prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1:]))
    return out
