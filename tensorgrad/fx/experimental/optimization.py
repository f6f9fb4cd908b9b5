"""Make models that only infer faster. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from ... import nn
from ...graph.graph import Graph
from ...graph.node import Node
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from .._symbolic_trace import symbolic_trace
from ..graph_module import GraphModule
from ..interpreter import Transformer

__all__ = ["extract_subgraph", "fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]
FUSED = {(nn.Conv1d, nn.BatchNorm1d): fuse_conv_bn_eval, (nn.Conv2d, nn.BatchNorm2d): fuse_conv_bn_eval,
         (nn.Conv3d, nn.BatchNorm3d): fuse_conv_bn_eval, (nn.Linear, nn.BatchNorm1d): fuse_linear_bn_eval}


def _parent_name(target: str) -> tuple[str, str]:
    """Return (path of the module that holds it, its own name)."""
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Return True if a node calls a layer of the second class on the result of one of the first."""
    if not node.args:
        return False
    return all(isinstance(each, Node) and each.op == "call_module" and each.target in modules
               and type(modules[each.target]) is kind
               for kind, each in zip(pattern, (node.args[0], node), strict=False))


def replace_node_module(node: Node, modules: dict[str, Any], new_module: Any) -> None:
    """Put another layer into the place of the one that a node calls."""
    parent, name = _parent_name(node.target)
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: Any, inplace: bool = False, no_trace: bool = False) -> Any:
    """Return a model, in evaluation mode, whose convolutions and linear layers include the batch norms after them.

    >>> import tensorgrad as torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.ReLU()).eval()
    >>> [type(layer).__name__ for layer in fuse(model).children()]
    ['Linear', 'ReLU']
    """
    model = model if inplace else copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for pattern, fused in FUSED.items():
        for node in graph.nodes:
            if not matches_module_pattern(pattern, node, modules):
                continue
            norm, before = modules[node.target], node.args[0]
            if len(before.users) == 1 and norm.track_running_stats:
                replace_node_module(before, modules, fused(modules[before.target], norm))
                node.replace_all_uses_with(before)
                graph.erase_node(node)
    return GraphModule(traced, graph)


def remove_dropout(model: Any) -> Any:
    """Return a model without its dropout layers."""
    class DropoutRemover(Transformer):
        def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if isinstance(self.submodules[target], nn.Dropout):
                return args[0]
            return super().call_module(target, args, kwargs)
    return DropoutRemover(symbolic_trace(model)).transform()


def extract_subgraph(orig_module: Any, nodes: list[Node], inputs: list[Node], outputs: list[Node]) -> GraphModule:
    """Return a module that computes some nodes' values from others'."""
    graph, copies = Graph(), dict[Node, Node]()
    for node in inputs:
        copies[node] = graph.placeholder(node.name)
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output([copies[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)
