"""Check that a graph is valid, and print the table of its nodes."""
from __future__ import annotations

from typing import Any

from ..messages import tables
from .node import OPS, Node


def lint(graph: Any) -> None:
    """Implement `Graph.lint`."""
    seen: set[Node] = set()
    names: set[str] = set()
    for node in graph.nodes:
        if node.op not in OPS:
            raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
        if node.graph is not graph:
            raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
        for argument in node._input_nodes:
            if argument.graph is not graph:
                raise RuntimeError(f"Argument '{argument}' of Node '{node}' does not belong to this Graph, but was "
                                   f"used as an argument! If you are copying nodes from another graph, make sure to "
                                   f"use ``arg_transform`` on node_copy() to remap values\n{graph}")
            if argument not in seen:
                raise RuntimeError(f"Argument '{argument}' of Node '{node}' was used before it has been defined! "
                                   f"Please check that Nodes in the graph are topologically ordered\n{graph}")
        seen.add(node)
        if node.name in names:
            raise RuntimeError(f"Node redefined name {node.name}!")
        names.add(node.name)
    if (owner := graph.owning_module) is not None:
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                look_up(owner, node)


def look_up(owner: Any, node: Node) -> None:
    """Raise RuntimeError unless the owner has the target of a node."""
    from ..nn import Module
    path = node.target.split(".")
    for k, name in enumerate(path):
        before, start = ".".join(path[:k]), f"Node {node} target {node.target}"
        if not hasattr(owner, name):
            raise RuntimeError(f"{start} references nonexistent attribute {name} of {before}")
        owner = getattr(owner, name)
        if node.op == "call_module" and not isinstance(owner, Module):
            raise RuntimeError(f"{start} {name} of {before} does not reference an nn.Module")


def table(graph: Any) -> str:
    """Return the text that `Graph.print_tabular` prints."""
    rows = [("opcode", "name", "target", "args", "kwargs")]
    rows += [(node.op, node.name, str(node.target), str(node.args), str(node.kwargs)) for node in graph.nodes]
    widths = [max(width, len(title) + 2) for width, title in zip(tables.widths_of(rows), rows[0], strict=True)]
    return "\n".join(tables.table(rows, widths=widths, rule="-"))


__all__ = ["lint", "table"]
