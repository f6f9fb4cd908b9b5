"""The values of a forward, afterwards: what the tape and living tensors still hold, and what can be computed again from that."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..autograd.function import FunctionNode
from ..core.dispatch import apply, wrap
from ..core.fused import Residual, plan_of
from ..core.mode import mode
from ..core.tape import FREED, Leaf, Output, TensorBase, node_of
from .recovering import recovered
from .steps import op_of
from .text import Value

LARGEST = 1 << 20       # elements of an input, up to which a step is computed again


def replay(nodes: list[Any], tensors: list[Any]) -> tuple[dict[Any, Value], dict[Any, dict[int, Any]]]:
    """{node: its value} and {step: {position: input that needs no gradient}}, as far as these can be known.

    `tensors` are some that live, such as the program's variables.
    """
    known: dict[Any, Any] = {}
    last = {node: node.time for node in nodes}       # until when a value must not have been written over, to be what was used
    for node in nodes:
        for e in node.edges:
            if e is not None:
                last[e] = max(last[e], node.time)
    for tensor in (*tensors, *(n.tensor for n in nodes if type(n) is Leaf), *map(_retaining, nodes)):
        if isinstance(tensor, TensorBase) and (node := node_of(tensor)) in last and tensor.array.shape == node.shape \
                and tensor._storage.written <= max(last[node] if type(node) is Leaf else node.time, getattr(node, "since", 0)):
            known.setdefault(node, tensor)
    constants = {node: dict(_kept(node, known)) for node in nodes if type(node) not in (Leaf, Output)}
    before = mode.grad
    mode.set_grad(False)
    try:
        for node in nodes:
            if type(node) in (Leaf, Output):
                continue
            places = _places(node)
            if any(place not in known for place in places) and (results := _again(node, known, constants[node])) is not None:
                known.update((p, r) for p, r in zip(places, results) if p is not None and p not in known)
    finally:
        mode.set_grad(before)
    for node in constants:
        constants[node] = constants[node] or recovered(node, known, tensors)
    return {node: Value.of(tensor) for node, tensor in known.items()}, constants


def _places(node: Any) -> list[Any]:
    """Where a step's results are on the tape: itself, or the places of several."""
    return [node] if type(node.dtype) is not tuple else [None if r is None else r() for r in node.results]


def _retaining(node: Any) -> Any:
    return node.hooks.retained() if node.hooks is not None and node.hooks.retained is not None else None


def _kept(node: Any, known: dict[Any, Any]) -> Iterable[tuple[int, Any]]:
    """(position, value) of the inputs that a step kept and that need no gradient; the others, and its result, go to `known`."""
    saved, plan, op = node.saved, node.plan if not isinstance(node, FunctionNode) else None, op_of(node)
    if saved is FREED or op is None:
        return
    if type(saved) is Residual:
        plan = None if op.composite else plan_of(op, node.edges)
        saved = saved.needed
    for position, value in zip(range(len(saved)) if plan is None else plan.origins, saved):
        if isinstance(value, TensorBase) and value._storage.written > max(node.time, getattr(node, "since", 0)):
            continue
        if position < len(node.edges):
            if node.edges[position] is None:
                yield position, value
            elif isinstance(value, TensorBase):
                known.setdefault(node.edges[position], value)
        elif type(node.dtype) is not tuple and node._storage.written <= max(node.time, getattr(node, "since", 0)) and hasattr(value, "shape"):
            known.setdefault(node, value if isinstance(value, TensorBase) else wrap(value, type(node._storage)()))


def _again(node: Any, known: dict[Any, Any], constants: dict[int, Any]) -> Any:
    """The results of a step, computed once more; None if some input is not known."""
    op, inputs = op_of(node), []
    if op is None or op.opname == "set_view":
        return None
    for position, e in enumerate(node.edges):
        if e is None and position not in constants or e is not None and e not in known:
            return None
        value = known[e] if e is not None else constants[position]
        if isinstance(value, TensorBase):
            if value.array.size > LARGEST:
                return None
            value = wrap(value.array, type(value._storage)())      # a storage of its own: a view of it leaves no trace
        elif hasattr(value, "shape"):
            value = wrap(value, type(node._storage)())
        inputs.append(value)
    try:
        results = apply(op, *([inputs] if op.sequence else inputs), **(node.params or {}))
    except Exception:       # arguments that the tape does not keep as they were
        return None
    results = list(results) if op.several else [results]
    shapes = node.shape if op.several else (node.shape,)
    return results if [r.array.shape for r in results] == list(shapes) else None
