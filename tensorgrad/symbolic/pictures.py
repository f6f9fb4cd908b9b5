"""Draw a graph of symbols with `viz`: SVG, DOT, HTML and PNG. Layers inside of a layer are grouped in a box."""
from __future__ import annotations

import operator
from collections.abc import Iterable
from types import FunctionType
from typing import Any

from .. import api as tg
from ..graph.running import Runner
from ..nn import Sequential
from ..viz.drawing import Graph, titled
from ..viz.graph import PICTURES
from ..viz.model import Model, Node
from ..viz.scene import Shows
from .calls import Call, Unpack
from .config import SymbolicAPI2ContextManager
from .data import SymbolicData, SymbolicTensor
from .graph_algorithms import default_node_text, figure_out_nodes_between, sort_graph_and_check_DAG
from .model import GraphModule
from .nesting import leaves, mapped
from .shape_inference import merge


def picture(*things: Any, shapes: bool = True, fold: bool = True, title: str = "") -> Graph:
    """Return the picture of a SymbolicModel, of a layers.Functional, or of the ancestors of nodes; its boxes are
    layers.

    `viz.graph` gives these to this function; `draw_graph` draws them as a Matplotlib Figure whose boxes are values.
    Notebooks show the picture; `save` writes .svg, .html, .dot, .png or .pdf. With `fold`, layers that are made of
    layers are groups, which open and close, and repeated blocks are shown once. TypeError unless the arguments are such
    a model or nodes.

    >>> import tensorgrad as torch
    >>> from tensorgrad.symbolic import Input, SymbolicModel, picture
    >>> x = Input((8,))
    >>> drawn = picture(SymbolicModel(x, torch.nn.Linear(8, 4)(x).relu()))
    >>> drawn
    <SymbolicModel of 2 steps, 2 leaves and outputs: .svg(), .html(), .dot(), .save(path)>
    >>> "Linear" in drawn.dot() and "(None, 4)" in drawn.svg()
    True
    """
    if len(things) == 1 and isinstance(things[0], GraphModule):
        whole = things[0]
        inputs, nodes = list(leaves(whole.inputs)), whole.nodes
        reader = Reader({node: name for name, node in nodes.items()})
        reader.read(inputs, [node for node in nodes.values() if node not in inputs], tuple(leaves(whole.outputs)))
        told = type(whole).__name__
    elif things and all(isinstance(thing, SymbolicData) for thing in things):
        found = sort_graph_and_check_DAG(figure_out_nodes_between(outputs=things))
        reader, told = Reader({}), "Graph"
        reader.read([node for node in found if not node.parents], [node for node in found if node.parents], things)
    else:
        kinds = ", ".join(type(thing).__name__ for thing in things) or "nothing"
        raise TypeError(f"picture() draws a SymbolicModel or Functional, or nodes of a graph, not {kinds}")
    return Graph(reader.model, Shows(shapes), fold, title or titled(told, reader.model))


class Reader:
    """Converts nodes to steps of a picture."""

    def __init__(self, names: dict[Any, str]) -> None:
        self.model = Model()
        self.names = names
        self.made: dict[Any, Any] = {}          # node → its box, or the structure of boxes for several values

    def read(self, inputs: Iterable[Any], nodes: Iterable[Any], outputs: tuple[Any, ...]) -> None:
        for number, node in enumerate(inputs, 1):
            self.made[node] = self.box("leaf", self.names.get(node) or node.custom_name or f"input {number}", node,
                                       tape=node)
        self.steps(nodes, ())
        for number, node in enumerate(outputs, 1):
            end = self.box("value", f"output {number}" if len(outputs) > 1 else "output", node)
            for source in leaves(self.made[node]):
                self.model.link(source, end)

    def box(self, kind: str, title: str, node: Any, **known: Any) -> Node:
        kept = str(node.dtype) if isinstance(node, SymbolicTensor) else type(node._in_world(0)).__name__
        return self.model.add(kind, str(title), shape=told_value(node), dtype=kept, **known)

    def steps(self, nodes: Iterable[Any], path: tuple[tuple[str, int], ...]) -> None:
        """Add boxes for nodes inside of a path of layers, each given by its name and the index of its call."""
        for node in nodes:
            call: Call = node._call
            whole = self.made.get(call.args[0]) if call.args and isinstance(call.args[0], SymbolicData) else None
            if type(call.target) is Unpack:                                             # draw its parts instead
                self.made[node] = whole
            elif type(whole) in (tuple, list) and call.target is operator.getitem and type(call.args[1]) is int:
                self.made[node] = whole[call.args[1]]
            elif (result := unrolled(call)) is not None:
                inside = [new for new in leaves(result) if isinstance(new, SymbolicData)]
                name = self.names.get(node) or node.custom_name or call.title()
                self.steps(sort_graph_and_check_DAG(self.new(inside)), (*path, (str(name), len(self.made))))
                self.made[node] = mapped(lambda leaf: self.made.get(leaf, ()), result)
            else:
                self.made[node] = self.step(node, call, path)

    def new(self, ends: list[Any]) -> set[Any]:
        """Return the ancestors of the ends that have no box yet."""
        found: set[Any] = set()
        waiting = list(ends)
        while waiting:
            if (node := waiting.pop()) not in self.made and node not in found:
                found.add(node)
                waiting.extend(node.parents)
        return found

    def step(self, node: Any, call: Call, path: tuple[tuple[str, int], ...]) -> Node:
        title = call.title() if call.target is not operator.getitem else f"[{told_index(call.args[1])}]"
        # no address
        about = (f"{target.__module__}.{target.__qualname__}" if type(target := call.target) is FunctionType
                 else repr(target))
        about = f"{self.names[node]}: {about}" if node in self.names else about
        box = self.box("step", title, node, name=node.custom_name, about=about, group=tuple(name for name, _ in path),
                       calls=tuple(number for _, number in path))
        for position, leaf in enumerate(call.leaves()):
            for source in leaves(self.made[leaf]) if isinstance(leaf, SymbolicData) else ():
                self.model.link(source, box, position=position)
        return box


def told_value(node: Any) -> str:
    """Return the shapes of the tensors in a node's value, or its type."""
    if isinstance(node, SymbolicTensor):
        return default_node_text(node)
    both = zip(leaves(node._in_world(0)), leaves(node._in_world(1)), strict=False)
    return ", ".join(str(tuple(merge(a, b))) for a, b in both if isinstance(a, tg.Tensor)) or default_node_text(node)


def told_index(index: Any) -> str:
    """Return an index as programs write it."""
    if type(index) is tuple:
        return ", ".join(map(told_index, index))
    if type(index) is slice:
        return ":".join("" if end is None else told_index(end)
                        for end in (index.start, index.stop, index.step)[:2 if index.step is None else 3])
    return "..." if index is ... else repr(index) if isinstance(index, (int, str, type(None))) else type(index).__name__


def unrolled(call: Call) -> Any:
    """Return the result of a layer that is made of layers as nodes of these; None for other layers."""
    target = call.target
    if call.kwargs or not (isinstance(target, GraphModule) or isinstance(target, Sequential)
                           and type(target).forward is Sequential.forward and len(target)):
        return None
    with SymbolicAPI2ContextManager():
        if isinstance(target, GraphModule):
            return Runner(target._program)(target, target._flat(call.args, {}))
        value, = call.args
        for layer in target:
            value = layer(value)
        return value


PICTURES[SymbolicData] = PICTURES[GraphModule] = picture      # for viz.graph

__all__ = ["picture"]
