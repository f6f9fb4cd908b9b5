"""Tools that passes share. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

import heapq
import operator
from collections import deque
from collections.abc import Mapping
from typing import Any

from ...api import Tensor
from ...graph.graph import Graph
from ...graph.names import home, source_name
from ...graph.node import Node

__all__ = ["get_acc_ops_name", "get_node_target", "is_node_output_tensor", "legalize_graph",
           "stable_topological_sort"]
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}
NodeList, NodeSet, Names = list[Node], set[Node], list[str]
FIRST = {getattr(operator, name) for name in
         "add mul sub floordiv truediv mod le lt ge gt eq ne".split()}       # of sizes: as early as possible


def get_acc_ops_name(k: Any) -> str:
    """Return the dotted name of a class or function; text as it is."""
    if isinstance(k, str):
        return k
    return f"acc_ops.{k.__name__}" if "acc_ops" in (k.__module__ or "") else f"{home(k)}.{k.__name__}"


def get_node_target(submodules: Mapping[str, Any], node: Node) -> str:
    """Return the dotted name of what a node calls: a layer's class, a function, or a method.

    >>> import tensorgrad as torch
    >>> module = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
    >>> [get_node_target(dict(module.named_modules()), node) for node in module.graph.find_nodes(op="call_module")]
    ['torch.nn.modules.activation.ReLU']
    """
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {', '.join(CALLABLE_NODE_OPS)}, but found {node.op}")
    if node.op == "call_module":
        layer = submodules[node.target]
        return get_acc_ops_name(getattr(layer, "_base_class_origin", type(layer)))
    if node.op == "call_method":
        return str(node.target)
    return get_acc_ops_name(node.target) if "acc_ops" in (node.target.__module__ or "") else source_name(node.target)


def is_node_output_tensor(node: Node) -> bool:
    """Return True if a node's value is known to be a tensor, from `ShapeProp`."""
    kind = node.meta.get("type")
    return kind is not None and issubclass(kind, Tensor)


def legalize_graph(gm: Any) -> Any:
    """Put a module's graph into an order in which each node comes after those that it uses: breadth first, arithmetic
    of numbers as early as possible. RuntimeError if there is none."""
    missing = {node: len(node._input_nodes) for node in gm.graph.nodes}
    ready = deque(node for node in gm.graph.nodes if not missing[node])
    new, copies = Graph(), dict[Node, Node]()
    while ready:
        node = ready.popleft()
        copies[node] = new.node_copy(node, copies.__getitem__)
        for user in node.users:
            missing[user] -= 1
            if not missing[user]:
                if user.op == "call_function" and user.target in FIRST:
                    ready.appendleft(user)
                else:
                    ready.append(user)
    if len(new.nodes) < len(gm.graph.nodes):
        raise RuntimeError(f"Input graph has cycles, unable to add {[node for node in missing if missing[node]]}")
    new._codegen = gm.graph._codegen
    gm.graph = new
    return gm


def stable_topological_sort(gm: Any) -> Any:
    """Put a module's graph into an order in which each node comes after those that it uses, and otherwise keep it.
    AssertionError if there is none."""
    number = {node: i for i, node in enumerate(gm.graph.nodes)}
    missing = {node: len(node._input_nodes) for node in gm.graph.nodes}
    ready = [(number[node], node) for node in gm.graph.nodes if not missing[node]]
    new, copies = Graph(), dict[Node, Node]()
    while ready:
        _, node = heapq.heappop(ready)
        copies[node] = new.node_copy(node, copies.__getitem__)
        for user in node.users:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, (number[user], user))
    if len(new.nodes) != len(gm.graph.nodes):
        raise AssertionError(f"Input graph has cycles, unable to add {[node for node in missing if missing[node]]}")
    new._codegen = gm.graph._codegen
    gm.graph = new
    return gm
