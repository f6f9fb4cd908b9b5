"""Build a model's graph from the nodes between its inputs and outputs; the model runs, copies, pickles and prints
it.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from copy import deepcopy
from types import MethodType
from typing import Any

from .. import api as tg
from ..graph import Graph, Node
from ..graph.nesting import aggregate, leaves
from ..graph.source import RESERVED, VARIABLE
from ..nn import Module, Parameter
from .calls import Attribute, Call, Method
from .data import SymbolicData
from .graph_algorithms import check_for_missing_inputs, describe, sort_graph_and_check_DAG


class Program(Graph):
    """The graph of a model: layers are `call_module` nodes, what the model holds beside them `get_attr` nodes.

    `meta` has a value's name in summaries as "label" and, after the first request, its shape (or the name of its type)
    as "shape". Copies do not share functions and constants.
    """

    @property
    def inputs(self) -> list[Node]:
        """The nodes of the inputs."""
        return self.find_nodes(op="placeholder")

    @property
    def values(self) -> list[Node]:
        """Inputs and steps: all nodes except `get_attr` nodes and the output."""
        return [node for node in self.nodes if node.op not in ("get_attr", "output")]

    @property
    def outputs(self) -> Any:
        """The model's return value: a structure of nodes and constants."""
        return self.output_node().args[0]

    def _copied(self, thing: Any, memo: dict[int, Any]) -> Any:
        return deepcopy(thing, memo)

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, dict):             # of a model that was pickled before there were graphs
            from .old_pickles import read
            self._begin()
            self._tracer_cls = self._tracer_extras = None
            read(self, state, arguments_for(state["inputs"]))
        else:
            super().__setstate__(state)


def __getattr__(name: str) -> Any:
    if name in ("Ref", "Held", "Step"):         # old pickles look for them here
        from . import old_pickles
        return getattr(old_pickles, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Builder:
    """Builds the program from the nodes between inputs and outputs; names its steps, and registers their modules and
    tensors with the model."""

    def __init__(self, inputs: Iterable[SymbolicData], outputs: Any, model: Any) -> None:
        self.model = model
        self.used: Counter[str] = Counter()
        self.taken: set[str] = set()
        self.nodes: dict[SymbolicData, Node] = {}           # the program's node of each value
        self.names: dict[SymbolicData, str] = {}
        self.held: dict[int, Node] = {}                     # id of a constant tensor or module → its `get_attr` node
        self.program = Program()
        inputs = list(inputs)
        for node in inputs:
            self.names[node] = self.name(node, "Input")
        assert len(self.names) == len(inputs), "An input is there twice."
        for node, argument in zip(inputs, arguments_for(list(self.names.values())), strict=True):
            self.nodes[node] = made = self.program.placeholder(argument)
            made.meta["label"] = self.names[node]
        self.output = self.program.output(None)
        self.add(outputs)

    def add(self, outputs: Any) -> None:
        """Add the steps that these outputs (a structure of nodes) need."""
        ends = [leaf for leaf in leaves(outputs) if isinstance(leaf, SymbolicData)]
        found = needed(ends, self.nodes)
        check_for_missing_inputs(found, self.nodes)
        new = sort_graph_and_check_DAG(found - self.nodes.keys())
        for node in new:
            self.check_name(node)
        for node in new:
            self.step(node)
        self.output.args = (aggregate(outputs, self.refer),)
        next(iter(reversed(self.program.nodes))).append(self.output)

    def refer(self, leaf: Any) -> Any:
        """Return the program's node for a leaf of the arguments; constants pass through."""
        if isinstance(leaf, SymbolicData):
            return self.nodes[leaf]
        if isinstance(leaf, (tg.Tensor, Module)):
            return self.hold(leaf)
        return leaf

    def hold(self, thing: Any) -> Node:
        """Make a module or tensor part of the model, once, and return the node that reads it."""
        if id(thing) not in self.held:
            name = self.numbered(type(thing).__name__ if isinstance(thing, Module) else "constant")
            if isinstance(thing, Module):
                self.model.add_module(name, thing)
            elif isinstance(thing, Parameter):
                self.model.register_parameter(name, thing)
            else:
                self.model.register_buffer(name, thing)
            self.held[id(thing)] = self.program.get_attr(name)
        return self.held[id(thing)]

    def step(self, node: SymbolicData) -> None:
        call: Call = node._call
        op, target, args = "call_function", call.target, call.args
        name = self.name(node, call.title())
        if isinstance(target, Module):
            self.model.add_module(name, target)
            op, target = "call_module", name
        elif type(target) is MethodType and isinstance(target.__self__, Module):
            # model.encode: the model is called
            op, target, args = "call_method", target.__name__, (target.__self__, *args)
        elif type(target) is Method:
            op, target = "call_method", target.name
        elif type(target) is Attribute:
            target, args = getattr, (*args, target.name)
        made = self.program._create(op, target, args, call.kwargs, refer=self.refer)
        made.meta["label"] = name
        self.names[node], self.nodes[node] = name, made

    def name(self, node: SymbolicData, kind: str) -> str:
        """Return a step's name: its custom name, or the name of its layer with a number."""
        if node.custom_name is None:
            return self.numbered(kind)
        self.check_name(node)
        return self.numbered(str(node.custom_name), first=str(node.custom_name))

    def check_name(self, node: SymbolicData) -> None:
        """Raise ValueError if a layer of the model cannot have the node's custom name."""
        if node.custom_name is None:
            return
        name = str(node.custom_name)
        if not name or "." in name:
            raise ValueError(f"a name of a layer can't be empty or have a dot in it: {name!r}, of {describe(node)}")
        if isinstance(node.layer, Module) and hasattr(self.model, name) and name not in self.taken:
            raise ValueError(f"a layer can't be called {name!r}, which is an attribute that every module has: "
                             f"{describe(node)}")

    def numbered(self, kind: str, first: str | None = None) -> str:
        while True:
            self.used[kind] += 1
            name = first if first is not None and self.used[kind] == 1 else f"{kind}_{self.used[kind]}"
            if name not in self.taken:
                self.taken.add(name)
                return name


def arguments_for(names: list[str]) -> list[str]:
    """Return the parameter names for inputs of these names: an input's own name if the user chose it and it is
    valid, else i0, i1, …"""
    digits = len(str(max(len(names) - 1, 0)))
    return [f"i{place:0{digits}}" if not name.isidentifier() or name in RESERVED or VARIABLE.fullmatch(name)
            or name.startswith("Input_") else name
            for place, name in enumerate(names)]


def needed(ends: Iterable[SymbolicData], inputs: Any) -> set[SymbolicData]:
    """Return the nodes that must be computed from the inputs to reach the ends."""
    found = set(ends)
    waiting = [node for node in found if node not in inputs]
    while waiting:
        for parent in waiting.pop()._parents:
            if parent not in found:
                found.add(parent)
                if parent not in inputs:
                    waiting.append(parent)
    return found
