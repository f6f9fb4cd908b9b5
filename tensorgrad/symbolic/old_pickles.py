"""Reads the programs of models that were pickled before these had graphs: steps with numbered places for values."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..graph import Graph, Node
from ..graph.nesting import aggregate
from .calls import Attribute, Call, Method


@dataclass(frozen=True)
class Ref:
    """The value of an earlier step, or an input."""

    place: int


@dataclass(frozen=True)
class Held:
    """A module or tensor that the model owns under this name."""

    name: str


@dataclass(frozen=True)
class Step:
    """A call, and the place of its value."""

    name: str
    call: Call
    place: int


def read(graph: Graph, state: dict[str, Any], arguments: list[str]) -> None:
    """Fill an empty graph with the program of this state."""
    values: list[Node] = []
    held: dict[str, Node] = {}

    def refer(leaf: Any) -> Any:
        if type(leaf) is Held:
            if leaf.name not in held:
                held[leaf.name] = graph.get_attr(leaf.name)
            return held[leaf.name]
        return values[leaf.place] if type(leaf) is Ref else leaf
    for label, name in zip(state["inputs"], arguments, strict=True):
        values.append(noted(graph.placeholder(name), label))
    for step in state["steps"]:
        values.append(noted(graph.create_node(*called(step.call.target, aggregate(step.call.args, refer)),
                                              aggregate(step.call.kwargs, refer)), step.name))
    for node, shape in zip(values, state["shapes"], strict=False):
        node.meta["shape"] = shape
    graph.output(aggregate(state["outputs"], refer))


def noted(node: Node, label: str) -> Node:
    """Give a node its label in summaries, and return it."""
    node.meta["label"] = label
    return node


def called(target: Any, args: tuple[Any, ...]) -> tuple[str, Any, tuple[Any, ...]]:
    """Return (op, target, arguments) of the `fx` node for a call."""
    if type(target) is Held:
        return "call_module", target.name, args
    if type(target) is Method:
        return "call_method", target.name, args
    if type(target) is Attribute:
        return "call_function", getattr, (*args, target.name)
    return "call_function", target, args
