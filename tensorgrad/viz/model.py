"""The plain model of a graph, from which everything is drawn: leaves, steps and outputs, edges, and their modules."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.step import Operand
from ..core.tape import Leaf, Output, TensorBase
from ..ops.base import Op
from .inplace_writes import Write, ends, writes
from .notes import NAMES, NOTES, OTHERS
from .torch_names import arguments, title


@dataclass(slots=True, eq=False)
class Node:
    """A box of the picture: a leaf, a step, an output, or the step that failed."""

    id: str
    kind: str                                   # "leaf", "step", "value" (an output) or "failed"
    title: str
    shape: Any = ()                             # of a step with several results: one for each
    dtype: Any = None
    name: str | None = None                     # of a parameter, or what the tensor is called
    op: type[Op] | None = None
    tape: Any = None                            # the step or leaf on the tape
    tensor: Any = None                          # the tensor, where it is known
    value: Any = None                           # its array
    gradient: Any = None
    saved: tuple[str, ...] = ()                 # what the step keeps for its backward
    group: tuple[str, ...] = ()                 # the path of the module that made it
    calls: tuple[int, ...] = ()                 # which call of each of these modules it was, where that is known
    source: tuple[str, int, str] | None = None  # file, line and text of the forward call
    error: str = ""
    parameter: bool = False                     # whether a leaf belongs to a module
    about: str = ""                             # of a step that is on no tape: what it does

    def arguments(self) -> str:
        """The parameters of the step, as a program gives them: "dim=1"."""
        return arguments(self.op.opname, self.tape.params) if self.op is not None else ""


@dataclass(slots=True, eq=False)
class Edge:
    """A tensor on its way, forward: from what made it to what uses it."""

    source: str
    target: str
    role: str = ""                              # what the step calls this input
    position: int = 0                           # which of the step's inputs it is
    result: int = 0                             # which of the source's results it is
    gradient: Any = None                        # what comes back this way
    text: str = ""                              # what a picture writes on it


@dataclass(slots=True, eq=False)
class Model:
    """The contents of a picture: nodes in the order of time, which leads forward along every edge, and edges."""

    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    by_id: dict[str, Node] = field(default_factory=dict)

    def add(self, kind: str, title: str, **known: Any) -> Node:
        node = Node(f"n{len(self.nodes)}", kind, title, **known)
        self.nodes.append(node)
        self.by_id[node.id] = node
        return node

    def link(self, source: Node, target: Node, **known: Any) -> Edge:
        self.edges.append(edge := Edge(source.id, target.id, **known))
        return edge

    def inputs(self) -> dict[str, list[Edge]]:
        """The edges that lead to each node, by its id."""
        found: dict[str, list[Edge]] = {node.id: [] for node in self.nodes}
        for edge in self.edges:
            found[edge.target].append(edge)
        return found


class Reader:
    """Fills a model from a tape that was read. `names` is as `naming.named` finds them."""

    def __init__(self, tape: Any, names: Mapping[int, tuple[str, tuple[str, ...] | None, Any]]) -> None:
        self.tape, self.names, self.model = tape, names, Model()
        self.seen: dict[Any, Node] = {}               # of places on the tape
        self.known: dict[int, Node] = {}              # of tensors that need no gradient
        ops = {node: step.op for node, step in tape.steps.items() if step.op is not None}
        places: dict[Any, list[Any]] = {}
        for node in tape.nodes:
            if type(node) is Output:
                places.setdefault(node.node, []).append(node)
        # of a norm: less its statistics
        self.alone = {node: outputs[0] for node, outputs in places.items()
                      if len(outputs) == 1 and outputs[0].index == 0}
        self.titles = dict(zip(ops, map(title, [op.opname for op in ops.values()], [node.params for node in ops])))
        for node in tape.nodes:
            if type(node) is Output:
                self.seen[node] = self.seen[node.node]
            elif type(node) is Leaf:
                self.seen[node] = self.leaf(tape.leaves[node], node)
            else:
                self.step(node, tape.steps[node])

    def leaf(self, tensor: Any, place: Any = None) -> Node:
        """The box of a leaf of the tape, or of a tensor that needs no gradient."""
        name, path, _ = self.names.get(id(tensor), (getattr(tensor, "name", None), None, None))
        if (name is None and place is not None
                and (name := NAMES.get(place) or self.tape.parameters.get(place) or OTHERS.get(place)) is not None):
            path = tuple(name.split(".")[:-1])
        name = None if name is None else str(name)
        where = place if place is not None else tensor.array
        title = name or ("tensor" if place is not None else "input")
        node = self.model.add("leaf", title, shape=tuple(where.shape), dtype=where.dtype, name=name, tape=place,
                              tensor=tensor, value=getattr(tensor, "array", None), group=path or (),
                              parameter=path is not None or type(tensor).__name__ in ("Parameter", "Buffer"))
        grad = getattr(tensor, "_grad", None)
        node.gradient = None if grad is None else grad.array
        return node

    def constant(self, value: Any) -> Node | None:
        """The box of an input that needs no gradient; a number has one for each step that uses it."""
        if isinstance(value, TensorBase):
            if id(value) not in self.known:
                self.known[id(value)] = self.leaf(value)
            return self.known[id(value)]
        if isinstance(value, (bool, int, float, complex)):
            return self.model.add("leaf", f"{value}", value=value)
        return None

    def step(self, tape: Any, read: Any) -> None:
        """The box of a step, and the edges that lead to it."""
        sources = [self.seen[o.edge] if o.edge is not None else self.constant(o.value) for o in read.inputs]
        made = self.alone.get(tape, tape)
        node = self.model.add("step", self.titles.get(tape) or tape.name().removesuffix("Backward"), shape=made.shape,
                              dtype=made.dtype, op=read.op, tape=tape)
        node.name = self.names.get(id(tape), (None,))[0]
        if read.op is not None:
            saved = [o.name.partition("[")[0] for o in read.asked.values() if o.position >= 0 and o.value is not None]
            node.saved = tuple(dict.fromkeys(saved))
        node.group, node.calls = self.tape.homes[tape]
        if (note := NOTES.get(tape)) is not None:
            node.source = note.source()
        if (value := self.tape.values.get(made)) is not None:
            node.value = getattr(value, "array", value)
        if (tensor := self.tape.tensors.get(tape)) is not None:
            node.tensor, node.name = tensor, node.name or getattr(tensor, "name", None)
            node.gradient = None if tensor._grad is None else tensor._grad.array
        self.seen[tape] = node
        for o, source in zip(read.inputs, sources):
            if source is not None:
                role = o.name.partition("[")[0] if read.op is not None else ""
                result = o.edge.index if type(o.edge) is Output else 0
                self.model.link(source, node, role=role, position=o.position, result=result)

    def output(self, tensor: Any, root: Any, title: str) -> None:
        """The box of a tensor that is drawn, and came from that place."""
        name = self.names.get(id(tensor), (getattr(tensor, "name", None),))[0]
        array = tensor.array
        node = self.model.add("value", str(name or title), shape=tuple(array.shape), dtype=array.dtype, name=name,
                              tensor=tensor, value=array, tape=root)
        node.gradient = None if tensor._grad is None else tensor._grad.array
        self.model.link(self.seen[root], node, result=root.index if type(root) is Output else 0)

    def gradients(self, starts: Mapping[Any, Any]) -> None:
        """Note the gradients of the way back: of what each step made, and of each edge."""
        totals, parts = dict(self.tape.arrived), {}
        for step in self.tape.back:
            totals[step.node] = next((g for g in step.incoming if g is not None), None)
            parts |= {(step.node, share.position): share.gradient for share in step.shares}
        for node in self.model.nodes:
            if node.kind == "value":
                node.gradient = starts.get(node.tape) if node.gradient is None else node.gradient
            elif (g := totals.get(node.tape)) is not None:
                node.gradient = g
        for edge in self.model.edges:
            target = self.model.by_id[edge.target]
            edge.gradient = target.gradient if target.kind == "value" else parts.get((target.tape, edge.position))


def drawn(tape: Any, names: Mapping[int, Any], outputs: Sequence[tuple[Any, Any]],
          starts: Mapping[Any, Any] | None = None) -> Model:
    """The model of a tape that was read, with a box for each of the tensors at its end, which come with their places.

    With `starts`, {place: gradient}, it has the gradients of the way back from there.
    """
    reader = Reader(tape, names)
    for number, (tensor, root) in enumerate(outputs, 1):
        reader.output(tensor, root, f"output {number}" if len(outputs) > 1 else "output")
    if starts:
        reader.gradients(starts)
    found = writes(tape)
    if found:
        gather(reader, found)
    group(reader.model)
    return reader.model


def gather(reader: Reader, found: Mapping[Any, Write]) -> None:
    """Draw each write in place as one box, with the statement of the program for its title."""
    model, last_of, inputs = reader.model, ends(found), reader.model.inputs()
    into = {reader.seen[node].id: reader.seen[write.last].id for write in found.values() for node in write.steps}
    for write in found.values():
        sources = {e.position: model.by_id[e.source] for e in inputs[reader.seen[write.main].id]}

        def spoken(operand: Operand, sources: Mapping[int, Node] = sources) -> str:
            source = sources.get(operand.position)
            named = source is not None and (source.kind == "leaf" and source.name or source.dtype is None)
            return "…" if source is None else source.title if named else source.name or "…"
        reader.seen[write.last].title = write.named(spoken).text(reader.seen[last_of[write.last]].name or "", spoken)
    boxes, edges = {*into.values()}, dict[Any, Edge]()
    for edge in model.edges:
        edge.source, edge.target = into.get(edge.source, edge.source), into.get(edge.target, edge.target)
        if edge.source != edge.target:
            edges.setdefault((edge.source, edge.target) if edge.target in boxes else edge, edge)
    model.edges = [*edges.values()]
    model.nodes = [node for node in model.nodes if into.get(node.id, node.id) == node.id]


# ── which module a step belongs to ────────────────────────────────────────────────────────────────────────────────────


def group(model: Model) -> None:
    """Give each leaf the path of the innermost module that all its uses are in."""
    users: dict[str, list[Node]] = {}
    for edge in model.edges:
        users.setdefault(edge.source, []).append(model.by_id[edge.target])
    for leaf in model.nodes:
        if leaf.kind == "leaf" and (using := users.get(leaf.id)):
            leaf.group, leaf.calls = using[0].group, using[0].calls
            for user in using[1:]:
                depth = len(shared(tuple(zip_calls(leaf)), tuple(zip_calls(user))))
                leaf.group, leaf.calls = leaf.group[:depth], leaf.calls[:depth]


def zip_calls(node: Node) -> Iterator[tuple[str, int]]:
    """The path of a node's modules, each with the number of its call."""
    for depth, part in enumerate(node.group):
        yield part, node.calls[depth] if depth < len(node.calls) else 0


def leaf_name(leaf: Node, path: tuple[str, ...]) -> str:
    """The name of a leaf inside of a module: less the module's own path."""
    for k in range(len(path)):
        if leaf.title.startswith(inner := ".".join(path[k:]) + "."):
            return leaf.title.removeprefix(inner)
    return leaf.title


def shared(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """The beginning that two paths have in common."""
    depth = 0
    while depth < min(len(a), len(b)) and a[depth] == b[depth]:
        depth += 1
    return a[:depth]


__all__ = ["Edge", "Model", "Node", "Reader", "drawn", "group", "leaf_name", "shared", "zip_calls"]
