"""MaskedTensors of the layouts sparse_coo and sparse_csr: values, and an element of the mask for each value.

An operation computes with the values alone, and its result has them at the same places.
"""
from __future__ import annotations

from typing import Any

from ... import api as tg
from ...api._sparse import rules
from ...api.sparse_methods import table
from ...core.dispatch import fresh
from ...interpret.sparse_rules import same_places
from ...storage.sparse import pattern_of
from .core import MaskedTensor, masked

LAYOUTS = (tg.sparse_coo, tg.sparse_csr)


def is_sparse(x: Any) -> bool:
    """Return True for a MaskedTensor with sparse values."""
    return isinstance(x, MaskedTensor) and pattern_of(x) is not None


def values_of(x: Any) -> Any:
    """Return the values of a sparse tensor, with their history."""
    return (x.coalesce() if x.layout is tg.sparse_coo else x).values()


def beside(x: Any, values: Any) -> Any:
    """Return the sparse tensor with the indices of x and other values."""
    found = x.coalesce() if x.layout is tg.sparse_coo else x
    return rules().made(table(found), pattern_of(found), values)


def valid(x: Any) -> Any:
    """Return the values of a sparse MaskedTensor, as a strided one."""
    return masked(values_of(x.get_data()), values_of(x.get_mask()))


def elementwise(func: Any, args: Any, kwargs: Any) -> Any:
    """Apply a function to the values of one or two tensors; in place, replace the values of the first."""
    x = next(a for a in args if is_sparse(a))
    for other in args:
        if pattern_of(other) is not None and other is not x:
            _check_places(x, other)
    in_place = func.__name__.endswith("_") and not func.__name__.endswith("__")
    plain = [a.as_subclass(tg.Tensor) if isinstance(a, tg.Tensor) else a for a in args]
    values = [values_of(a) if pattern_of(a) is not None else a for a in plain]
    if in_place:
        values[0] = values[0].clone()
    found = beside(x.get_data(), func(*values, **kwargs))
    if in_place:
        x.copy_(found)
        return x
    return masked(found, x.get_mask())


def _check_places(x: Any, other: Any) -> None:
    if x.layout is not other.layout or not same_places(pattern_of(x), pattern_of(other)):
        raise ValueError(f"{str(x.layout).rpartition('.')[2]} indices must match. If you need support for this, please "
                         "open an issue on Github.")
    if x.shape != other.shape:
        raise ValueError("input1 and input2 must have the same size for binary functions.")


def place(x: Any, found: Any) -> Any:
    """Return the index in the flattened tensor of value number `found`."""
    own: Any = pattern_of(x)
    keys = fresh(own.entries.keys, own.backend)
    return keys[found.to(dtype=tg.int64)].to(dtype=found.dtype)  # type: ignore[no-any-return]


def converted(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Convert the tensor and its mask to another layout."""
    x, data, mask = args[0], args[0].get_data(), args[0].get_mask()
    if name == "to_dense":
        return masked(func(data, **kwargs), mask.to_dense())
    if x.layout is (tg.sparse_csr if name == "to_sparse_csr" else tg.sparse_coo):
        return x
    mask = func(mask, *args[1:], **kwargs)
    return masked(data.sparse_mask(mask), mask)


def parts(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Return the values or the indices, with a mask that is True throughout."""
    found = func(args[0].get_data())
    return masked(found, tg.ones_like(found, dtype=tg.bool))
