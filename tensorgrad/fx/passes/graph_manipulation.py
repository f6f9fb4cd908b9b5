"""Change targets of nodes, and count bytes. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

from typing import Any, NamedTuple

from ...api import tensor
from ...graph.graph import Graph
from ...graph.node import Node, map_arg
from .shape_prop import ShapeProp, TensorMetadata

__all__ = ["get_size_of_all_nodes", "get_size_of_node", "get_tensor_meta", "replace_target_nodes_with", "size_bytes"]


def replace_target_nodes_with(fx_module: Any, old_op: str, old_target: Any, new_op: str, new_target: Any) -> None:
    """Give all nodes of a kind and target another one."""
    new, copies = Graph(), dict[Node, Node]()
    for node in fx_module.graph.nodes:
        if node.op == old_op and node.target == old_target:
            copies[node] = new.create_node(new_op, new_target, map_arg(node.args, copies.__getitem__),
                                           map_arg(node.kwargs, copies.__getitem__), node.name)
        else:
            copies[node] = new.node_copy(node, copies.__getitem__)
    fx_module.graph = new


class size_bytes(NamedTuple):           # noqa: N801  PyTorch's name
    """The bytes of a node's value, and those with the parameters of its layer."""

    output_size: int
    total_size: int


def get_size_of_all_nodes(fx_module: Any, args: list[Any] | None = None) -> None:
    """Give each node its bytes as `size_bytes`; with `args`, after a run of `ShapeProp` on these."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op != "output":
            node.size_bytes = get_size_of_node(fx_module, node)


def get_tensor_meta(node: Node) -> TensorMetadata:
    """Return the facts about a node's value. RuntimeError if there are none."""
    found: TensorMetadata | None = node.meta.get("tensor_meta")
    if not found:
        raise RuntimeError(f"Node {node} has no tensor metadata associated with it! Check that shape propagation has "
                           f"run.")
    return found


def get_size_of_node(fx_module: Any, node: Node) -> size_bytes:
    """Return the bytes of a node's value, and those with the parameters of its layer."""
    told = get_tensor_meta(node)
    own = told.shape.numel()
    parameters = (sum(each.numel() for each in fx_module.get_submodule(node.target).parameters())
                  if node.op == "call_module" else 0)
    each = tensor([], dtype=told.dtype).element_size()
    return size_bytes(each * own, each * (own + parameters))
