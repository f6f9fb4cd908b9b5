"""nngraph: a graph of legacy modules, made by calling them on nodes.

>>> import tensorgrad as torch
>>> from tensorgrad.legacy import nn, nngraph
>>> x = nn.Identity()()
>>> hidden = nn.Tanh()(nn.Linear(3, 4)(x))
>>> model = nngraph.gModule([x], [nn.CAddTable()(hidden, nn.Linear(3, 4)(x))])
>>> model.forward(torch.ones(2, 3)).shape
torch.Size([2, 4])
>>> [node.op for node in model.graph.nodes]
['placeholder', 'call_module', 'call_module', 'call_module', 'call_module', 'output']
>>> torch.viz.graph(model)
<gModule of 4 steps, 2 leaves and outputs: .svg(), .html(), .dot(), .save(path)>
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import viz
from ..graph import Graph
from ..viz.drawing import titled
from ..viz.graph import PICTURES
from ..viz.model import Model
from ..viz.scene import Shows
from .nn.module import Module
from .nn.node import Node
from .nn.table import SelectTable
from .nn.tape import Tape

__all__ = ["Node", "gModule"]


class gModule(Module):
    """A module made from nodes: it takes the values of `inputs`, a tensor or a table, and returns the values of
    `outputs`.

    `graph` is its graph, as in `tensorgrad.graph` and `fx`. Errors: ValueError for a node without predecessors that is
    no input, and for an input that no output needs.
    """

    def __init__(self, inputs: Sequence[Node], outputs: Sequence[Node]) -> None:
        super().__init__()
        self.modules: list[Module] = []
        self.graph = Graph()
        self._single = len(inputs) == 1, len(outputs) == 1
        made = {id(node): self.graph.placeholder(node.name or f"input_{i}") for i, node in enumerate(inputs)}
        used: set[int] = set()
        for node in _ordered(outputs):
            if id(node) in made:
                used.add(id(node))
                continue
            if not node.sources:
                raise ValueError(f"{node!r} reads nothing, and is not among the inputs of the graph")
            module = SelectTable(node.entry) if node.module is None else node.module
            known = next((i for i, m in enumerate(self.modules) if m is module), len(self.modules))
            if known == len(self.modules):
                self.modules.append(module)
            made[id(node)] = self.graph.create_node("call_module", f"modules.{known}",
                                                    tuple(made[id(s)] for s in node.sources), {},
                                                    node.name or type(module).__name__.lower())
        for i, node in enumerate(inputs):
            if id(node) not in used:
                raise ValueError(f"no output needs input {i} of the graph")
        self.graph.output(tuple(made[id(node)] for node in outputs))

    def children(self) -> list[Module]:
        return self.modules

    def _replace_children(self, made: Callable[[Module], Any]) -> None:
        self.modules = [made(m) for m in self.modules]

    def compute(self, tape: Tape, input: Any) -> Any:
        given = iter([input] if self._single[0] else list(input))
        values: dict[Any, Any] = {}
        for node in self.graph.nodes:
            if node.op == "placeholder":
                values[node] = next(given)
            elif node.op == "call_module":
                sources = [values[a] for a in node.args]
                module = self.modules[int(node.target.rpartition(".")[2])]
                values[node] = module.record(tape, sources[0] if len(sources) == 1 else sources)
            else:
                found = [values[a] for a in node.args[0]]
                return found[0] if self._single[1] else found
        raise AssertionError("a graph ends with its output")


def _ordered(outputs: Sequence[Node]) -> list[Node]:
    """Return the nodes that outputs need, in topological order."""
    order, seen = [], set()
    stack = [(node, False) for node in reversed(outputs)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack += [(source, False) for source in reversed(node.sources)]
    return order


def picture(module: gModule, *, shapes: bool = True, fold: bool = True, title: str = "") -> viz.Graph:
    """Return the picture of a `gModule`, with modules as boxes and the shapes of its last forward; `viz.graph(module)`
    calls this.
    """
    model, made = Model(), {}
    for node in module.graph.nodes:
        if node.op == "placeholder":
            made[node] = model.add("leaf", node.name)
        elif node.op == "call_module":
            part = module.modules[int(node.target.rpartition(".")[2])]
            kind = type(part).__name__
            label = kind if node.name.rstrip("_0123456789") == kind.lower() else f"{node.name}: {kind}"
            made[node] = model.add("step", label, about=repr(part), shape=tuple(getattr(part.output, "shape", ())))
            for position, source in enumerate(node.args):
                model.link(made[source], made[node], position=position)
        else:
            for number, source in enumerate(node.args[0], 1):
                end = model.add("value", f"output {number}" if len(node.args[0]) > 1 else "output",
                                shape=made[source].shape)
                model.link(made[source], end)
    return viz.Graph(model, Shows(shapes), fold, title or titled("gModule", model))


PICTURES[gModule] = picture         # for viz.graph
