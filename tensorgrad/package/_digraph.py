"""A directed graph of names, with attributes of its nodes."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class DiGraph:
    """Nodes with attributes, and edges between them."""

    def __init__(self) -> None:
        self.nodes: dict[Any, dict[str, Any]] = {}
        self._succ: dict[Any, dict[Any, bool]] = {}
        self._pred: dict[Any, dict[Any, bool]] = {}

    def add_node(self, n: Any, **attributes: Any) -> None:
        """Add a node, or set attributes of one."""
        self.nodes.setdefault(n, {}).update(attributes)
        self._succ.setdefault(n, {})
        self._pred.setdefault(n, {})

    def add_edge(self, u: Any, v: Any) -> None:
        """Add an edge from u to v, and the nodes that are missing."""
        self.add_node(u)
        self.add_node(v)
        self._succ[u][v] = self._pred[v][u] = True

    def _next(self, table: dict[Any, dict[Any, bool]], n: Any) -> Iterator[Any]:
        if n not in self:
            raise ValueError(f"The node {n} is not in the digraph.")
        return iter(table[n])

    def successors(self, n: Any) -> Iterator[Any]:
        """Return the ends of edges from n."""
        return self._next(self._succ, n)

    def predecessors(self, n: Any) -> Iterator[Any]:
        """Return the starts of edges to n."""
        return self._next(self._pred, n)

    @property
    def edges(self) -> Iterator[tuple[Any, Any]]:
        """The edges."""
        return ((u, v) for u, ends in self._succ.items() for v in ends)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes)

    def __contains__(self, n: Any) -> bool:
        try:
            return n in self.nodes
        except TypeError:           # it has no hash
            return False

    def _reached(self, table: dict[Any, dict[Any, bool]], n: Any) -> dict[Any, Any]:
        """Return {node: its predecessor} for all nodes reached from n, the nearest first."""
        found, queue = {n: None}, [n]
        for node in queue:
            for end in self._next(table, node):
                if end not in found:
                    found[end] = node
                    queue.append(end)
        return found

    def forward_transitive_closure(self, src: Any) -> set[Any]:
        """Return the nodes that are reached from src, with src."""
        return set(self._reached(self._succ, src))

    def backward_transitive_closure(self, src: Any) -> set[Any]:
        """Return the nodes from which src is reached, with src."""
        return set(self._reached(self._pred, src))

    def all_paths(self, src: Any, dst: Any) -> str:
        """Return the edges on paths from src to dst, in Graphviz's language."""
        between = self.forward_transitive_closure(src) & self.backward_transitive_closure(dst)
        return self._dot((u, v) for u, v in self.edges if u in between and v in between)

    def first_path(self, dst: Any) -> list[Any]:
        """Return a shortest path to dst from a node without predecessors, or from another if there is none."""
        before = self._reached(self._pred, dst)
        node = next((n for n in before if not self._pred[n]), [*before][-1])
        path = [node]
        while (node := before[node]) is not None:
            path.append(node)
        return path

    def to_dot(self) -> str:
        """Return the edges in Graphviz's language."""
        return self._dot(self.edges)

    @staticmethod
    def _dot(edges: Iterator[tuple[Any, Any]]) -> str:
        lines = "".join(f'"{u}" -> "{v}";\n' for u, v in edges)
        return f"digraph G {{\nrankdir = LR;\nnode [shape=box];\n{lines}}}\n"
