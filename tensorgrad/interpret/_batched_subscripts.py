"""Subscripts of arrays with hidden axes: reading x[index] and writing to it for each example."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.indexing import ARRAY

NO_ROOM = ("vmap: inplace arithmetic(self, *extra_args) is not possible: `self` has one memory for all examples, and "
           "its values are to differ between them. Please try to use out-of-place operators instead of inplace "
           "arithmetic.")


def examples_of(name: str) -> RuntimeError:
    """Return PyTorch's error for results whose shape differs between examples."""
    return RuntimeError(f"vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap "
                        f"over aten::{name}. Please file an issue at https://github.com/pytorch/pytorch/issues if you "
                        f"need this feature.")


def spread(x: Any, ndim: int) -> Any:
    """Return the values with axes of length 1 after the hidden ones, so that the shape has `ndim` axes."""
    missing = ndim - x.ndim
    return x.values if missing <= 0 else x.values.reshape(*x.hidden, *(1,) * missing, *x.shape)


def is_array(part: Any) -> bool:
    return hasattr(part, "shape")


def spelled_out(x: Any, index: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an index with an entry for each axis, and masks replaced by the places where they are true."""
    parts: list[Any] = []
    for part in index:
        if is_array(part) and part.dtype.kind == "b":
            if type(part) is type(x):
                if not set(part.hidden) <= {1}:
                    raise RuntimeError("vmap: We do not support batching operators that can support dynamic shape. "
                                       "Attempting to batch over indexing with a boolean mask.")
                part = part.values.reshape(part.shape)
            parts += part.nonzero()
        else:
            parts.append(part)
    if not any(part is Ellipsis for part in parts):
        parts.append(Ellipsis)
    dots = next(i for i, part in enumerate(parts) if part is Ellipsis)
    missing = x.ndim - sum(part is not None and part is not Ellipsis for part in parts)
    return (*parts[:dots], *(slice(None),) * missing, *parts[dots + 1:])


def basic(x: Any, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an index of integers and slices, extended to all examples."""
    return (*(slice(None),) * x.depth, *parts, *(() if Ellipsis in parts else (...,)))


def indexed(x: Any, index: Any) -> Any:
    """Return x[index] for each example; index arrays may differ between examples."""
    batched, depth, xp = type(x), x.depth, type(x).inner.xp
    parts = index if isinstance(index, tuple) else (index,)
    if not any(map(is_array, parts)):
        return batched(x.values[basic(x, parts)])
    parts = spelled_out(x, parts)
    arrays = [p for p in parts if is_array(p)]
    ndim = max(len(p.shape) for p in arrays)
    advanced = [i for i, p in enumerate(parts) if is_array(p) or isinstance(p, (int, np.integer))]
    adjacent = advanced == list(range(advanced[0], advanced[-1] + 1))
    # NumPy moves the axes of index arrays that are not adjacent to the front
    lead = advanced[0] if adjacent else 0
    differ = [p for p in arrays if type(p) is batched and not set(p.hidden) <= {1}]
    if not differ:
        out = x.values[(*(slice(None),) * depth,
                        *(p.values.reshape(p.shape) if type(p) is batched else p for p in parts))]
        if not adjacent:
            out = out.transpose(*range(ndim, ndim + depth), *range(ndim), *range(ndim + depth, out.ndim))
        return batched(out)
    hidden = np.broadcast_shapes(x.hidden, *(p.hidden for p in differ))
    examples = [xp.arange(n).reshape(n, *(1,) * (depth - d - 1 + ndim)) if x.hidden[d] > 1
                else xp.zeros((1,) * (depth - d + ndim), dtype="int64")
                for d, n in enumerate(hidden)]
    out = x.values[(*examples, *(spread(p, ndim) if type(p) is batched else p for p in parts))]
    if advanced[0] or not adjacent:                       # there, the hidden axes are among those in front
        out = out.transpose(*range(depth), *range(depth + ndim, depth + ndim + lead), *range(depth, depth + ndim),
                            *range(depth + ndim + lead, out.ndim))
    return batched(out if out.shape[:depth] == hidden else xp.broadcast_to(out, (*hidden, *out.shape[depth:])))


def written(x: Any, index: Any, value: Any, **how: Any) -> None:
    """Run x[index] = value, or with `accumulate` x[index] += value at index arrays, for each example.

    An array whose values will differ between examples gets memory for each of them.
    """
    batched, parts = type(x), index if isinstance(index, tuple) else (index,)
    differ = [each.hidden for each in (value, *parts) if type(each) is batched]
    if differ and (hidden := np.broadcast_shapes(x.hidden, *differ)) != x.hidden:
        if x.values.base is not None:
            raise RuntimeError(NO_ROOM)
        x.values = batched.inner.xp.broadcast_to(x.values, (*hidden, *x.shape)).copy()
    arrays = [part for part in parts if is_array(part)]
    if arrays:
        template = tuple(ARRAY if is_array(part) else part for part in parts)
        x.values[...] = batched.storage.xp.index_put(x, value, *arrays, template=template, **how).values
        return
    index = basic(x, parts)
    if type(value) is batched:
        ndim = x.values[index].ndim - x.depth
        surplus = value.ndim - ndim
        value = spread(value, ndim) if surplus <= 0 else value.values.reshape(*value.hidden, *value.shape[surplus:])
    x.values[index] = value
