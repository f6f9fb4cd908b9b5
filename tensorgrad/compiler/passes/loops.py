"""Chains of elementwise ops, each made one node: a `Loop`.

    y = x * 2 + bias;  z = where(y > 0, y, 0)   =   Loop(x, bias)

A loop takes the place of its last op. An op joins the loops of its operands if nothing else reads, before it, what they
compute: nodes need not change their order then.
"""
from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...graph.lowered import Lowered
from ...graph.node import Node
from ...graph.steps import Draw
from ...ops.base import OPS, Op
from ..loop_instructions import kind_of, served
from ..loop_programs import INPUTS, RESULTS
from ..loops import At, Loop, Step

MOST_OPS = 48


@dataclass
class Group:
    """Nodes, in the order of the graph, that become one loop which computes in `dtype`; None: any."""

    nodes: dict[Node, None]
    dtype: Any
    inputs: dict[Node, None] = field(default_factory=dict)


def make_loops(graph: Lowered) -> None:
    """Join elementwise ops to loops."""
    place = {node: i for i, node in enumerate(graph.nodes)}
    ahead = _settled(graph)
    group_of: dict[Node, Group] = {}
    for node in place:
        if node in ahead or (dtype := _loop_dtype(node)) is None:
            continue
        group = Group({node: None}, dtype, dict.fromkeys(node._input_nodes))
        for before in node._input_nodes:
            other = group_of.get(before)
            if other is not None and other is not group and (both := _joined(other, group, place[node], place)):
                group = both
                group_of.update(dict.fromkeys(group.nodes, group))
        group_of[node] = group
    for group in {id(g): g for g in group_of.values()}.values():
        if len(group.nodes) > 1 and isinstance(group.dtype, np.dtype):
            _replace(graph, list(group.nodes))


def _settled(graph: Lowered) -> set[Node]:
    """Return the nodes that are computed ahead of the calls."""
    found: set[Node] = set()
    for node in graph.nodes:
        if node.op == "get_attr" or (node.op == "call_function" and not isinstance(node.target, Draw)
                                     and found.issuperset(node._input_nodes)):
            found.add(node)
    return found


def _loop_dtype(node: Node) -> Any:
    """Return the dtype in which a loop would compute a node: "any" if it has truth values alone; None if it cannot."""
    op = node.target
    if not (isinstance(op, type) and issubclass(op, Op) and (op.elementwise or op is OPS["cast"])):
        return None
    operands = [a.meta["dtype"] if isinstance(a, Node) else a for a in node.args]
    if any(isinstance(a, (list, tuple, dict)) for a in operands) or 0 in node.meta["shape"]:
        return None
    found = {d for d in (*operands, node.meta["dtype"]) if isinstance(d, np.dtype) and d.char in "fd"}
    if len(found) > 1 or not served(op.opname, operands, node.kwargs, node.meta["dtype"]):
        return None
    return found.pop() if found else "any"


def _joined(a: Group, b: Group, now: int, place: dict[Node, int]) -> Group | None:
    """Return the group of both, where `now` is the place of the last node of b; None if they cannot be one loop."""
    nodes = dict(sorted((a.nodes | b.nodes).items(), key=lambda item: place[item[0]]))
    shapes = {node.meta["shape"] for node in nodes}
    dtypes = {g.dtype for g in (a, b)} - {"any"}
    inputs = {node: None for node in (a.inputs | b.inputs) if node not in nodes}
    if len(nodes) > MOST_OPS or len(shapes) > 1 or len(dtypes) > 1:
        return None
    if any(place[user] < now for node in nodes for user in node.users if user not in nodes):
        return None
    kinds = [kind_of(node.meta["dtype"]) for node in inputs]
    if any(kinds.count(kind) > most for kind, most in INPUTS.items()):
        return None
    return Group(nodes, dtypes.pop() if dtypes else "any", inputs)


def _replace(graph: Lowered, nodes: list[Node]) -> None:
    """Put a loop in the place of nodes; two loops if it would have too many results."""
    among = set(nodes)
    results = [node for node in nodes if any(user not in among for user in node.users)]
    truths = sum(node.meta["dtype"] == np.dtype(bool) for node in results)
    if truths > 1 or len(results) - truths > RESULTS:
        for half in (nodes[:len(nodes) // 2], nodes[len(nodes) // 2:]):
            if len(half) > 1:
                _replace(graph, half)
        return
    operands, target = loop_of(nodes, results)
    with graph.inserting_before(nodes[-1]):
        loop = graph.call_function(target, tuple(operands))
        parts = [loop] if len(results) == 1 else [graph.call_function(operator.getitem, (loop, k))
                                                  for k in range(len(results))]
    for node, part in zip(results, parts, strict=True):
        part.meta.update(node.meta)
        node.replace_all_uses_with(part, delete_user_cb=lambda user: user not in among)
    if len(results) > 1:
        loop.meta.update(nodes[-1].meta, shape=[node.meta["shape"] for node in results],
                         dtype=[node.meta["dtype"] for node in results])
    for node in reversed(nodes):
        graph.erase_node(node)


def loop_of(nodes: list[Node], results: list[Node]) -> tuple[list[Node], Loop]:
    """Return the loop that computes nodes, in their order, and the nodes that are its operands."""
    among = set(nodes)
    operands = list(dict.fromkeys(a for node in nodes for a in node._input_nodes if a not in among))
    at = {node: k for k, node in enumerate((*operands, *nodes))}

    def value(a: Any) -> Any:
        return At(at[a]) if isinstance(a, Node) else a
    steps = tuple(Step(node.target.opname, tuple(map(value, node.args)), tuple(node.kwargs.items())) for node in nodes)
    return operands, Loop(len(operands), steps, tuple(at[node] for node in results))
