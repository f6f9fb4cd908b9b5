"""Modules made of parts of graphs, and the comparison of graphs."""
from __future__ import annotations

from typing import Any

from ....graph.graph import Graph
from ....nn import Module
from ...graph_module import GraphModule
from .matcher_utils import SubgraphMatcher

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(Module):
    """A module that holds others, and computes nothing."""

    def __init__(self, d: dict[str, Any]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(gm: GraphModule, subgraph: Graph, comp_name: str = "",
                            class_name: str = "GraphModule") -> tuple[GraphModule, dict[str, str]]:
    """Return (the module of a graph that names layers and tensors of `gm`, {their names: their names in a component
    `comp_name`})."""
    root, names = HolderModule({}), {}
    for node in subgraph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        holder: Any = root
        source: Any = gm
        *path, last = node.target.split(".")
        for step in path:
            if not hasattr(holder, step):
                holder.add_module(step, HolderModule({}))
            holder, source = getattr(holder, step), getattr(source, step)
        setattr(holder, last, getattr(source, last))
        names[node.target] = f"{comp_name}.{node.target}"
    return GraphModule(root, subgraph, class_name), names


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Return True if two graphs compute the same in the same way.

    >>> import tensorgrad as torch
    >>> a, b, c = (torch.fx.symbolic_trace(f).graph for f in (lambda x: x + 1, lambda y: y + 1, lambda x: x + 2))
    >>> compare_graphs(a, b), compare_graphs(a, c)
    (True, False)
    """
    return bool(SubgraphMatcher(left, match_output=True, match_placeholder=True).match(right))
