"""A backward, one step at a time, with the numbers that go into each rule and come out of it. Nothing is changed by looking:

no .grad, no hook runs, and nothing that the tape saved is freed. What pulls a step is the step itself, in the engine's own order.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from ..core.engine import starts
from ..core.sweep import StepBack, steps_back
from ..core.tape import TensorBase
from ..guest import Region
from .values import Value


class Operand(NamedTuple):
    """One thing that a rule asks for. `tensor` is what it was on the tape (a node, or a tensor that needs no gradient), if anything."""

    name: str
    tensor: Any
    value: Any            # a Value, a parameter as it is, or None: written over since


class Share(NamedTuple):
    """What a rule gives to one input: added to `before`, the gradient that waited there, it makes `total`."""

    position: int
    input: str
    target: Any           # the input's node on the tape
    value: Value
    before: Value | None
    total: Value


class Step(NamedTuple):
    """One step back: the gradients that reach it, what its rules are given, what they give."""

    node: Any
    incoming: tuple[Value | None, ...]      # one for each result; None where nothing comes back
    operands: tuple[Operand, ...]
    shares: tuple[Share, ...]


class Backward(NamedTuple):
    """A whole backward: the root, the gradient to start with, the steps, and {leaf: what reached it}."""

    root: Any
    start: Value
    steps: list[Step]
    leaves: dict[Any, Value]


def backward(tensor: Any, gradient: Any = None) -> Backward:
    """The steps that `tensor.backward(gradient)` would take. Raises its errors."""
    with Region():
        return _backward(tensor, gradient)


def _backward(tensor: Any, gradient: Any) -> Backward:
    grads = starts((tensor,), None if gradient is None else (gradient,), False)
    (root, start), = grads.items()
    if root._storage.rank:
        raise RuntimeError("explain() shows the numbers of one example: it cannot look into a tensor inside vmap")
    start = Value.of(start, type(root._storage))
    steps = [_step(back) for back in steps_back(grads)]
    return Backward(root, start, steps, {leaf: Value.of(g, type(leaf._storage)) for leaf, g in grads.items()})


def _step(back: StepBack) -> Step:
    node = back.node
    backends = getattr(node, "backends", None) or [type(node._storage)] * len(back.incoming)
    incoming = tuple(None if part is None else Value.of(part, backend) for part, backend in zip(back.incoming, backends))
    shares = []
    for position, edge, ge, before, total in back.shares:
        backend = type(edge._storage)
        shares.append(Share(position, input_of(node, position), edge, Value.of(ge, backend), None if before is None else Value.of(before, backend),
                            Value.of(total, backend)))
    return Step(node, incoming, tuple(operands_of(back)), tuple(shares))


def op_of(node: Any) -> Any:
    """The op of the table that a step applies; None for a program's own Function."""
    return getattr(node, "op", None)


def input_of(node: Any, position: int) -> str:
    """What the op calls its input at a position; those that share a name are counted."""
    return node.read(unpack=False).inputs[position].name  # type: ignore[no-any-return]


def operands_of(back: StepBack) -> list[Operand]:
    """What the rules of a step ask for, by the names they have there."""
    return [Operand(o.name, o.edge if o.edge is not None else o.value if o.position >= 0 or back.reading.op is None else None, _seen(back.node, o))
            for o in back.reading.asked.values() if o.value is not None or back.reading.op is not None]


def _seen(node: Any, operand: Any) -> Any:
    """A saved value; None if it was written over since, which the kernel that kept something else does not mind."""
    value = operand.value
    if operand.stale and node.op is not None:
        return None
    if isinstance(value, TensorBase):
        return Value.of(value)
    return Value.of(value, type(node._storage)) if operand.position >= 0 and (hasattr(value, "shape") or isinstance(value, (int, float, complex))) else value
