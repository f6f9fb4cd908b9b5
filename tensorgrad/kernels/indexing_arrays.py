"""Reading and writing at index arrays, on arrays that are memory."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.base import HALVES
from ..ops.indexing import filled
from ..runtime.small_floats import computed
from .arrays import in_arrays


def at(ufunc: Any, out: Any, index: Any, value: Any) -> None:
    """Run `ufunc.at(out, index, value)`; ValueError for values with too many axes, with which NumPy would crash."""
    parts = index if isinstance(index, tuple) else (index,)
    arrays = [1 if part.dtype.kind == "b" else part.ndim for part in parts if hasattr(part, "dtype")]
    taken = sum(part.ndim if hasattr(part, "dtype") and part.dtype.kind == "b"
                else part is not None and part is not Ellipsis for part in parts)
    axes = out.ndim - taken + sum(part is None or isinstance(part, slice) for part in parts) + max(arrays, default=0)
    if getattr(value, "ndim", 0) > axes:
        raise ValueError(f"shape mismatch: values of shape {value.shape} cannot be added at a place with {axes} axes")
    ufunc.at(out, index, value)


@in_arrays("index")
def index(xp: Any, x: Any, *indices: Any, template: Any) -> Any:
    return x[filled(template, indices)]


@in_arrays("index_add_into")
def index_add_into(xp: Any, x: Any, *indices: Any, shape: Any, template: Any) -> Any:
    out = xp.zeros(shape, dtype=x.dtype)
    at(xp.add, out, filled(template, indices), x)
    return out


@in_arrays("index_put")
def index_put(xp: Any, x: Any, value: Any, *indices: Any, template: Any, accumulate: bool = False) -> Any:
    if accumulate and x.dtype.char in HALVES:
        wide, more = (xp.cast(a, dtype=computed(x.dtype)) for a in (x, value))
        return xp.cast(index_put(xp, wide, more, *indices, template=template, accumulate=True), dtype=x.dtype)
    out = x.copy()
    if accumulate:
        at(xp.add, out, filled(template, indices), value)
    else:
        out[filled(template, indices)] = value
    return out


@in_arrays("index_select")
def index_select(xp: Any, x: Any, index: Any, *, axis: int) -> Any:
    return xp.take(x, index, axis=axis)


# ── along an axis ─────────────────────────────────────────────────────────────────────────────────────────────────────


def along(xp: Any, index: Any, axis: int) -> Any:
    """The index that pairs an index array along one axis with every place along the others."""
    ndim = index.ndim
    return tuple(index if d == axis else xp.arange(n).reshape((1,) * d + (n,) + (1,) * (ndim - d - 1))
                 for d, n in enumerate(index.shape))


@in_arrays("gather")
def gather(xp: Any, x: Any, index: Any, *, axis: int) -> Any:
    return x[along(xp, index, axis)]


@in_arrays("place_along_axis")
def place_along_axis(xp: Any, x: Any, index: Any, *, shape: Any, axis: int) -> Any:
    out = xp.zeros(shape, dtype=x.dtype)
    out[along(xp, index, axis)] = x
    return out


@in_arrays("scatter")
def scatter(xp: Any, x: Any, value: Any, index: Any, *, axis: int) -> Any:
    out = x.copy()
    out[along(xp, index, axis)] = value[tuple(map(slice, index.shape))]
    return out


@in_arrays("scatter_add")
def scatter_add(xp: Any, x: Any, value: Any, index: Any, *, axis: int) -> Any:
    out = x.copy()
    at(xp.add, out, along(xp, index, axis), value[tuple(map(slice, index.shape))])
    return out


@in_arrays("scatter_extreme")
def scatter_extreme(xp: Any, x: Any, value: Any, index: Any, *, axis: int, reduce: str,
                    include_self: bool = True, equal_nan: bool = False) -> Any:
    out, where = x.copy(), along(xp, index, axis)
    value = value[tuple(map(slice, index.shape))]
    if not include_self:
        out[where] = neutral(x.dtype, reduce)
    at({"amax": xp.maximum, "amin": xp.minimum, "prod": xp.multiply}[reduce], out, where, value)
    return out


def neutral(dtype: Any, reduce: str) -> Any:
    """Return the neutral element of the reduction."""
    if reduce == "prod":
        return 1
    if dtype.kind == "b":
        return reduce == "amin"
    if dtype.kind in "fV":
        return float("-inf") if reduce == "amax" else float("inf")
    return np.iinfo(dtype).min if reduce == "amax" else np.iinfo(dtype).max
