"""Chains of elementwise ops, and reductions of rows among them, each made one node: a `Loop`.

    y = x * 2 + bias;  z = where(y > 0, y, 0)                   =   Loop(x, bias)
    y = x * rsqrt(mean(x * x, -1, keepdims) + eps) * weight     =   Loop(x, weight)

A loop takes the place of its last op. An op joins the loops of its operands if nothing else reads, before it, what they
compute: nodes need not change their order then.
"""
from __future__ import annotations

import operator
from math import prod
from typing import Any

import numpy as np

from ...graph.lowered import Lowered
from ...graph.node import Node
from ...graph.records import Record
from ...ops.base import OPS, Op
from ..loop_instructions import IN_TWO, REDUCTIONS, Unserved, kind_of, kinds, rows_of, served
from ..loop_programs import INPUTS, MOST_ROW, contiguous, program
from ..loops import At, Loop, Step
from .rewriting import settled

MOST_OPS = 48
LEAST_ROW = 8                           # elements: reductions of shorter rows are not worth a loop


class Group(Record):
    """Nodes, in the order of the graph, that become one loop over `shape` which computes in `dtype`, or "any".

    `reduced` counts the last axes that reductions among them take, 0 without reductions.
    """

    nodes: dict[Node, None]
    dtype: Any
    shape: tuple[int, ...]
    reduced: int
    inputs: dict[Node, None]

    @property
    def rows(self) -> list[tuple[int, ...]]:
        """Return the shapes of what is made of rows: with the reduced axes, and without."""
        kept = self.shape[:len(self.shape) - self.reduced]
        return [kept + (1,) * self.reduced, kept] if self.reduced else []


def make_loops(graph: Lowered) -> None:
    """Join elementwise ops, and reductions along the last axes, to loops."""
    ahead = settled(graph)
    _join(graph, [node for node in graph.nodes if node not in ahead], bool(kinds()))


def _join(graph: Lowered, among: list[Node], reductions: bool) -> None:
    place = {node: i for i, node in enumerate(graph.nodes)}
    group_of: dict[Node, Group] = {}
    for node in among:
        if (group := _alone(node, reductions)) is None:
            continue
        for before in node._input_nodes:
            other = group_of.get(before)
            if other is not None and other is not group and (both := _both(other, group, place[node], place)):
                group = both
                group_of.update(dict.fromkeys(group.nodes, group))
        group_of[node] = group
    for group in {id(g): g for g in group_of.values()}.values():
        if len(group.nodes) > 1:
            _replace(graph, group)


def _alone(node: Node, reductions: bool) -> Group | None:
    """Return the group of one node; None if no loop can compute it."""
    op = node.target
    if not (isinstance(op, type) and issubclass(op, Op)):
        return None
    operands = [a.meta["dtype"] if isinstance(a, Node) else a for a in node.args]
    if (any(isinstance(a, (list, tuple, dict)) for a in operands) or isinstance(node.meta["dtype"], list)
            or 0 in node.meta["shape"] or any(isinstance(a, Node) for a in node.kwargs.values())):
        return None
    shape, reduced = node.meta["shape"], 0
    if op.opname in REDUCTIONS:
        shape = node.args[0].meta["shape"]
        reduced = rows_of(node.kwargs.get("axis"), len(shape))
        if not reductions or not reduced or prod(shape[len(shape) - reduced:]) < LEAST_ROW:
            return None
    elif not (op.elementwise or op is OPS["cast"]):
        return None
    found = {d for d in (*operands, node.meta["dtype"]) if isinstance(d, np.dtype) and d.char in "fd"}
    if len(found) > 1 or not served(op.opname, operands, node.kwargs, node.meta["dtype"]):
        return None
    return Group({node: None}, found.pop() if found else "any", shape, reduced, dict.fromkeys(node._input_nodes))


def _both(a: Group, b: Group, now: int, place: dict[Node, int]) -> Group | None:
    """Return the group of both, where `now` is the place of the last node of b; None if they cannot be one loop."""
    nodes = dict(sorted((a.nodes | b.nodes).items(), key=lambda item: place[item[0]]))
    dtypes = {g.dtype for g in (a, b)} - {"any"}
    inputs = {node: None for node in (a.inputs | b.inputs) if node not in nodes}
    of_rows, other = (a, b) if a.reduced else (b, a)
    if other.shape != of_rows.shape and (other.reduced or other.shape not in of_rows.rows):
        return None
    if other.reduced not in (0, of_rows.reduced) or len(nodes) > MOST_OPS or len(dtypes) > 1:
        return None
    if any(place[user] < now for node in nodes for user in node.users if user not in nodes):
        return None
    dtypes_of = [kind_of(node.meta["dtype"]) for node in inputs]
    if any(dtypes_of.count(kind) > most for kind, most in INPUTS.items()):
        return None
    found = Group(nodes, dtypes.pop() if dtypes else "any", of_rows.shape, of_rows.reduced, inputs)
    return found if not found.reduced or _fits_rows(found) else None


def _fits_rows(group: Group) -> bool:
    """Return True if what loses its rows' axes meets only such values, and no element of a long row waits for it."""
    kept, dropped = group.rows
    alone = len(dropped) > 0
    waits: set[Node] = set()
    for node in group.nodes:
        if alone and node.meta["shape"] == dropped and node.target.opname not in REDUCTIONS and any(
                a not in group.nodes or a.meta["shape"] != dropped for a in node._input_nodes):
            return False
        many = node.target.opname in REDUCTIONS
        after = not waits.isdisjoint(node._input_nodes) or node.target.opname in IN_TWO
        if (prod(group.shape) // max(prod(dropped), 1) > MOST_ROW and after
                and (many or node.meta["shape"] == group.shape)):
            return False
        if after or many:
            waits.add(node)
    return True


def _replace(graph: Lowered, group: Group) -> None:
    """Put a loop in the place of a group, or several, if one cannot be."""
    nodes = list(group.nodes)
    among = set(nodes)
    results = [node for node in nodes if any(user not in among for user in node.users)]
    operands, target = loop_of(nodes, results)
    if not _possible(target, operands, results):
        if group.reduced:
            _join(graph, nodes, False)
            return
        for half in (nodes[:len(nodes) // 2], nodes[len(nodes) // 2:]):
            if len(half) > 1:
                _join(graph, half, False)
        return
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


def _possible(target: Loop, operands: list[Node], results: list[Node]) -> bool:
    """Return True if the kernel can run a loop, or there is no kernel, over contiguous operands."""
    if not kinds():
        return True
    try:
        made = program(target, [contiguous(node.meta["shape"], node.meta["dtype"]) for node in operands])
    except Unserved:
        return False
    return all(made.shapes[made.same[k]] == node.meta["shape"] for k, node in enumerate(results))


def loop_of(nodes: list[Node], results: list[Node]) -> tuple[list[Node], Loop]:
    """Return the loop that computes nodes, in their order, and the nodes that are its operands."""
    among = set(nodes)
    operands = list(dict.fromkeys(a for node in nodes for a in node._input_nodes if a not in among))
    at = {node: k for k, node in enumerate((*operands, *nodes))}

    def value(a: Any) -> Any:
        return At(at[a]) if isinstance(a, Node) else a
    steps = tuple(Step(node.target.opname, tuple(map(value, node.args)), tuple(node.kwargs.items())) for node in nodes)
    return operands, Loop(len(operands), steps, tuple(at[node] for node in results))
