"""Calls of modules on nodes, the syntax of nngraph: `nn.Linear(2, 3)(node)` is a node, and `nngraph.gModule` makes a
module of such nodes.
"""
from __future__ import annotations

from typing import Any

__all__ = ["Node"]


class Node:
    """A call of a module in a graph under construction: `module`, and the nodes it reads.

    A node without these is an input.

    A node without a module that reads a table selects the entry of index `entry`.
    """

    def __init__(self, module: Any, *sources: Node, entry: int = 0) -> None:
        self.module, self.sources, self.entry = module, sources, entry
        self.name = ""

    def split(self, count: int) -> list[Node]:
        """Return nodes for the first `count` entries of this node's table."""
        return [Node(None, self, entry=i) for i in range(count)]

    def annotate(self, **notes: Any) -> Node:
        """Set the name that pictures show: `annotate(name="hidden")`."""
        self.name = notes.get("name", self.name)
        return self

    def __repr__(self) -> str:
        return f"Node({self.module!r}{''.join(f', {type(s.module).__name__}' for s in self.sources)})"


def nodes_of(given: tuple[Any, ...]) -> tuple[Node, ...] | None:
    """Return the nodes that a module is called with, separately or in lists; None if it is called with data."""
    flat = [n for g in given for n in (g if isinstance(g, (list, tuple)) else (g,))]
    return tuple(flat) if all(isinstance(n, Node) for n in flat) else None
