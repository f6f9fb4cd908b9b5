"""Divide a module into several, by a number for each node. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ...graph.graph import Graph
from ...graph.node import Node, map_arg
from ...nn import Module
from ..graph_module import GraphModule, _get_attr
from ..proxy import Proxy

__all__ = ["Partition", "split_module"]


class Partition:
    """A part: its graph, and what it gets from, and gives to, others, by names of nodes."""

    def __init__(self, name: str) -> None:
        self.name, self.submod_name = name, f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs},\n "
                f"partitions depended on: {self.dependencies},\n partition dependents: {self.dependents}")


class Splitter:
    """Divides a module; see `split_module`."""

    def __init__(self, module: GraphModule, split_callback: Callable[[Node], Any], affix: str | None) -> None:
        self.module, self.partitions = module, dict[str, Partition]()
        self.nodes = {node.name: node for node in module.graph.nodes}
        self.part_of: dict[Node, Partition] = {}
        for node in module.graph.nodes:
            if node.op not in ("placeholder", "get_attr", "output"):
                name = "_".join(([] if affix is None else [affix]) + [str(split_callback(node))])
                part = self.part_of[node] = self.partitions.setdefault(name, Partition(name))
                part.node_names.append(node.name)
                node._fx_partition = name       # type: ignore[attr-defined]
        for node in module.graph.nodes:
            for used in node._input_nodes if node.op != "placeholder" else ():
                self.connect(used, node)

    def connect(self, used: Node, user: Node) -> None:
        """Note that a part uses a value of another."""
        source, goal = self.part_of.get(used), self.part_of.get(user)
        if source is goal:
            return
        if source is not None:
            source.outputs.setdefault(used.name)
        if goal is not None:
            goal.inputs.setdefault(used.name)
            if source is not None:
                source.dependents.setdefault(goal.name)
                goal.dependencies.setdefault(source.name)

    def ordered(self) -> list[Partition]:
        """Return the parts in an order in which each comes after those it depends on. RuntimeError if there is none."""
        ready = [part for part in self.partitions.values() if not part.dependencies]
        order = []
        while ready:
            part = ready.pop()
            order.append(part)
            for name in part.dependents:
                dependent = self.partitions[name]
                dependent.dependencies.pop(part.name)
                if not dependent.dependencies:
                    ready.append(dependent)
        if len(order) != len(self.partitions):
            raise RuntimeError("cycle exists between partitions!")
        return order

    def fill(self, parts: list[Partition], qualname_map: dict[str, str] | None, keep_input_names: bool,
             keep_node_names: bool) -> None:
        """Copy the nodes into the graphs of their parts."""
        for part in parts:
            self._inputs(part, keep_input_names)
        for node, part in self.part_of.items():
            target = node.target
            if node.op == "call_module":
                target = node.target.replace(".", "_")
                part.targets[target] = _get_attr(self.module, node.target)
                if qualname_map is not None:
                    qualname_map[f"{part.submod_name}.{target}"] = node.target
            new = part.graph.create_node(node.op, target, map_arg(node.args, part.environment.__getitem__),
                                         map_arg(node.kwargs, part.environment.__getitem__), type_expr=node.type,
                                         name=node.name if keep_node_names else None)
            new.meta = node.meta.copy()
            part.environment[node] = new

    def _inputs(self, part: Partition, keep_names: bool) -> None:
        """Give a part's graph its inputs, then the modules that it names."""
        values: list[Node] = []
        modules: list[Node] = []
        for name in part.inputs:
            node = self.nodes[name]
            is_module = node.op == "get_attr" and isinstance(_get_attr(self.module, node.target), Module)
            (modules if is_module else values).append(node)
        part.inputs = {node.name: None for node in values}
        for i, node in enumerate(values):
            new = part.graph.placeholder(node.name if keep_names else f"arg_{i}", type_expr=node.type)
            part.environment[node] = new
        for node in modules:
            part.environment[node] = part.graph.get_attr(node.target)
            part.targets[node.target] = _get_attr(self.module, node.target)
        for node in (*values, *modules):
            part.environment[node].meta = node.meta.copy()


class Base:
    """The module that calls the parts: its graph, what it holds, and the nodes of values by name."""

    def __init__(self, module: GraphModule, keep_node_names: bool) -> None:
        self.module, self.keep_node_names = module, keep_node_names
        self.graph, self.values, self.held = Graph(), dict[str, Node](), dict[str, Any]()

    def take(self, node: Node) -> None:
        """Copy an input, or a node that reads an attribute."""
        if node.name in self.values:
            return
        if node.op == "placeholder":
            new = self.graph.placeholder(node.name if self.keep_node_names else node.target, node.type,
                                         node.args[0] if node.args else inspect.Signature.empty)
        elif node.op == "get_attr":
            new = self.graph.get_attr(node.target)
            self.held[node.target] = _get_attr(self.module, node.target)
        else:
            return
        new.meta = node.meta.copy()
        self.values[node.name] = new

    def call(self, part: Partition, nodes: dict[str, Node], tuple_return: bool) -> None:
        """Finish a part's graph, and call its module."""
        results = tuple(part.environment[nodes[name]] for name in part.outputs)
        single = len(results) == 1 and not tuple_return
        part.graph.output(results[0] if single else results)
        self.held[part.submod_name] = GraphModule(part.targets, part.graph)
        result = self.graph.call_module(part.submod_name, tuple(self.values[name] for name in part.inputs))
        for i, name in enumerate(part.outputs):
            self.values[name] = result if single else Proxy(result)[i].node     # type: ignore[index]


def split_module(m: GraphModule, root_m: Any, split_callback: Callable[[Node], Any],
                 qualname_map: dict[str, str] | None = None, keep_original_order: bool | None = False,
                 keep_original_node_name: bool = False, keep_original_input_name: bool = True, *,
                 partition_affix: str | None = None, tuple_return: bool = False) -> GraphModule:
    """Return a module that calls `submod_0`, `submod_1`, …: each has the nodes for which `split_callback(node)` is
    its number.

    qualname_map: a dictionary that gets {name of a layer in its part: its name in `m`}
    keep_original_order: call the parts in the order of their first nodes, not in one that their dependencies give
    keep_original_node_name, keep_original_input_name: names of nodes, and of the inputs of parts, are those of `m`
    tuple_return: parts return tuples also if they have one result

    RuntimeError if parts depend on each other.

    >>> import tensorgrad as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x + 1) * 2)
    >>> split = split_module(traced, None, lambda node: int(node.name == "mul"))
    >>> print(split.code.strip())
    def forward(self, x):
        submod_0 = self.submod_0(x);  x = None
        submod_1 = self.submod_1(submod_0);  submod_0 = None
        return submod_1
    """
    splitter = Splitter(m, split_callback, partition_affix)
    given = list(splitter.partitions.values())
    ordered = splitter.ordered()
    splitter.fill(ordered, qualname_map, keep_original_input_name, keep_original_node_name)
    base = Base(m, keep_original_node_name)
    nodes = splitter.nodes
    if not keep_original_order or not given:
        for node in m.graph.nodes:
            base.take(node)
    for part in given if keep_original_order else ordered:
        if keep_original_order:
            for node in (*m.graph.find_nodes(op="placeholder"), *(nodes[name] for name in part.inputs)):
                base.take(node)
        base.call(part, nodes, tuple_return)
    for node in m.graph.find_nodes(op="output"):
        for used in node._input_nodes:
            base.take(used)
        base.graph.output(map_arg(node.args[0], lambda used: base.values[used.name]))
    result = GraphModule(base.held, base.graph)
    result.meta["partition_names"] = {part.submod_name for part in given}
    return result
