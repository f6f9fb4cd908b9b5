"""Errors of indices out of range: programs check indices before an op runs, but a graph knows no values then."""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np


def _embedding(x: Any, index: Any, **params: Any) -> None:
    if _outside(index, x.shape[0]):
        raise IndexError("index out of range in self")


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


CHECKS: dict[str, Callable[..., None]] = {"embedding": _embedding, "index_select": _index_select, "gather": _gather}


def _outside(index: Any, n: int) -> bool:
    """Return True if an index is negative, or not less than n."""
    return bool(np.size(index)) and (int(np.min(index)) < 0 or int(np.max(index)) >= n)


def _first(index: Any, n: int) -> int:
    return int(next(i for i in np.ravel(index) if not 0 <= i < n))


def checked(opname: str, kernel: Any) -> Any:
    """Return a kernel that raises the errors which programs see for indices out of range."""
    if (check := CHECKS.get(opname)) is None:
        return kernel

    @wraps(kernel)
    def call(*operands: Any, **params: Any) -> Any:
        check(*operands, **params)
        return kernel(*operands, **params)
    return call
