"""A graph as steps of Python: what runs where there are no compiled kernels.

Each node is a function and the places of its arguments in one list, found once. Elementwise nodes write over an operand
that nothing reads after them.
"""
from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..core.mode import mode
from ..graph.nesting import leaves, mapped
from ..graph.node import Node
from ..graph.steps import Draw, Foreign, Make
from ..graph.uses import last_uses
from ..ops.base import Op
from .over import OVER
from .targets import Joined
from .values import computed, kernel_of


class Step(NamedTuple):
    """A node: values[place] = run(values[i] for i in sources); then the values at `ended` are dropped."""

    run: Callable[..., Any]
    sources: tuple[int, ...]
    place: int
    ended: tuple[int, ...]


class Steps:
    """Runs a graph's nodes in order, except those in `ahead`, whose values are given."""

    def __init__(self, graph: Any, ahead: set[Node]) -> None:
        order = last_uses(graph)
        self._places = {node: i for i, node in enumerate(order) if node not in ahead or set(node.users) - ahead}
        self._known = [(node, i) for node, i in self._places.items() if node in ahead]
        self._inputs = [self._places[node] for node in order if node.op == "placeholder"]
        memory = Memory(order, ahead)
        self._steps = [Step(*function(node, self._places, memory), self._places[node],
                            tuple(self._places[each] for each in ended if each not in ahead))
                       for node, ended in order.items() if node.op == "call_function" and node not in ahead]
        found = [leaf for leaf in leaves(graph.output_node().args[0]) if isinstance(leaf, Node)]
        self._begun: tuple[Any, list[Any]] = (None, [])
        self._outputs = [(self._places[leaf], not memory.alone(leaf, found)) for leaf in found]

    def run(self, known: dict[Node, Any], arrays: Sequence[Any]) -> list[Any]:
        """Return the outputs, none of which shares memory with another array. `known` has the values ahead."""
        values = self._constants(known).copy()
        for place, array in zip(self._inputs, arrays, strict=True):
            values[place] = array
        record, mode.record = mode.record, None
        try:
            for run, sources, place, ended in self._steps:
                values[place] = run(*[values[i] for i in sources])
                for i in ended:
                    values[i] = None
        finally:
            mode.record = record
        return [np.array(values[place]) if shared else np.asarray(values[place]) for place, shared in self._outputs]

    def _constants(self, known: dict[Node, Any]) -> list[Any]:
        """Return the list that a run begins with."""
        of, found = self._begun
        if of is not known:
            found = [None] * (max(self._places.values(), default=-1) + 1)
            for node, place in self._known:
                found[place] = known[node]
            self._begun = known, found
        return found


# ── functions of arrays ───────────────────────────────────────────────────────────────────────────────────────────────


def function(node: Node, places: dict[Node, int], memory: Memory) -> tuple[Callable[..., Any], tuple[int, ...]]:
    """Return (a function of arrays, the places of these) that computes a node."""
    run, args, params = runner(node.target), node.args, node.kwargs
    over = None if isinstance(node.target, Joined) else OVER.get(getattr(node.target, "opname", ""))
    if over is not None and (k := memory.free_operand(node)) is not None:
        run, params = over, {**params, "at": k}
    if any(isinstance(leaf, Node) for leaf in leaves(params)):
        return _nested(run, args, params, places)
    run = partial(run, **params) if params else run
    if all(isinstance(a, Node) for a in args):
        return run, tuple(places[a] for a in args)
    if all(isinstance(a, Node) or not isinstance(a, (list, tuple, dict, slice)) for a in args):
        return _with_constants(run, args), tuple(places[a] for a in args if isinstance(a, Node))
    return _nested(run, args, {}, places)


def runner(target: Any) -> Callable[..., Any]:
    """Return a function of arrays for a target."""
    if isinstance(target, type) and issubclass(target, Op):
        kernel: Callable[..., Any] = kernel_of(target)
        return kernel
    if isinstance(target, Joined):
        return target.prepared()
    return partial(computed_in_order, target) if isinstance(target, (Make, Draw, Foreign)) else target


