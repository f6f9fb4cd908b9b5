"""Order on arrays that are memory: by the functions that sort these."""
from __future__ import annotations

from math import prod
from typing import Any

from ..ops.sorting import Searchsorted
from .arrays import in_arrays


@in_arrays("order")
def order(xp: Any, x: Any, *, axis: int, descending: bool = False) -> Any:
    if not descending:
        return xp.argsort(x, axis=axis, kind="stable")
    reverse = (slice(None),) * axis + (slice(None, None, -1),)
    return (x.shape[axis] - 1 - xp.argsort(x[reverse], axis=axis, kind="stable"))[reverse].copy()


@in_arrays("histc")
def histc(xp: Any, x: Any, *, bins: int, low: Any, high: Any) -> Any:
    x, low, high = x.ravel(), xp.asarray(low, dtype=x.dtype), xp.asarray(high, dtype=x.dtype)
    x = x[(x >= low) & (x <= high)]
    places = ((x - low) * bins / (high - low)).astype("int64")
    return xp.bincount(xp.minimum(places, bins - 1), minlength=bins)


@in_arrays("median_of_all")
def median_of_all(xp: Any, x: Any) -> Any:
    line = xp.sort(x.reshape(-1))
    return xp.where(line[-1] != line[-1], line[-1], line[(x.size - 1) // 2])


@in_arrays("nanmedian_of_all")
def nanmedian_of_all(xp: Any, x: Any) -> Any:
    line = xp.sort(x.reshape(-1))
    return line[xp.maximum(x.size - xp.sum(x != x) - 1, 0) // 2]


@in_arrays("search_sorted")
def search_sorted(xp: Any, sequence: Any, values: Any, *, right: bool = False) -> Any:
    if sequence.ndim == 1:
        return xp.searchsorted(sequence, values, "right" if right else "left")
    return Searchsorted.forward(xp, sequence, values, right=right)


@in_arrays("distinct")
def distinct(xp: Any, x: Any) -> Any:
    values, inverse, counts = xp.unique(x, return_inverse=True, return_counts=True, equal_nan=False)
    return values, inverse.reshape(x.shape), counts


@in_arrays("distinct_slices")
def distinct_slices(xp: Any, x: Any, *, neighbours: bool = False) -> Any:
    n = x.shape[0]
    rows = x.reshape(n, prod(x.shape[1:]))
    places = xp.arange(n) if neighbours or not rows.size else xp.lexsort(rows.T[::-1])
    rows = rows[places]
    begins = xp.concatenate([xp.ones(min(n, 1), dtype=bool), (rows[1:] != rows[:-1]).any(1)])
    group = xp.cumsum(begins, axis=0) - 1
    inverse = xp.zeros(n, dtype="int64")
    inverse[places] = group
    return x[places][begins], inverse, xp.bincount(group, minlength=0)
