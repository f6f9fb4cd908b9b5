"""Common subexpressions: equal calls of equal arguments, of which the first remains."""
from __future__ import annotations

from typing import Any

from ...graph.lowered import Lowered
from ...graph.node import Node
from ...graph.steps import Draw, Foreign
from ...graph.symbolic_sizes import NUMBERS


def merge_equal(graph: Lowered) -> None:
    """Replace calls that repeat an earlier one, except those that draw random numbers."""
    first: dict[Any, Node] = {}
    for node in graph.nodes:
        if node.op in ("call_function", "get_attr") and not isinstance(node.target, (Draw, Foreign)):
            found = first.setdefault(_key((node.target, node.args, node.kwargs)), node)
            if found is not node:
                node.replace_all_uses_with(found)
                graph.erase_node(node)


def _key(tree: Any) -> Any:
    """Return a key that is equal for equal arguments: 1, 1.0 and True have different keys, as do 0.0 and -0.0."""
    if type(tree) in NUMBERS:
        return type(tree), id(tree)
    if isinstance(tree, (list, tuple)):
        return (type(tree), *map(_key, tree))
    if isinstance(tree, dict):
        return (dict, *((name, _key(value)) for name, value in sorted(tree.items())))
    if isinstance(tree, slice):
        return slice, _key(tree.start), _key(tree.stop), _key(tree.step)
    if isinstance(tree, (float, complex)):
        return type(tree), repr(tree)
    try:
        hash(tree)
    except TypeError:
        return type(tree), id(tree)
    return type(tree), tree
