"""A backward, one step at a time, with the numbers that go into each rule and come out of it. Nothing is changed by looking:

no .grad, no hook runs, and nothing that the tape saved is freed. What pulls a step is the step itself, in the engine's own order.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from ..autograd.function import FunctionNode
from ..core import engine
from ..core.fused import Residual, plan_of
from ..core.mode import mode
from ..core.tape import Output, Packed, TensorBase
from ..guest import Region
from ..ops.base import OPS, arguments, input_name
from .text import Value


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
    grads = engine._roots((tensor,), None if gradient is None else (gradient,), False)
    (root, start), = grads.items()
    if root._storage.rank:
        raise RuntimeError("explain() shows the numbers of one example: it cannot look into a tensor inside vmap")
    order = engine._route(grads)
    before, outer = mode.grad, mode.sweep
    useful = {root, *order, *(e for node in order for e in node.edges)}
    mode.sweep = engine.Sweep(order, useful, useful, ())       # as in autograd.grad: a Function may ask, and must leave .grad alone
    reading = engine.Sweep(order, useful, useful, ())          # what a checkpoint computes again, it hands out once in a sweep
    start, steps = Value.of(start), []
    mode.set_grad(False)
    try:
        for node in order:
            g = grads.pop(node, None)
            if g is None:
                continue
            if type(node) is Output:
                parts = grads.setdefault(node.node, [None] * len(node.node.shape))
                parts[node.index] = g if parts[node.index] is None else parts[node.index] + g
            else:
                steps.append(engine.on(node, _step)(node, g, grads, reading))
    finally:
        mode.set_grad(before)
        mode.sweep = outer
    return Backward(root, start, steps, {leaf: Value.of(g) for leaf, g in grads.items()})


def _step(node: Any, g: Any, grads: dict[Any, Any], reading: Any) -> Step:
    backends = getattr(node, "backends", None) or [type(node._storage)] * len(g if type(g) is list else [g])
    incoming = tuple(None if part is None else Value.of(part) for part, backend in zip(g if type(g) is list else [g], backends))
    if type(g) is list:
        g = engine._all_results(node, list(g), False)
    pulled, shares, position = node.pull(g, None), [], -1
    mode.sweep, outer = reading, mode.sweep
    try:
        operands = tuple(operands_of(node))
    finally:
        mode.sweep = outer
    for edge, ge in pulled:
        position = next(i for i, e in enumerate(node.edges) if i > position and e is edge)
        waiting = grads.get(edge)
        grads[edge] = ge if waiting is None else waiting + ge
        shares.append(Share(position, input_of(node, position), edge, Value.of(ge),
                            None if waiting is None else Value.of(waiting), Value.of(grads[edge])))
    return Step(node, incoming, operands, tuple(shares))


def op_of(node: Any) -> Any:
    """The op of the table that a step applies; None for a program's own Function."""
    return OPS.get(getattr(type(node), "opname", None))


def input_of(node: Any, position: int) -> str:
    """What the op calls its input at a position; those that share a name are counted."""
    if isinstance(node, FunctionNode):
        return f"input {node.places[position]}"
    op = op_of(node)
    name = input_name(op, position)
    return name if op.arity is not None or position < len(op.inputs) - 1 else f"{name}[{position - len(op.inputs) + 1}]"


def operands_of(node: Any) -> list[Operand]:
    """What the rules of a step ask for, by the names they have there."""
    if isinstance(node, FunctionNode):
        return [Operand(f"saved {i}", s.edge or s.tensor, Value.of(s.tensor)) for i, s in enumerate(node.ctx._saved)
                if s is not None and type(s.tensor) is not Packed]
    op, saved = op_of(node), node.saved
    if type(saved) is Residual and op.composite:
        names = [input_of(node, i) for i in range(len(saved.needed))]
        given = [Operand(name, edge or value, _seen(node, value)) for name, edge, value in zip(names, node.edges, saved.needed) if value is not None]
        return given + [Operand(name, None, value) for name, value in node.params.items()]
    plan = node.plan
    if type(saved) is Residual:
        saved, plan = saved.needed, plan_of(op, node.edges)
    values = [v.unpacked() if type(v) is Packed else v for v in saved]
    arrays = [v.array if isinstance(v, TensorBase) else v for v in values]
    for extra in plan.extras:
        arrays.append(extra(node, arrays))
    found: dict[str, Operand] = {}
    for _, formula, wants in plan.steps:
        for name, place in zip(arguments(formula)[0][2:], wants):
            if place < len(plan.origins):
                origin, value = plan.origins[place], values[place]
                if origin < len(node.edges):
                    found[name] = Operand(name, node.edges[origin] or value, _seen(node, value))
                else:
                    found[name] = Operand(name, _result(node, origin - len(node.edges)), _seen(node, value))
            elif name == op.inputs[-1]:                  # any number of inputs, together
                found |= {k: Operand(k, None, _seen(node, v)) for i, v in enumerate(arrays[place]) if (k := f"{name}[{i}]")}
            else:
                found[name] = Operand(name, None, arrays[place])
    return list(found.values())


def _seen(node: Any, value: Any) -> Any:
    """A saved value; None if it was written over since, which the kernel that kept something else does not mind."""
    if isinstance(value, TensorBase):
        return None if value._storage.written > node.time and value._storage.written > getattr(node, "since", 0) else Value.of(value)
    return Value.of(value) if hasattr(value, "shape") or isinstance(value, (int, float, complex)) else value


def _result(node: Any, index: int) -> Any:
    """The place on the tape of one of a step's results."""
    if type(node.dtype) is not tuple:
        return node
    reference = node.results[index]
    return None if reference is None else reference()
