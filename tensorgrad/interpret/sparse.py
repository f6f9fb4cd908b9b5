"""Run ops on sparse tensors by rules, which are written in terms of patterns and of ops on values.

A rule is a function `rule(xp, *inputs, **params)` with the inputs and parameters of the op. Its `xp` is the op table of
the dense backend: for Tensors, so that what the rule calls is recorded, or for arrays, in the backward sweep. Files of
rules are sparse_rules.py and sparse_products.py.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn, TypeVar

from ..core.dispatch import namespace
from ..core.tape import Leaf, TensorBase
from ..ops.base import OPS, Pair
from ..ops.sparse import sampled
from ..storage.sparse import SHOWN, Coo, SparseStorage, pattern_of
from ..storage.sparse_patterns import converted

Function = TypeVar("Function", bound=Callable[..., Any])
RULES, HOOKS = SparseStorage.rules, SparseStorage.hooks
ELSEWHERE = (". This could be because the operator doesn't exist for this backend, or was omitted during the "
             "selective/custom build process (if using custom build).")


def rule(*names: str) -> Callable[[Any], Any]:
    """Decorate the rule of some ops."""
    def register(function: Any) -> Any:
        for name in names:
            RULES[name] = function
        return function
    return register


def hook(function: Function) -> Function:
    """Decorate a function that modules below call."""
    HOOKS[function.__name__] = function
    return function


@hook
def kernel(op: Any, backend: Any) -> Pair:
    """Return the kernel of an op that computes by its rule, on Tensors as on arrays; without one, it refuses."""
    run = RULES.get(op.opname) or partial(_refused, op)
    table = namespace(backend.dense)

    def whole(*inputs: Any, **params: Any) -> Any:
        out = run(table, *inputs, **params)
        return out if type(out) is list or any(out is x for x in inputs) else named(out, op.torch_name)
    return Pair(lambda *arrays, **params: (run(backend.dense.xp, *arrays, **params), None), None, whole=whole)


# {op: PyTorch's operator for it, where its name is not that of the public function}
OVERLOADS = {"get_item": "as_strided", "get_slice": "as_strided", "squeeze": "as_strided", "as_strided": "as_strided",
             "mean": "mean.dim", "softmax": "_softmax", "log_softmax": "_log_softmax", "isclose": "eq.Tensor",
             "view": "view"}
COMPARED = {"equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge"}


def _refused(op: Any, xp: Any, *inputs: Any, **params: Any) -> NoReturn:
    name = op.opname
    if name == "reshape" and public_name("") != "view":
        raise RuntimeError("reshape is not implemented for sparse tensors")
    if name in COMPARED:
        name = f"{COMPARED[name]}.{'Tensor' if hasattr(inputs[1], 'shape') else 'Scalar'}"
        refuse(name if public_name("") != "equal" else "equal", *inputs)
    refuse(OVERLOADS.get(name) or public_name(name), *inputs)


@hook
def refuse(name: str, *inputs: Any) -> NoReturn:
    """Raise PyTorch's error for an operation that a layout does not have."""
    flat = [t for t in inputs for t in (t if isinstance(t, (list, tuple)) else [t])]
    layout = next(p.layout for t in flat if (p := pattern_of(t)) is not None)
    if name == "as_strided":
        check_strides(next(t for t in flat if is_sparse(t)), "strides")
    if name == "mean.dim" and SHOWN[layout] != "Sparse":
        name = "mean.out"
    device = next((t.device.type for t in flat if isinstance(t, TensorBase)), "cpu")  # type: ignore[attr-defined]
    if SHOWN[layout] != "Sparse" and name.partition(".")[0] in UNARY_OR_COMPARED:
        raise RuntimeError(f"unsupported tensor layout: {SHOWN[layout]}")
    kind = ("Sparse" if SHOWN[layout] == "Sparse" else "SparseCsr") + ("CPU" if device == "cpu" else device.upper())
    raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the '{kind}' backend{ELSEWHERE}")


