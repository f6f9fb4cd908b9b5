"""Divide a module into several, by a tag of each node. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from ...graph.graph import Graph
from ...graph.node import Node, map_arg
from ...nn import ModuleList
from ..graph_module import GraphModule
from ..proxy import Proxy
from .utils.common import HolderModule, lift_subgraph_as_module

__all__ = ["Component", "getattr_recursive", "setattr_recursive", "split_by_tags"]


def getattr_recursive(obj: Any, name: str) -> Any:
    """Return the attribute at a dotted path; None if there is none."""
    for step in name.split("."):
        obj = obj._modules.get(step) if isinstance(obj, ModuleList) else getattr(obj, step, None)
        if obj is None:
            return None
    return obj


def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Set the attribute at a dotted path."""
    *path, name = attr.split(".")
    for step in path:
        obj = getattr(obj, step)
    setattr(obj, name, value)


@dataclass
class Component:
    """A part: its graph, and what it gets from and gives to the whole."""

    graph: Graph
    order: int
    name: str
    input_placeholders: list[Node] = field(default_factory=list)
    orig_inputs: list[Node] = field(default_factory=list)
    orig_outputs: list[Node] = field(default_factory=list)
    getattr_maps: dict[Node, Node] = field(default_factory=dict)
    constructor_args: list[str] = field(default_factory=list)
    gm: Any = None


class Division:
    """The parts of a module by tags, and the graph that calls them."""

    def __init__(self, module: GraphModule, tags: list[str]) -> None:
        self.module, self.main = module, Graph()
        self.parts = {tag: Component(Graph(), i, f"{tag}") for i, tag in enumerate(tags)}
        self.part_of: dict[Node, Component] = {}
        self.copies: dict[Node, Node] = {}      # in the graphs of the parts
        self.values: dict[Node, Node] = {}      # in the main graph
        self.given: dict[Node, None] = {}       # values that pass from part to part, or to the result

    def add(self, node: Node) -> None:
        """Copy a node into its part. AssertionError without a tag, or if an earlier part would use a later one."""
        if not hasattr(node, "tag"):
            raise AssertionError(f"Node does not have tag: {node.format_node()}")
        part = self.part_of[node] = self.parts[node.tag]
        latest = max((self.part_of[used].order for used in node._input_nodes
                      if used.op not in ("placeholder", "get_attr")), default=0)
        if part.order < latest:
            raise AssertionError(f"Component {part.name} order must be >= max of its upstream components, order="
                                 f"{part.order} and max={latest}")
        new = part.graph.node_copy(node, lambda used: self.within(part, used))
        new.tag = node.tag                      # type: ignore[attr-defined]
        self.copies[node] = new

    def within(self, part: Component, node: Node) -> Node:
        """Return a part's node for a value."""
        if node.op == "get_attr":
            if node not in part.getattr_maps:
                part.getattr_maps[node] = part.graph.get_attr(node.target, type_expr=node.type)
                part.getattr_maps[node].meta = copy.copy(node.meta)
            return part.getattr_maps[node]
        if node.op != "placeholder" and self.part_of[node] is part:
            return self.copies[node]
        if node not in part.orig_inputs:
            part.orig_inputs.append(node)
            part.input_placeholders.append(part.graph.placeholder(node.name, type_expr=node.type))
            part.input_placeholders[-1].meta = copy.copy(node.meta)
            self.given[node] = None
        return part.input_placeholders[part.orig_inputs.index(node)]

    def call(self, part: Component, return_tuple: bool) -> dict[str, str]:
        """Finish a part's graph, call its module, and return the names of its layers."""
        results = tuple(self.copies[node] for node in part.orig_outputs)
        single = len(results) == 1 and not return_tuple
        part.graph.output(results[0] if single else results)
        part.gm, names = lift_subgraph_as_module(self.module, part.graph, part.name)
        result = self.main.call_module(part.name, tuple(self.values[node] for node in part.orig_inputs))
        for i, node in enumerate(part.orig_outputs):
            self.values[node] = result if single else Proxy(result)[i].node     # type: ignore[index]
        return names


def split_by_tags(gm: GraphModule, tags: list[str], return_fqn_mapping: bool = False, return_tuple: bool = False,
                  GraphModuleCls: Any = GraphModule) -> Any:
    """Return a module that calls one for each tag, which has the nodes with this attribute `tag`; with
    `return_fqn_mapping` also {name of a layer in `gm`: its name in a part}.

    >>> import tensorgrad as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x + 1) * 2)
    >>> for node in traced.graph.nodes:
    ...     node.tag = "last" if node.name == "mul" else "first"
    >>> print(split_by_tags(traced, ["first", "last"]).code.strip())
    def forward(self, x):
        first = self.first(x);  x = None
        last = self.last(first);  first = None
        return last
    """
    division, output = Division(gm, tags), None
    for node in gm.graph.nodes:
        if node.op == "output":
            if output is not None:
                raise RuntimeError("Multiple output nodes in graph!")
            output = node
        elif node.op == "placeholder":
            division.values[node] = division.main.placeholder(node.name, type_expr=node.type)
            division.values[node].meta = copy.copy(node.meta)
        elif node.op != "get_attr":
            division.add(node)
    if output is None:
        raise RuntimeError("Graph had no output node!")
    kept = [node for node in output._input_nodes if node.op == "get_attr"]
    for node in output._input_nodes:
        if node.op == "get_attr":
            division.values[node] = division.main.get_attr(node.name, type_expr=node.type)
        else:
            division.given[node] = None
    for node in division.given:
        if node.op != "placeholder":
            division.part_of[node].orig_outputs.append(node)
    names: dict[str, str] = {}
    for part in division.parts.values():
        names.update(division.call(part, return_tuple))
    division.main.output(map_arg(output.args[0], division.values.__getitem__))
    root = HolderModule({part.name: part.gm for part in division.parts.values()})
    for node in kept:
        setattr(root, node.name, getattr_recursive(gm, node.target))
    division.main._codegen = gm.graph._codegen
    result = GraphModuleCls(root, division.main)
    return (result, names) if return_fqn_mapping else result
