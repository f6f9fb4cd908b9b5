"""The graph of a program that was recorded with symbolic sizes, for any sizes at which the program takes the same path.

Shapes are inferred anew by the ops themselves; parameters that the program computed from sizes are computed again.
"""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ..interpret.symbol import Symbol
from .lowered import Lowered
from .nesting import leaves, mapped
from .node import Node
from .steps import Draw
from .symbolic_sizes import Point, Sizes, sources


class OtherPath(Exception):
    """The program takes another path for these sizes."""


class Replay:
    """A recorded program: `graph` has symbolic numbers, `asked` of `sizes` are the questions that chose the path.

    `also` is a nest of further numbers that are needed.
    """

    def __init__(self, graph: Lowered, sizes: Sizes, also: Any = ()) -> None:
        self.graph, self.asked = graph, list(sizes.asked.values())
        self.output = graph.output_node()
        self.steps = self._closure([node for node in graph.nodes if node.op in ("placeholder", "output")
                                    or isinstance(node.target, Draw)], False)
        self.inferred = self._closure([*self.steps, *sources([[args for _, args, _ in self.asked], also])], True)

    def _closure(self, ends: list[Any], numbers: bool) -> dict[Node, None]:
        """Return the nodes that these depend on, and if `numbers`, those whose sizes they need, in order."""
        found: set[Node] = set()
        waiting = list(ends)
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += node._input_nodes
                if numbers and "infer" in node.meta:
                    waiting += sources([node.args, node.kwargs])
        return {node: None for node in self.graph.nodes if node in found}

    def at(self, inputs: Sequence[Any]) -> tuple[Lowered, Point]:
        """Return the graph for inputs with these shapes and strides, and the values of numbers. Raises OtherPath."""
        point, given = Point({}), iter(inputs)
        arguments: dict[Node, Any] = {}
        try:
            for node in self.inferred:
                point.arrays[node] = self._array(node, given, point, arguments)
            if not all(function(*map(point, args)) == answer for function, args, answer in self.asked):
                raise OtherPath
        except OtherPath:
            raise
        except Exception as error:              # an op refuses the sizes
            raise OtherPath from error
        return self._graph(point, arguments), point

    def _array(self, node: Node, given: Any, point: Point, arguments: dict[Node, Any]) -> Any:
        """Return the array of a node: a symbol, or its values if no size affects them."""
        if node.op == "placeholder":
            like = next(given)
            return Symbol(like.shape, like.dtype, like.strides)
        if node.op == "get_attr":
            tensor = self.graph.tensors[node.target]
            return type(tensor._storage).host(tensor.array)
        if node.op == "output":
            return None
        if node.target is operator.getitem:
            return point.arrays[node.args[0]][node.args[1]]
        if (infer := node.meta.get("infer")) is None:
            return node.meta["results"]
        args, kwargs = arguments[node] = (mapped(point, tuple(node.args)), mapped(point, dict(node.kwargs)))
        return infer(*_on_arrays(point.arrays, args, kwargs))

    def _graph(self, point: Point, arguments: dict[Node, Any]) -> Lowered:
        made, now = Lowered(), dict[Node, Any]()
        made.tensors, made.spec = dict(self.graph.tensors), self.graph.spec
        made.written, made.relied = self.graph.written, self.graph.relied
        for node in self.steps:
            if node.meta.get("copies"):
                now[node] = now[node.args[-1]]
                continue
            args, kwargs = arguments.get(node) or (tuple(node.args), dict(node.kwargs))

            def here(leaf: Any) -> Any:
                return now[leaf] if isinstance(leaf, Node) else leaf
            new = now[node] = made._create(node.op, node.target, args, kwargs, node.name, None, here)
            meta = {key: value for key, value in node.meta.items() if key not in ("infer", "results", "copies")}
            if "infer" in node.meta or node.op == "placeholder" or node.target is operator.getitem:
                array = point.arrays[node]
                several = type(array) in (tuple, list)
                meta["shape"] = [tuple(x.shape) for x in array] if several else tuple(array.shape)
                meta.pop("value", None)
            new.meta.update(meta)
        return made


def _on_arrays(arrays: dict[Any, Any], args: Any, kwargs: Any) -> tuple[Any, Any]:
    def array(leaf: Any) -> Any:
        return arrays[leaf] if isinstance(leaf, Node) else leaf
    if any(isinstance(leaf, Node) for leaf in leaves(kwargs)):
        kwargs = mapped(array, kwargs)
    return mapped(array, args), kwargs
