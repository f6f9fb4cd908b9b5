"""Reductions, scans, sorting."""
from __future__ import annotations

from math import prod
from typing import Any

from ..ops.reduction import axes_of
from ._graph import BOOL, INT, Refused
from ._sizes import Varying
from ._table import rule


@rule("sum mean prod amax amin max min greatest_of_all least_of_all")
def reduced(g: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    kind = {"sum": "ReduceSum", "mean": "ReduceMean", "prod": "ReduceProd", "amax": "ReduceMax", "amin": "ReduceMin",
            "max": "ReduceMax", "min": "ReduceMin", "greatest_of_all": "ReduceMax", "least_of_all": "ReduceMin"}[g.op]
    wide = g.out[0].dtype
    axes = None if axis is None else axes_of(x.ndim, axis)
    if x.dtype == BOOL and wide == BOOL:
        return g.cast(g.reduce(kind, g.cast(x, "int32"), axes, keepdims), BOOL)
    return g.reduce(kind, g.cast(x, wide), axes, keepdims)


@rule("any all")
def quantified(g: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    kind = "ReduceMax" if g.op == "any" else "ReduceMin"
    axes = None if axis is None else axes_of(x.ndim, axis)
    return g.cast(g.reduce(kind, g.cast(g.cast(x, BOOL), "int32"), axes, keepdims), BOOL)


@rule("argmax argmin")
def extreme_place(g: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    kind = "ArgMax" if g.op == "argmax" else "ArgMin"
    x = g.cast(x, "int32") if x.dtype == BOOL else x
    if axis is None or not x.ndim:
        place = g.node(kind, g.Reshape(x, [-1]), axis=0, keepdims=0)
        return g.Reshape(place, [1] * x.ndim) if keepdims else place
    return g.node(kind, x, axis=axis, keepdims=int(keepdims))


@rule("max_dim min_dim")
def extreme(g: Any, x: Any, *, axis: int, keepdims: bool = False) -> Any:
    if not x.ndim:
        return [g.Identity(x), g.constant(0)]
    kind = g.op.removesuffix("_dim").capitalize()
    values = g.cast(x, "int32") if x.dtype == BOOL else x
    place = g.node(f"Arg{kind}", values, axis=axis, keepdims=int(keepdims))
    return [g.cast(g.reduce(f"Reduce{kind}", values, [axis], keepdims), x.dtype) if x.dtype == BOOL else
            g.reduce(f"Reduce{kind}", values, [axis], keepdims), place]


@rule("logsumexp")
def logsumexp(g: Any, x: Any, *, axis: Any, keepdims: bool = False) -> Any:
    return g.reduce("ReduceLogSumExp", x, axes_of(x.ndim, axis), keepdims)


@rule("vector_norm")
def vector_norm(g: Any, x: Any, *, ord: Any = 2, axis: Any = None, keepdims: bool = False) -> Any:
    axes = None if axis is None else axes_of(x.ndim, axis)
    if ord in (1, 2):
        return g.reduce(f"ReduceL{int(ord)}", x, axes, keepdims)
    size = g.Abs(x)
    if ord in (float("inf"), -float("inf")):
        return g.reduce("ReduceMax" if ord > 0 else "ReduceMin", size, axes, keepdims)
    if ord == 0:
        return g.reduce("ReduceSum", g.cast(g.cast(x, BOOL), x.dtype), axes, keepdims)
    return g.Pow(g.reduce("ReduceSum", g.Pow(size, g.like(ord, x)), axes, keepdims), g.like(1 / ord, x))


@rule("count_norm")
def count_norm(g: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return vector_norm(g, x, ord=0, axis=axis, keepdims=keepdims)


@rule("variance deviation")
def spread(g: Any, x: Any, *, axis: Any = None, correction: Any = 1, keepdims: bool = False) -> Any:
    axes = axes_of(x.ndim, axis)
    away = g.Sub(x, g.reduce("ReduceMean", x, axes, True))
    square = g.reduce("ReduceSum", g.Mul(away, away), axes, keepdims)
    count = prod(x.shape[a] for a in axes)
    if isinstance(count, Varying):
        divisor = g.Max(g.Sub(g.cast(g.reduce("ReduceProd", g.sizes([x.shape[a] for a in axes], x), [0]), x.dtype),
                              g.like(correction, x)), g.like(0, x))
    else:
        divisor = g.like(max(count - correction, 0), x)
    out = g.Div(square, divisor)
    return out if g.op == "variance" else g.Sqrt(out)


# ── along an axis ─────────────────────────────────────────────────────────────────────────────────────────────────────


@rule("cumsum")
def cumsum(g: Any, x: Any, *, axis: int) -> Any:
    x = g.cast(x, g.out[0].dtype)
    return g.CumSum(x, g.constant(axis)) if x.ndim else g.Identity(x)


@rule("cumprod logcumsumexp cummax cummin")
def scanned(g: Any, x: Any, *, axis: int) -> Any:
    """Scan in log₂ n steps, each over the whole array."""
    n = x.shape[axis] if x.ndim else 1
    if isinstance(n, Varying) or g.op in ("cummax", "cummin"):
        raise Refused("along a dynamic axis" if isinstance(n, Varying) else "running extrema")
    if g.op == "cumprod":
        neutral, join = 1, g.Mul
        x = g.cast(x, g.out[0].dtype)
    else:
        neutral = float("-inf")

        def join(a: Any, b: Any) -> Any:
            top = g.Max(a, b)
            both = g.Add(top, g.Log(g.Add(g.Exp(g.Neg(g.Abs(g.Sub(a, b)))), g.like(1, x))))
            return g.Where(g.IsInf(top), top, both)
    out, step = x, 1
    while step < n:
        widths = [0] * (2 * x.ndim)
        widths[axis] = step
        shifted = g.Slice(g.Pad(out, widths, g.like(neutral, x)), [0], [n], [axis])
        out, step = join(out, shifted), step * 2
    return g.Identity(x) if out is x else out


@rule("sort_dim")
def sort(g: Any, x: Any, *, axis: int, descending: bool = False) -> Any:
    if not x.ndim:
        return [g.Identity(x), g.constant(0)]
    values, places = g.TopK(_sortable(g, x), g.size(x.shape[axis], x), axis=axis, largest=int(descending), sorted=1,
                            outputs=2)
    return [g.cast(values, x.dtype) if x.dtype == BOOL else values, places]


@rule("order")
def order(g: Any, x: Any, *, axis: int, descending: bool = False) -> Any:
    return sort(g, x, axis=axis, descending=descending)[1]


@rule("topk")
def topk(g: Any, x: Any, *, k: Any, axis: int, largest: bool = True, sorted: bool = True) -> Any:
    if not x.ndim:
        return [g.Identity(x), g.constant(0)]
    values, places = g.TopK(_sortable(g, x), g.size(k, x), axis=axis, largest=int(largest), sorted=1, outputs=2)
    return [g.cast(values, x.dtype) if x.dtype == BOOL else values, places]


@rule("kthvalue median_dim")
def kth(g: Any, x: Any, *, axis: int, k: Any = None, keepdims: bool = False) -> Any:
    if not x.ndim:
        return [g.Identity(x), g.constant(0)]
    k = (x.shape[axis] + 1) // 2 if k is None else k
    results = g.TopK(_sortable(g, x), g.size(k, x), axis=axis, largest=0, sorted=1, outputs=2)
    results = [g.Gather(r, g.Sub(g.size(k, x), [1]), axis=axis) for r in results]
    return results if keepdims else [g.Squeeze(r, [axis]) for r in results]


@rule("median_of_all")
def median(g: Any, x: Any) -> Any:
    count = prod(x.shape)
    values, _ = g.TopK(g.Reshape(x, [-1]), g.size((count + 1) // 2, x), axis=0, largest=0, sorted=1, outputs=2)
    return g.Squeeze(g.Gather(values, g.Sub(g.size((count + 1) // 2, x), [1]), axis=0), [0])


def _sortable(g: Any, x: Any) -> Any:
    return g.cast(x, "int32") if x.dtype == BOOL else x


@rule("softmax log_softmax")
def softmax(g: Any, x: Any, *, axis: int) -> Any:
    if not x.ndim:
        one = g.Sub(x, x)
        return one if g.op == "log_softmax" else g.Exp(one)
    return g.node("Softmax" if g.op == "softmax" else "LogSoftmax", x, axis=axis)


@rule("search_sorted")
def search_sorted(g: Any, sequence: Any, values: Any, *, right: bool = False) -> Any:
    """Count the elements of the sequence before each value."""
    if sequence.ndim == 1:
        before = g.node("LessOrEqual" if right else "Less", sequence, g.Unsqueeze(values, [-1]))
    else:
        before = g.node("LessOrEqual" if right else "Less", g.Unsqueeze(sequence, [-2]), g.Unsqueeze(values, [-1]))
    return g.reduce("ReduceSum", g.cast(before, INT), [-1])


