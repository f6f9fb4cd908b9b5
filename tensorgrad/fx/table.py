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

from .._tensor.torch_function import ASKING, asked, overriding
from ..api import empty
from ..core.dispatch import apply
from ..dtype import FROM_NUMPY, dtype
from ..graph.graph import Graph
from ..graph.lowered import Lowered
from ..graph.nesting import aggregate
from ..graph.node import Node
from ..ops.base import OPS, Op
from .aten import added


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


def copied(lowered: Lowered, copies: dict[Node, Node], graph: Graph, only: Any = ("call_function",)) -> Any:
    """Copy the nodes of a lowered program to a graph, and return its result. Ops become PyTorch's operators, or, where
    there are none, functions of this module.

    `copies` maps the nodes that are not of the kinds `only` to those in the graph.
    """
    def argument(leaf: Any) -> Any:
        return copies[leaf] if isinstance(leaf, Node) else _of_tensors(leaf)
    for node in lowered.nodes:
        if node.op in only:
            target, args, params = node.target, aggregate(node.args, argument), aggregate(node.kwargs, argument)
            meta = {key: node.meta[key] for key in ("scope", "source") if key in node.meta}
            new: Any = NotImplemented
            if isinstance(target, type) and issubclass(target, Op):
                new, target = added(target, graph, args, params, meta), function_of(target.opname)
            if new is NotImplemented:
                new = graph.create_node(node.op, target, args, params, node.name)
                new.meta = meta
            new.meta["val"] = shaped(node)
            copies[node] = new
    return aggregate(lowered.output_node().args[0], argument)
