"""Calls of modules on nodes, the syntax of nngraph: `nn.Linear(2, 3)(node)` is a node, and `nngraph.gModule` makes a module of such nodes."""
from __future__ import annotations

from typing import Any

__all__ = ["Node"]


class Node:
    """One call of a module in a graph that is being written: `module`, and the nodes it reads. A node without any is an input.

    `entry` is the index of the entry that a node without a module picks from the table before it.
    """

    def __init__(self, module: Any, *sources: Node, entry: int = 0) -> None:
        self.module, self.sources, self.entry = module, sources, entry
        self.name = ""

    def split(self, count: int) -> list[Node]:
        """Nodes for the first `count` entries of the table that this one gives."""
        return [Node(None, self, entry=i) for i in range(count)]

    def annotate(self, **notes: Any) -> Node:
        """Give it a name, which pictures show: `annotate(name="hidden")`."""
        self.name = notes.get("name", self.name)
        return self

    def __repr__(self) -> str:
        return f"Node({self.module!r}{''.join(f', {type(s.module).__name__}' for s in self.sources)})"


def nodes_of(given: tuple[Any, ...]) -> tuple[Node, ...] | None:
    """The nodes that a module is called with, one by one or in lists, or None if it is called with data."""
    flat = [n for g in given for n in (g if isinstance(g, (list, tuple)) else (g,))]
    return tuple(flat) if all(isinstance(n, Node) for n in flat) else None
