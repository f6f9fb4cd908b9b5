"""The ops of the table on symbols. Most run from their definitions, which are made of functions that know about shapes; here is what would be slow
that way, such as loops over time, and what would look at values."""
from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..storage.base import NoValues
from ..storage.cpu import NumpyStorage
from ._batched_ops import runner
from ._symbol import Symbol, laid
from ._symbol_functions import kind_of, shape_of, together

SAME = set("recurrence logcumsumexp tril triu contiguous".split())      # as the first input


def rule_of(op: Any) -> Any:
    """The kernel of an op on symbols, from what its record says; None: its definition."""
    name = op.opname
    if op.infer is not None:
        return partial(inferred, op)
    if name in RULES:
        return RULES[name]
    if op.elementwise:
        return partial(elementwise, op)
    if name in SAME:
        return lambda x, *args, **params: Symbol(x.shape, x.dtype)
    if op.by_values:
        return partial(refused, op.by_values)
    return None


def inferred(op: Any, *args: Any, **params: Any) -> Any:
    """New symbols, as the record's `infer` says."""
    found = op.infer(*args, **params)
    order = args[:1] if op.in_order else ()
    return tuple(laid(*one, *order) for one in found) if op.several else laid(*found, *order)


def refused(what: str, *args: Any, **params: Any) -> Any:
    raise NoValues(f"{what.strip('_').rstrip('2')}()")


@lru_cache(4096)
def dtype_of(op: Any, kinds: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
    """The dtype of a result: that which NumPy gives for a single element."""
    ones = [None if k is None else np.ones(1, k) if isinstance(k, np.dtype) else k(1) for k in kinds]
    return runner(op, NumpyStorage)(*ones, **dict(params)).dtype


def elementwise(op: Any, *args: Any, **params: Any) -> Any:
    """Ops on each element."""
    arrays = [a for a in args if hasattr(a, "shape")]
    dtype = dtype_of(op, tuple(None if a is None else bool if a is True or a is False else kind_of(a) for a in args), tuple(params.items()))
    shape = together(*map(shape_of, arrays))
    return Symbol(shape, dtype) if op.row_major else laid(shape, dtype, *arrays)


# ── others ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def running_extreme(x: Any, *, axis: int) -> Any:
    return Symbol(x.shape, x.dtype), Symbol(x.shape, np.int64)


def histogram(x: Any, *, bins: int, **params: Any) -> Any:
    return Symbol((bins,), np.int64)




def truth(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return Symbol.module.any(x, axis=axis, keepdims=keepdims)


RULES: dict[str, Any] = {
    "cummax": running_extreme, "cummin": running_extreme, "histc": histogram,
    "any": truth, "all": truth,
}
