"""Arrays that depend on sizes alone, as constants: graphs of symbolic sizes have the steps that make them.

    tril(make_ones(shape=(n, n)))      =  a mask of the n at hand
"""
from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...core.dispatch import fresh
from ...graph.lowered import Lowered
from ...graph.nesting import mapped
from ...graph.node import Node
from ...graph.steps import Draw, Make
from ...storage.cpu import NumpyStorage
from ..values import computed
from .rewriting import described, op_of, replaced


def compute_known(graph: Lowered) -> None:
    """Replace what is made of sizes and constants by its value."""
    if not any(type(node.target) is Make for node in graph.nodes):
        return
    known: dict[Node, Any] = {}
    for node in graph.nodes:
        if node.op == "get_attr" and not node.meta.get("state"):
            known[node] = node.meta["value"]
        elif made_of(node, known):
            def value(leaf: Any) -> Any:
                return known[leaf] if isinstance(leaf, Node) else leaf
            known[node] = computed(node.target, [mapped(value, a) for a in node.args],
                                   {name: mapped(value, a) for name, a in node.kwargs.items()})
    for node, array in known.items():
        if node.op == "call_function" and type(array) is not tuple and not known.keys() >= node.users.keys():
            constant(node, np.asarray(array))


def constant(node: Node, array: Any) -> None:
    """Put a constant in the place of a node."""
    graph: Any = node.graph
    name = f"_made_{node.name}"
    graph.tensors[name] = fresh(array, NumpyStorage)
    with graph.inserting_before(node):
        new = graph.get_attr(name)
    new.meta.update(shape=array.shape, dtype=array.dtype, value=array)
    replaced(node, described(new, node))


def made_of(node: Node, known: Any) -> bool:
    """Return True for a step that computes with known arrays alone, or makes one."""
    return (node.op == "call_function" and not isinstance(node.target, Draw)
            and all(each in known for each in node._input_nodes)
            and (bool(node._input_nodes) or type(node.target) is Make))


def has_masks(graph: Lowered) -> bool:
    """Return True if scores of attention may be masked by what is made of sizes: passes look at its values."""
    known: dict[Node, None] = {}
    for node in graph.nodes:
        if node.op == "get_attr" and not node.meta.get("state") or made_of(node, known):
            known[node] = None
    makes = [node for node in known if node.op == "call_function" and node.target is not operator.getitem]
    return any(op_of(node) == "softmax" for node in graph.nodes) and any(
        op_of(user) in ("where", "add") and user not in known for node in makes for user in node.users)