def computed_in_order(target: Any, *operands: Any, **params: Any) -> Any:
    return computed(target, operands, params)


def _with_constants(run: Callable[..., Any], args: Sequence[Any]) -> Callable[..., Any]:
    """Return a function of the arrays among these arguments."""
    if len(args) == 2 and isinstance(args[0], Node):
        return lambda a, other=args[1]: run(a, other)
    count = sum(isinstance(a, Node) for a in args)
    if all(isinstance(a, Node) for a in args[:count]):
        rest = tuple(args[count:])
        return lambda *arrays: run(*arrays, *rest)

    def call(*arrays: Any) -> Any:
        left = iter(arrays)
        return run(*[next(left) if isinstance(a, Node) else a for a in args])
    return call


def _nested(run: Callable[..., Any], args: Any, params: Any,
            places: dict[Node, int]) -> tuple[Callable[..., Any], tuple[int, ...]]:
    """Return a function of arrays in lists and tuples, and their places."""
    nodes = list(dict.fromkeys(leaf for leaf in leaves([args, params]) if isinstance(leaf, Node)))

    def call(*arrays: Any) -> Any:
        of = dict(zip(nodes, arrays, strict=True))

        def value(leaf: Any) -> Any:
            return of[leaf] if isinstance(leaf, Node) else leaf
        return run(*[mapped(value, a) for a in args], **{key: mapped(value, a) for key, a in params.items()})
    return call, tuple(places[node] for node in nodes)


# ── memory ────────────────────────────────────────────────────────────────────────────────────────────────────────────

# ops whose result is in new memory, if it has an axis
NEW = frozenset("""linear linear_without_bias matmul convolution convolution_input native_layer_norm rms_norm attention
softmax log_softmax add subtract rsub multiply divide maximum minimum exp tanh sigmoid sqrt relu hardtanh gelu gelu_tanh
silu hardswish hardsigmoid leaky_relu elu mish softplus affine_by_channel embedding take index_select concat
stack""".split())


class Memory:
    """Which values of a graph may share memory."""

    def __init__(self, order: dict[Node, list[Node]], ahead: set[Node]) -> None:
        self._owners: dict[Node, frozenset[Any]] = {}
        self._last: dict[Any, int] = {}                    # of an owner: the number of the last node that reads it
        number = {node: i for i, node in enumerate(order)}
        for node in order:
            self._owners[node] = self._owner(node, ahead)
            end = max((number[user] for user in node.users), default=-1)
            for owner in self._owners[node]:
                self._last[owner] = max(self._last.get(owner, -1), end)
        self._number = number

    def _owner(self, node: Node, ahead: set[Node]) -> frozenset[Any]:
        if node.op != "call_function" or node in ahead:
            return frozenset(["outside"])
        target = node.target
        if getattr(target, "opname", "") in NEW or getattr(target, "new_memory", False):
            return frozenset([node])
        view = target is operator.getitem or getattr(target, "view", False)
        return frozenset().union(() if view else (node,), *(self._owners[each] for each in node._input_nodes))

    def free_operand(self, node: Node) -> int | None:
        """Return the number of an operand that a node may overwrite with its result; None if there is none.

        The operand has the result's shape and dtype, is alone in new memory, and nothing reads that after this node.
        """
        shape, dtype = node.meta["shape"], node.meta["dtype"]
        for k, x in enumerate(node.args if shape and dtype.char in "fd" else ()):
            if (isinstance(x, Node) and (x.meta["shape"], x.meta["dtype"]) == (shape, dtype)
                    and self._owners[x] == frozenset([x]) and self._last[x] <= self._number[node]
                    and not any(x in self._owners[other] for other in node._input_nodes if other is not x)):
                return k
        return None

    def alone(self, output: Node, outputs: Sequence[Node]) -> bool:
        """Return True if a result shares its memory neither with another one, nor with anything outside."""
        owners = self._owners[output]
        return "outside" not in owners and sum(not owners.isdisjoint(self._owners[other]) for other in outputs) == 1
