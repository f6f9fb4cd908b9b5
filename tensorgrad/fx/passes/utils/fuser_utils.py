"""Replace sets of nodes by calls of modules that compute them."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ....graph.graph import Graph
from ....graph.node import Node
from ...graph_module import GraphModule

__all__ = ["erase_nodes", "fuse_as_graphmodule", "fuse_by_partitions", "insert_subgm", "topo_sort",
           "validate_partition"]


def topo_sort(nodes: Iterable[Node]) -> list[Node]:
    """Return nodes in an order in which each comes after those that it uses."""
    nodes = list(nodes)
    missing = {node: sum(other in set(nodes) for other in node.all_input_nodes) for node in nodes}
    ready = [node for node in nodes if not missing[node]]
    for node in ready:                          # grows meanwhile
        for user in node.users:
            if user in missing:
                missing[user] -= 1
                if not missing[user]:
                    ready.append(user)
    if len(ready) != len(nodes):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return ready


def validate_partition(partition: Iterable[Node]) -> bool:
    """Return True if no path leads from these nodes through others back to them, so that they can be one step.

    >>> import tensorgrad as torch
    >>> graph = torch.fx.symbolic_trace(lambda x: x + torch.relu(x.exp())).graph
    >>> _, exp, relu, add, _ = graph.nodes
    >>> validate_partition([exp, relu]), validate_partition([exp, add])
    (True, False)
    """
    inside = set(partition)
    waiting = [user for node in inside for user in node.users if user not in inside]
    seen: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node in inside:
            return False
        if node not in seen:
            seen.add(node)
            waiting += node.users
    return True


def fuse_as_graphmodule(gm: GraphModule, nodes: list[Node], module_name: str, partition_lookup_table: Any = None, *,
                        always_return_tuple: bool = False) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """Return (a module that computes these nodes, the nodes that it gets, those whose values it returns)."""
    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(f"{node} doesn't belong to passed in graph module {gm._get_name()}")
        if node._erased:
            raise AssertionError(f"{node} has been removed from owning graph")
    inside = dict.fromkeys(nodes)
    if not validate_partition(inside):
        raise AssertionError("Invalid partition, found dependency cycles")
    graph, copies = Graph(), dict[Node, Node]()
    inputs: dict[Node, None] = {}

    def copied(node: Node) -> Node:
        if node not in inside and node.op != "get_attr" and node not in copies:
            copies[node] = graph.placeholder(node.name, type_expr=node.type)
            copies[node].meta = node.meta.copy()
            inputs[node] = None
        elif node.op == "get_attr" and node not in copies:
            copies[node] = graph.node_copy(node)
        return copies[node]
    for node in nodes:
        copies[node] = graph.node_copy(node, copied)
    outputs = tuple(node for node in nodes if any(user not in inside for user in node.users))
    results = tuple(copies[node] for node in outputs)
    graph.output(results if always_return_tuple or len(results) != 1 else results[0])
    graph.lint()
    return GraphModule(gm, graph, module_name), tuple(inputs), outputs


def insert_subgm(gm: GraphModule, sub_gm: GraphModule, orig_inputs: tuple[Node, ...],
                 orig_outputs: tuple[Node, ...]) -> GraphModule:
    """Let a call of a module compute the values of these nodes."""
    name = sub_gm._get_name()
    gm.add_submodule(name, sub_gm)
    last = max(orig_outputs)
    with gm.graph.inserting_after(last):
        called = gm.graph.call_module(name, orig_inputs)
    if len(orig_outputs) == 1 and not isinstance(sub_gm.graph.output_node().args[0], tuple):
        orig_outputs[0].replace_all_uses_with(called, propagate_meta=True)
        return gm
    from ...proxy import Proxy
    with gm.graph.inserting_after(called):
        for i, node in enumerate(orig_outputs):
            part = Proxy(called)[i].node        # type: ignore[index]
            node.replace_all_uses_with(part, propagate_meta=True)
    called.meta["val"] = tuple(node.meta.get("val") for node in orig_outputs)
    return gm


def erase_nodes(gm: GraphModule, nodes: list[Node]) -> None:
    """Erase nodes, the last first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(gm: GraphModule, partitions: list[dict[Node, Any]], prefix: str = "fused_",
                       always_return_tuple: bool = False) -> GraphModule:
    """Replace each of several sets of nodes by a call of a module that computes them."""
    for i, partition in enumerate(partitions):
        nodes = topo_sort(partition)
        fused, inputs, outputs = fuse_as_graphmodule(gm, nodes, f"{prefix}{i}", partition,
                                                     always_return_tuple=always_return_tuple)
        insert_subgm(gm, fused, inputs, outputs)
        erase_nodes(gm, nodes)
    _sort(gm.graph)
    gm.recompile()
    return gm


def _sort(graph: Graph) -> None:
    """Move nodes so that each comes after those that it uses, and otherwise keep the order."""
    placed: set[Node] = set()
    waiting = list(graph.nodes)
    order = []
    while waiting:
        rest = []
        for node in waiting:
            if all(other in placed for other in node.all_input_nodes):
                placed.add(node)
                order.append(node)
            else:
                rest.append(node)
        waiting = rest
    for node in order:
        graph._root.prepend(node)


