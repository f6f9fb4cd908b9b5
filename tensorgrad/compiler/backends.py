"""Backends of `torch.compile` that a program brings: functions of a GraphModule and example inputs."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..fx import table
from ..fx.graph_module import GraphModule
from ..graph.graph import Graph
from ..graph.lowered import Lowered
from ..graph.node import Node


class OnTensors:
    """Runs what a backend returned: a function of the inputs that returns the outputs, all of them tensors."""

    def __init__(self, graph: Any, function: Callable[..., Any]) -> None:
        self.graph, self.function = graph, function

    def on_tensors(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Return the outputs for these inputs."""
        found = self.function(*inputs)
        return found if isinstance(found, (tuple, list)) else (found,)


def builder(backend: Any) -> Callable[[Lowered, Sequence[Any]], Any]:
    """Return the function of (graph, example inputs) that makes a runner with a backend."""
    from .._dynamo.exc import BackendCompilerFailed

    def build(graph: Lowered, inputs: Sequence[Any]) -> OnTensors:
        module = graph_module(graph)
        try:
            function = backend(module, list(inputs))
        except Exception as error:
            raise BackendCompilerFailed(f"backend={getattr(backend, '__name__', backend)!r} raised:\n"
                                        f"{type(error).__name__}: {error}") from error
        if not callable(function):
            raise BackendCompilerFailed(f"backend={getattr(backend, '__name__', backend)!r} returned no function")
        return OnTensors(module.graph, function)
    return build


def graph_module(lowered: Lowered) -> GraphModule:
    """Return a lowered graph as a module of PyTorch's operators, whose attributes are the graph's tensors."""
    graph, copies = Graph(), dict[Node, Node]()
    for node in lowered.find_nodes(op="placeholder"):
        copies[node] = graph.placeholder(node.target)
        copies[node].meta["val"] = table.shaped(node)
    root = {}
    for node in lowered.find_nodes(op="get_attr"):
        copies[node] = graph.get_attr(node.target)
        copies[node].meta["val"] = table.shaped(node)
        root[node.target] = lowered.tensors[node.target]
    graph.output(table.copied(lowered, copies, graph, {}))
    return GraphModule(root, graph)
