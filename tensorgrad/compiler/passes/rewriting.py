"""Helpers of passes: facts about nodes, and new nodes with shapes and dtypes."""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...graph.nesting import leaves, mapped
from ...graph.node import Node
from ...graph.recording import results_of, symbols_of
from ...graph.steps import Draw
from ...graph.symbolic_sizes import Shape, plain, symbolic
from ...interpret.symbol import Symbol
from ...interpret.symbol_storage import SymbolStorage
from ...ops.base import OPS, Op
from ..targets import Joined


def op_of(node: Any) -> str:
    """Return the name of the op that a node applies; '' for other nodes, and for what is no node.

    >>> from tensorgrad.graph import lower
    >>> import tensorgrad as torch
    >>> [op_of(node) for node in lower(torch.relu, torch.ones(2)).nodes]
    ['', 'relu', '']
    """
    target = node.target if isinstance(node, Node) else None
    return target.opname if isinstance(target, type) and issubclass(target, Op) else ""


def same_kind(*nodes: Node) -> bool:
    """Return True if all nodes are of one dtype, which is float32 or float64: formulas may be rearranged."""
    first = nodes[0].meta["dtype"]
    return all(node.meta["dtype"] == first for node in nodes) and first in (np.dtype("f4"), np.dtype("f8"))


def only_user(node: Node) -> Node | None:
    """Return the node that uses a node, if there is just one, and it does so once."""
    if len(node.users) != 1:
        return None
    user = next(iter(node.users))
    times = 0

    def counted(leaf: Any) -> None:
        nonlocal times
        times += leaf is node
    mapped(counted, (user.args, user.kwargs))
    return user if times == 1 else None


def settled(graph: Any) -> set[Node]:
    """Return the nodes that depend on parameters, buffers and constants alone; random numbers do not.

    Those whose targets are `late` are left to each run, as their results would take much memory.
    """
    found: set[Node] = set()
    for node in graph.nodes:
        if node.op == "get_attr" or (node.op == "call_function" and not isinstance(node.target, Draw)
                                     and not getattr(node.target, "late", False)
                                     and found.issuperset(node._input_nodes)):
            found.add(node)
    return found


# ── new nodes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def added(place: Node, target: Any, *args: Any, like: Node | None = None, **params: Any) -> Node:
    """Add a node before another, with inferred shape and dtype; scope and source are those of `like`, or of `place`.

    `target` is the name of an op, or a target.
    """
    target = OPS[target] if isinstance(target, str) else target
    graph, like = place.graph, like or place
    with graph.inserting_before(place):
        node = graph.call_function(target, args, params)
    (shape, dtype), = inferred(target, args, params)
    if graph.sizes is not None and symbolic((params, [leaf.meta["shape"] if isinstance(leaf, Node) else leaf
                                                      for leaf in leaves((args, params))])):
        if (by_rule := symbolic_shape(getattr(target, "opname", ""), args, params)) is not None:
            shape = Shape(by_rule)
        else:
            shape = graph.sizes.shape(node, shape)
            graph.sizes.added[node] = partial(_resized, target), args, params
    node.meta.update(shape=shape, dtype=dtype)
    described(node, like)
    return node


def described(node: Node, like: Node) -> Node:
    """Give a node the scope and the source of another, if that has any, and return it."""
    node.meta.update({key: like.meta[key] for key in ("scope", "source") if key in like.meta})
    return node


def symbolic_shape(name: str, args: Any, params: Any) -> tuple[Any, ...] | None:
    """Return the shape of a result where that is a list of sizes of the operands and parameters; None for others."""
    if name == "reshape" and all(plain(n) >= 0 for n in params["shape"]):
        return tuple(params["shape"])
    if name == "permute_dims":
        return tuple(args[0].meta["shape"][axis] for axis in params["axes"])
    if name in ("linear", "linear_without_bias"):
        return *args[0].meta["shape"][:-1], args[1].meta["shape"][0]
    return None


def _resized(target: Any, args: Any, params: Any, point: Any) -> Any:
    """Return the symbol of a node that was added, where symbolic numbers have these values."""
    (shape, dtype), = inferred(target, args, params, point)
    return Symbol(shape, dtype)


def inferred(target: Any, args: Any, params: Any, value: Any = plain) -> list[tuple[tuple[int, ...], Any]]:
    """Return the shape and dtype of each result of a target, for nodes and constants as arguments.

    `value` gives the values of symbolic numbers.
    """
    if isinstance(target, Joined):
        return inferred(OPS[target.opname], args[:-1] if target.residual else args, params, value)

    def _symbol(leaf: Any) -> Any:
        return (Symbol(tuple(map(value, leaf.meta["shape"])), leaf.meta["dtype"]) if isinstance(leaf, Node)
                else value(leaf))
    operands = [mapped(_symbol, a) for a in args]
    params = {name: mapped(_symbol, a) for name, a in params.items()}
    if target.sequence:
        found = results_of(target, SymbolStorage, operands[0], params)
    else:
        found = symbols_of(target, operands, params)
    return [(tuple(x.shape), x.dtype) for x in found]


def replaced(node: Node, new: Node) -> Node:
    """Let `new` take the place of a node, erase the node, and those before it that only it needed; return `new`."""
    inputs = list(node._input_nodes)
    node.replace_all_uses_with(new)
    node.graph.erase_node(node)
    unused(inputs)
    return new


def unused(nodes: list[Node]) -> None:
    """Erase calls that have no user, and, in turn, their arguments."""
    while nodes:
        node = nodes.pop()
        if node.op == "call_function" and not node.users and not node._erased and not isinstance(node.target, Draw):
            nodes.extend(node._input_nodes)
            node.graph.erase_node(node)
