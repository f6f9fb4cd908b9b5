"""Sorting and selecting on NumPy: the fast sorts are not stable, so they serve where no two elements are equal;
partitions select.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ..core.dispatch import OpDispatch
from ..ops.sorting import Kthvalue, Median, Sort, Topk, part, without
from ..storage.cpu import NumpyStorage


def register(op: str) -> Any:
    return OpDispatch.register(op, "cpu")


@register("sort_dim")
def sort_dim(x: Any, *, axis: int, descending: bool = False) -> Any:
    if x.dtype.kind != "f" or x.size < 256:
        return Sort.forward(NumpyStorage.xp, x, axis=axis, descending=descending)
    indices = np.argsort(x, axis=axis)
    values = np.take_along_axis(x, indices, axis)
    before, after = part(values, axis, None, -1), part(values, axis, 1, None)
    if bool(((before == after) | (before != before)).any()):
        return Sort.forward(NumpyStorage.xp, x, axis=axis, descending=descending)
    return (np.flip(values, axis).copy(), np.flip(indices, axis).copy()) if descending else (values, indices)


@register("topk")
def topk(x: Any, *, k: int, axis: int, largest: bool = True, sorted: bool = True) -> Any:
    n = x.shape[axis]
    if n < 64 or k > n // 4 or not k:
        return Topk.forward(NumpyStorage.xp, x, k=k, axis=axis, largest=largest)
    indices = part(np.argpartition(x, n - k if largest else k - 1, axis=axis), axis, n - k if largest else 0,
                   n if largest else k)
    values = np.take_along_axis(x, indices, axis)
    order = np.argsort(values, axis=axis, kind="stable")
    order = np.flip(order, axis) if largest else order
    return np.take_along_axis(values, order, axis), np.take_along_axis(indices, order, axis)


def _ranked(x: Any, rank: int, axis: int, keepdims: bool) -> Any:
    """The element of a rank along an axis, and where it is."""
    indices = part(np.argpartition(x, rank, axis=axis), axis, rank, rank + 1)
    return without(np, (np.take_along_axis(x, indices, axis), indices.copy()), axis, keepdims)


@register("kthvalue")
def kthvalue(x: Any, *, k: int, axis: int, keepdims: bool = False) -> Any:
    return (Kthvalue.forward(NumpyStorage.xp, x, k=k, axis=axis, keepdims=keepdims) if x.size < 256
            else _ranked(x, k - 1, axis, keepdims))


@register("median_dim")
def median_dim(x: Any, *, axis: int, keepdims: bool = False) -> Any:
    if x.size < 256 or bool((x != x).any()):
        return Median.forward(NumpyStorage.xp, x, axis=axis, keepdims=keepdims)
    return _ranked(x, (x.shape[axis] - 1) // 2, axis, keepdims)


@register("median_of_all")
def median_of_all(x: Any) -> Any:
    line = x.reshape(-1)
    rank = (line.size - 1) // 2
    ranked = np.partition(line, (rank, line.size - 1))
    return ranked[-1] if ranked[-1] != ranked[-1] else ranked[rank]
