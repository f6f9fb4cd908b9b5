"""Reductions, sorting, cumulative sums and normalizations over an axis. https://onnx.ai/onnx/operators/"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import api as torch
from ...nn import functional as F
from ._table import number, numbers, operator


def _reduce(name: str, compute: Callable[[Any, list[int], bool], Any]) -> None:
    """Define a reduction: axes are an attribute at first, an input later. No axes mean all, or none with
    `noop_with_empty_axes`."""
    def reduce(x: Any, axes: Any = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
        places = [] if axes is None else numbers(axes)
        if not places:
            if noop_with_empty_axes:
                return compute(x.unsqueeze(0), [0], False)
            places = list(range(x.ndim))
        return compute(x, places, bool(keepdims)) if x.ndim else compute(x.reshape(1), [0], False)

    operator(name)(lambda x, *, axes=None, keepdims=1: reduce(x, axes, keepdims=keepdims))
    operator(name, since=13 if name == "ReduceSum" else 18)(reduce)


def _product(x: Any, axes: list[int], keep: bool) -> Any:
    for axis in sorted((axis % x.ndim for axis in axes), reverse=True):
        x = torch.prod(x, axis, keep, dtype=x.dtype)
    return x


def _norm1(x: Any, axes: list[int], keep: bool) -> Any:
    return torch.sum(torch.abs(x), axes, keep, dtype=x.dtype)


def _squares(x: Any, axes: list[int], keep: bool) -> Any:
    return torch.sum(x * x, axes, keep, dtype=x.dtype)


def _mean(x: Any, axes: list[int], keep: bool) -> Any:
    if x.is_floating_point():
        return torch.mean(x, axes, keep)
    count = max(1, torch.ones(x.shape).sum(axes).numel() and x.numel() // torch.ones(x.shape).sum(axes).numel())
    return torch.div(torch.sum(x, axes, keep, dtype=x.dtype), count, rounding_mode="trunc")


def _extreme(number_of: Callable[..., Any], which: str) -> Callable[[Any, list[int], bool], Any]:
    """Return the function for the largest or the smallest element; an empty axis gives the limit of the type."""
    def compute(x: Any, axes: list[int], keep: bool) -> Any:
        if all(x.shape[axis] for axis in axes):
            return number_of(x, axes, keep) if x.dtype != torch.bool else number_of(x.byte(), axes, keep).bool()
        limit = float("-inf" if which == "max" else "inf")
        if not x.is_floating_point():
            limit = getattr(torch.iinfo(x.dtype), "min" if which == "max" else "max")
        kept = [(1 if keep else 0) if i in {axis % x.ndim for axis in axes} else n for i, n in enumerate(x.shape)]
        return torch.full([n for n, at in zip(kept, range(x.ndim), strict=True)
                           if keep or at not in {axis % x.ndim for axis in axes}], limit, dtype=x.dtype)
    return compute


def _log_sum_exp(x: Any, axes: list[int], keep: bool) -> Any:
    return torch.logsumexp(x, axes, keep)


_reduce("ReduceSum", lambda x, axes, keep: torch.sum(x, axes, keep, dtype=x.dtype))
_reduce("ReduceMean", _mean)
_reduce("ReduceMax", _extreme(torch.amax, "max"))
_reduce("ReduceMin", _extreme(torch.amin, "min"))
_reduce("ReduceProd", _product)
_reduce("ReduceL1", _norm1)
_reduce("ReduceL2", lambda x, axes, keep: torch.sqrt(_squares(x, axes, keep).to(
    x.dtype if x.is_floating_point() else torch.float64)).to(x.dtype))
_reduce("ReduceSumSquare", _squares)
_reduce("ReduceLogSum", lambda x, axes, keep: torch.log(torch.sum(x, axes, keep, dtype=x.dtype)))
_reduce("ReduceLogSumExp", _log_sum_exp)


def _arg(name: str, find: Any) -> None:
    """Define ArgMax or ArgMin."""
    @operator(name)
    def argument(x: Any, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
        if not select_last_index:
            return find(x, axis, bool(keepdims))
        return x.shape[axis] - 1 - find(x.flip([axis]), axis, bool(keepdims))


_arg("ArgMax", torch.argmax)
_arg("ArgMin", torch.argmin)


@operator("TopK")
def top_k_fixed(x: Any, *, k: int, axis: int = -1) -> Any:
    return tuple(torch.topk(x, k, axis))


@operator("TopK", since=10)
def top_k(x: Any, k: Any, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> Any:
    values, places = torch.sort(x, dim=axis, descending=bool(largest), stable=True)
    count = int(number(k.reshape(()) if hasattr(k, "reshape") else k))
    return values.narrow(axis, 0, count), places.narrow(axis, 0, count)


@operator("CumSum")
def cumulative_sum(x: Any, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Any:
    return _cumulative(torch.cumsum, x, int(number(axis)), exclusive, reverse, 0)


@operator("CumProd")
def cumulative_product(x: Any, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Any:
    return _cumulative(torch.cumprod, x, int(number(axis)), exclusive, reverse, 1)


def _cumulative(compute: Any, x: Any, axis: int, exclusive: int, reverse: int, first: int) -> Any:
    x = x.flip([axis]) if reverse else x
    if exclusive and x.shape[axis]:
        start = torch.full_like(x.narrow(axis, 0, 1), first)
        x = torch.cat([start, x.narrow(axis, 0, x.shape[axis] - 1)], axis)
    found = compute(x, axis, dtype=x.dtype)
    return found.flip([axis]) if reverse else found


def _over_last(compute: Any) -> Any:
    """Return the form of softmax before version 13: over all axes from `axis` on."""
    def flat(x: Any, *, axis: int = 1) -> Any:
        start = axis % x.ndim if x.ndim else 0
        rows = 1
        for n in x.shape[:start]:
            rows *= n
        return compute(x.reshape(rows, -1), 1).reshape(x.shape)
    return flat


def _hardmax(x: Any, axis: int) -> Any:
    places = torch.argmax(x, axis, True)
    steps = torch.arange(x.shape[axis]).reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    return (places == steps).to(x.dtype)


def _axiswise(name: str, compute: Any) -> None:
    operator(name)(_over_last(compute))
    operator(name, since=13)(lambda x, *, axis=-1: compute(x, axis))


_axiswise("Softmax", F.softmax)
_axiswise("LogSoftmax", F.log_softmax)
_axiswise("Hardmax", _hardmax)


@operator("LpNormalization")
def lp_normalization(x: Any, *, axis: int = -1, p: int = 2) -> Any:
    norm = torch.sum(torch.abs(x), axis, True) if p == 1 else torch.sqrt(torch.sum(x * x, axis, True))
    return torch.where(norm == 0, torch.zeros_like(x), x / torch.where(norm == 0, torch.ones_like(norm), norm))


@operator("MeanVarianceNormalization")
def mean_variance_normalization(x: Any, *, axes: Any = (0, 2, 3)) -> Any:
    mean = torch.mean(x, list(axes), True)
    deviation = torch.sqrt(torch.mean(x * x, list(axes), True) - mean * mean)
    return (x - mean) / (deviation + 1e-9)
