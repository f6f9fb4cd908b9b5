"""Errors for indices out of range. Programs check indices before an op runs; graphs do so while it runs."""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ..ops.indexing import ARRAY


def _embedding(x: Any, index: Any, **params: Any) -> None:
    """Check indices of rows, or of elements for `take`, where negative ones count from the end."""
    if x.ndim > 1 and _outside(index, x.shape[0]):
        raise IndexError("index out of range in self")
    if x.ndim == 1 and _outside(index, n := x.shape[0], -n):
        raise IndexError(f"out of range: tried to access index {_first(index, n, -n)} on a tensor of {n} elements.")


def _index_select(x: Any, index: Any, *, axis: int) -> None:
    if _outside(index, n := x.shape[axis]):
        if axis and x.ndim > 1:
            raise RuntimeError(f"INDICES element is out of DATA bounds, id={_first(index, n)} axis_dim={n}")
        raise IndexError("index out of range in self")


def _gather(x: Any, index: Any, *, axis: int) -> None:
    n = x.shape[axis] if x.ndim else 1
    if _outside(index, n):
        raise RuntimeError(f"index {_first(index, n)} is out of bounds for dimension {axis % max(x.ndim, 1)} with size "
                           f"{n}")


def _scatter(x: Any, value: Any, index: Any, *, axis: int, **params: Any) -> None:
    _gather(x, index, axis=axis)


def _index(x: Any, *indices: Any, template: Any) -> None:
    sizes = [n for n, part in zip(x.shape, template, strict=False) if part is ARRAY]
    for which, (n, index) in enumerate(zip(sizes, indices, strict=True)):
        if index.dtype.kind in "iu" and _outside(index, n, -n):
            raise IndexError(f"index {_first(index, n, -n)} is out of bounds for dimension {which} with size {n}")


CHECKS: dict[str, Callable[..., None]] = {
    "embedding": _embedding, "index_select": _index_select, "gather": _gather, "index": _index,
    **dict.fromkeys(("scatter", "scatter_add", "scatter_extreme"), _scatter)}


def _outside(index: Any, n: int, least: int = 0) -> bool:
    """Return True if an index is less than `least`, or not less than n."""
    return bool(np.size(index)) and (int(np.min(index)) < least or int(np.max(index)) >= n)


def _first(index: Any, n: int, least: int = 0) -> int:
    return int(next(i for i in np.ravel(index) if not least <= i < n))


def checked(opname: str, kernel: Any) -> Any:
    """Return a kernel that raises the errors which programs see for indices out of range."""
    if (check := CHECKS.get(opname)) is None:
        return kernel

    @wraps(kernel)
    def call(*operands: Any, **params: Any) -> Any:
        check(*operands, **params)
        return kernel(*operands, **params)
    return call
