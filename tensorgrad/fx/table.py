"""The ops of the table as functions that nodes call, and lowered programs as graphs of them.

>>> import tensorgrad as torch
>>> from tensorgrad.fx import table
>>> table.softmax(torch.zeros(2), axis=0)
tensor([0.5000, 0.5000])
"""
from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from .._ops import HigherOrderOperator
from .._tensor.torch_function import ASKING, asked, overriding
from ..api import empty
from ..core.dispatch import apply
from ..dtype import FROM_NUMPY, dtype
from ..graph.graph import Graph
from ..graph.nesting import aggregate
from ..graph.node import Node
from ..graph.steps import Target
from ..ops.base import OPS, Op
from .aten import added

BRANCHES = {"cond": ("true_graph", "false_graph"), "while_loop": ("while_loop_cond_graph", "while_loop_body_graph")}


class OpFunction:
    """An op of the table as a function of tensors."""

    def __init__(self, op: Any) -> None:
        self.op, self.__name__, self.__module__ = op, op.opname, __name__

    def __call__(self, *args: Any, **params: Any) -> Any:
        if ASKING and (found := overriding(args)):
            return asked(self, found, args, params)
        return apply(self.op, *args, **{name: _of_arrays(value) for name, value in params.items()})

    def __repr__(self) -> str:
        return f"<op {self.__name__}>"

    def __reduce__(self) -> Any:
        return function_of, (self.__name__,)


@cache
def function_of(name: str) -> OpFunction:
    """Return the function of an op, by its name in the table."""
    return OpFunction(OPS[name])


def __getattr__(name: str) -> Any:
    if name not in OPS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return function_of(name)


def _of_arrays(value: Any) -> Any:
    """Return a parameter with NumPy's dtypes, which ops take."""
    return aggregate(value, lambda leaf: leaf.numpy if isinstance(leaf, dtype) else leaf)


def _of_tensors(leaf: Any) -> Any:
    """Return a parameter's leaf as programs write it: with this package's dtypes, and Python's numbers."""
    if isinstance(leaf, np.dtype):
        return FROM_NUMPY[leaf]
    return leaf.item() if isinstance(leaf, np.generic) else leaf


def shaped(node: Node) -> Any:
    """Return a tensor without values of a lowered node's shape and dtype; a list for several results."""
    shape, kind = node.meta["shape"], node.meta["dtype"]
    if isinstance(kind, list):
        return [empty(each, dtype=FROM_NUMPY[name], device="meta") for each, name in zip(shape, kind, strict=True)]
    return empty(shape, dtype=FROM_NUMPY[kind], device="meta")


def copied(lowered: Graph, copies: dict[Node, Node], graph: Graph, modules: dict[str, Any]) -> Any:
    """Copy the nodes of a lowered program to a graph, and return its result.

    Ops become PyTorch's operators, or functions of this module if there are none.

    `copies` maps the nodes that call no functions to those in the graph. `modules` gets the branches and bodies of
    control flow, as modules, by the names that the graph calls them.
    """
    def argument(leaf: Any) -> Any:
        return copies[leaf] if isinstance(leaf, Node) else _of_tensors(leaf)
    for node in lowered.nodes:
        if node.op == "call_function":
            target, args, params = node.target, aggregate(node.args, argument), aggregate(node.kwargs, argument)
            meta = {key: node.meta[key] for key in ("scope", "source") if key in node.meta}
            new: Any = NotImplemented
            if isinstance(target, type) and issubclass(target, Op):
                new, target = added(target, graph, args, params, meta), function_of(target.opname)
            elif isinstance(target, Target):
                new = added(target, graph, args, params, meta)
            elif isinstance(target, HigherOrderOperator):
                named = iter(BRANCHES[target.name()])
                args = tuple(_branch(arg, next(named), graph, modules) if isinstance(arg, Graph) else arg
                             for arg in args)
            if new is NotImplemented:
                new = graph.create_node(node.op, target, args, params, getattr(target, "_opname", node.name))
                new.meta = meta
            new.meta["val"] = node.meta["scalar"] if "scalar" in node.meta else shaped(node)
            copies[node] = new
    return aggregate(lowered.output_node().args[0], argument)


def _branch(lowered: Graph, name: str, graph: Graph, modules: dict[str, Any]) -> Node:
    """Add a branch or body to the modules, and return the node of the graph that names it."""
    from .graph_module import GraphModule
    made, copies, within = Graph(), dict[Node, Node](), dict[str, Any]()
    for node in lowered.find_nodes(op="placeholder"):
        copies[node] = made.placeholder(node.target)
        copies[node].meta["val"] = shaped(node)
    made.output(copied(lowered, copies, made, within))
    path = f"{name}_{sum(each.startswith(name) for each in modules)}"
    modules[path] = GraphModule(within, made)
    node = graph.get_attr(path)
    node.meta["graph"] = made
    return node
