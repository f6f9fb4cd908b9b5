"""Run a graph node by node, and free each value after its last use."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from ..core.dispatch import apply
from ..ops.base import Op
from .graph import Graph
from .nesting import mapped
from .node import Node
from .uses import last_uses


class Runner:
    """Runs a graph in its present state: `runner(owner, values)` with the module that owns its layers (or a mapping
    from their names), and a list of inputs.

    A function that is an op of the table, as in lowered graphs, is applied to tensors. Missing inputs take their
    defaults; RuntimeError for one without a default, TypeError for too many values. An error of a step gets a note with
    its node. Runners are thread-safe.

    >>> import operator, tensorgrad as torch
    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> out = graph.output([graph.call_function(operator.mul, (x, 2)), graph.call_module("0", (x,))])
    >>> Runner(graph)(torch.nn.Sequential(torch.nn.ReLU()), [torch.tensor([-1.0, 3.0])])
    [tensor([-2.,  6.]), tensor([0., 3.])]
    """

    __slots__ = ("inputs", "steps")

    def __init__(self, graph: Graph) -> None:
        self.inputs = [node for node in graph.nodes if node.op == "placeholder"]
        self.steps = [(node, called(node.target), all(map(_flat, (*node.args, *node.kwargs.values()))), ended)
                      for node, ended in last_uses(graph).items() if node.op != "placeholder"]

    def __call__(self, owner: Any, values: Iterable[Any]) -> Any:
        env = self.given(list(values))
        node: Any = None

        def value(leaf: Any) -> Any:
            return env[leaf] if isinstance(leaf, Node) else leaf
        try:
            for node, target, flat, ended in self.steps:
                op = node.op
                if flat:
                    args = [env[arg] if isinstance(arg, Node) else arg for arg in node._args]
                    kwargs = {key: env[arg] if isinstance(arg, Node) else arg for key, arg in node._kwargs.items()}
                else:
                    args = [mapped(value, arg) for arg in node._args]
                    kwargs = {key: mapped(value, arg) for key, arg in node._kwargs.items()}
                if op == "call_module":
                    env[node] = owned(owner, target)(*args, **kwargs)
                elif op == "call_function":
                    env[node] = target(*args, **kwargs)
                elif op == "call_method":
                    env[node] = getattr(args[0], target)(*args[1:], **kwargs)
                elif op == "get_attr":
                    env[node] = owned(owner, target)
                else:
                    return args[0]
                for other in ended:
                    del env[other]
        except Exception as error:
            error.add_note(f"While executing {node.format_node()}")
            raise
        return None

    def given(self, values: list[Any]) -> dict[Any, Any]:
        """Return {input node: value}."""
        if len(values) > len(self.inputs):
            raise TypeError(f"the graph has {len(self.inputs)} inputs, and was called with {len(values)} values")
        for node in self.inputs[len(values):]:
            if not node.args:
                raise RuntimeError(f"Expected positional argument for parameter {node.target}, but one was not passed "
                                   f"in!")
            values.append(node.args[0])
        return dict(zip(self.inputs, values, strict=True))


def called(target: Any) -> Any:
    """Return the callable of a step's target."""
    return partial(apply, target) if isinstance(target, type) and issubclass(target, Op) else target


def owned(owner: Any, name: str) -> Any:
    """Return the attribute of a module, or the item of a mapping, under a dotted name."""
    if isinstance(owner, Mapping):
        return owner[name]
    for part in name.split("."):
        owner = getattr(owner, part)
    return owner


def run(graph: Graph, *values: Any, owner: Any = None) -> Any:
    """Run a graph on these inputs, and return its result. The owner of its layers is by default its `owning_module`.

    >>> graph = Graph()
    >>> out = graph.output(graph.call_method("upper", (graph.placeholder("x"),)))
    >>> run(graph, "text")
    'TEXT'
    """
    return Runner(graph)(graph.owning_module if owner is None else owner, values)


def _flat(argument: Any) -> bool:
    """Return True if an argument cannot contain a node."""
    return not isinstance(argument, (list, tuple, dict, slice))


__all__ = ["Runner", "last_uses", "owned", "run"]
