"""The places in a graph where values are used for the last time."""
from __future__ import annotations

from typing import Any

from .node import Node


def last_uses(graph: Any) -> dict[Node, list[Node]]:
    """Return, for each node, the nodes whose last use it is: arguments from left to right, then itself if unused.

    Results are never freed.

    >>> from tensorgrad.graph import Graph
    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_method("relu", (x,))
    >>> out = graph.output(graph.call_method("sum", (y,)))
    >>> last_uses(graph)
    {x: [], relu: [x], sum_1: [relu], output: []}
    """
    found: dict[Node, list[Node]] = {}
    seen: set[Node] = set()
    for node in reversed(graph.nodes):
        if node.op == "output":
            seen.update(node._input_nodes)
            found[node] = []
        else:
            found[node] = ended = [other for other in (*node._input_nodes, node) if other not in seen]
            seen.update(ended)
    return {node: found[node] for node in reversed(found)}