UNARY_OR_COMPARED = frozenset("exp cos log sigmoid reciprocal eq ne lt le gt ge".split())


@hook
def public_name(default: str) -> str:
    """Return the name of the public function that is running."""
    frame, name = sys._getframe(1), default
    while frame is not None:
        if ".api." in frame.f_globals.get("__name__", "") and not frame.f_code.co_name.startswith("_"):
            return frame.f_code.co_name
        frame = frame.f_back  # type: ignore[assignment]
    return name


def check_strides(x: Any, name: str) -> None:
    """Raise PyTorch's error if a tensor is compressed: `name` is "strides" or "is_contiguous"."""
    getattr(x, "array", x).check_strides(name)


def is_sparse(x: Any) -> bool:
    return pattern_of(x) is not None


def pattern(x: Any) -> Any:
    return pattern_of(x)


def values(xp: Any, x: Any) -> Any:
    """Return the values, in the pattern's order."""
    own = pattern(x)
    return xp.sparse_values(x, pattern=own, own=own)


def made(xp: Any, pattern: Any, values: Any) -> Any:
    """Return the sparse tensor of a pattern and its values."""
    return xp.sparse_tensor(values, pattern=pattern)


def flat(xp: Any, x: Any) -> Any:
    """Return the values, one for each entry of `pattern(x).entries`."""
    own = pattern(x)
    found = values(xp, x)
    return found if own.values_shape == own.entries.values_shape else xp.reshape(found, own.entries.values_shape)


def summed(xp: Any, values: Any, slots: Any, count: int) -> Any:
    """Return for each slot the sum of its values; for booleans, True if one of them is."""
    slots = xp.constant(slots)
    if values.dtype in ("bool", bool) or getattr(values.dtype, "name", "") == "bool":
        return xp.embedding_add(xp.cast(values, dtype="int64"), slots, rows=count) != 0
    return xp.embedding_add(values, slots, rows=count)


def coalesced(xp: Any, x: Any) -> Any:
    """Return the coalesced tensor: itself if it is coalesced or compressed."""
    own = pattern(x)
    if not isinstance(own, Coo) or own.coalesced:
        return x
    unique, slots, _ = own.ordered
    found = made(xp, unique, summed(xp, values(xp, x), slots, unique.count))
    return named(found, "Coalesce") if isinstance(found, TensorBase) else found


def dense(xp: Any, x: Any, masked: bool = True) -> Any:
    """Return the tensor as a dense one."""
    return x if pattern(x) is None else xp.sparse_to_dense(x, pattern=pattern(x), masked=masked)


def mapped(x: Any, function: Any) -> Any:
    """Apply a function that maps 0 to 0 to the values of a sparse Tensor, coalesced."""
    xp = namespace(pattern(x).backend)
    x = coalesced(xp, x)
    return made(xp, pattern(x), function(values(xp, x)))


def in_layout(xp: Any, x: Any, layout: Any, blocksize: Any = None) -> Any:
    """Return the sparse tensor in another sparse layout."""
    own = pattern(x)
    if own.layout is layout and blocksize in (None, getattr(own, "blocksize", None)):
        return x
    return at(xp, x, converted(own, layout, blocksize))


def at(xp: Any, x: Any, wanted: Any) -> Any:
    """Return the sparse tensor with this pattern and with the values that a tensor of any layout has there."""
    return made(xp, wanted, sampled(xp, x, wanted))  # type: ignore[no-untyped-call]


def take(xp: Any, values: Any, order: Any) -> Any:
    """Return the values in another order."""
    return values if order is None else xp.embedding(values, xp.constant(order))


def named(x: Any, name: str) -> Any:
    """Return the result of a rule, with PyTorch's name for its step."""
    node = x._node
    if node is not None and type(node) is not Leaf and node.op in (OPS["sparse_tensor"], OPS["sparse_matmul"]):
        node.params = {**node.params, "called": name}
    return x
