"""The plain model of a graph that everything is drawn from: what is a leaf, what a step, what leads where, and which module a step belongs to."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..ops.base import Op


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

    def params(self) -> dict[str, Any]:
        """The parameters of the step: {"axis": 1}."""
        return dict(getattr(self.tape, "params", None) or {}) if isinstance(self.tape, Op) else {}


@dataclass(slots=True, eq=False)
class Edge:
    """A tensor on its way, forward: from what made it to what uses it."""

    source: str
    target: str
    role: str = ""                              # what the step calls this input
    position: int = 0                           # which of the step's inputs it is
    result: int = 0                             # which of the source's results it is
    gradient: Any = None                        # what comes back this way


@dataclass(slots=True, eq=False)
class Model:
    """What a picture shows: nodes in the order of time, which leads forward along every edge, and edges."""

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


# ── which module a step belongs to ────────────────────────────────────────────────────────────────────────────────────


def group(model: Model) -> None:
    """Give each node the path of its module: as watched, or else as the names of parameters tell.

    A step belongs to the module whose parameters it uses; one that uses none to what the steps before and after it share.
    """
    inputs = model.inputs()
    steps = [node for node in model.nodes if node.kind == "step"]
    if not any(step.group or step.source or step.calls for step in steps):
        paths: list[tuple[str, ...] | None] = []
        for step in steps:
            of = [model.by_id[e.source] for e in inputs[step.id]]
            paths.append(next((leaf.group for leaf in of if leaf.kind == "leaf" and leaf.name is not None and leaf.group), None))
        before = list(_last_known(paths))
        after = list(_last_known(paths[::-1]))[::-1]
        for step, path, earlier, later in zip(steps, paths, before, after):
            step.group = path if path is not None else shared(earlier, later) if earlier is not None and later is not None else ()
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
    """What a leaf is called inside of a module: what its name adds to the module's."""
    for k in range(len(path)):
        if leaf.title.startswith(inner := ".".join(path[k:]) + "."):
            return leaf.title.removeprefix(inner)
    return leaf.title


def shared(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """What two paths begin with."""
    depth = 0
    while depth < min(len(a), len(b)) and a[depth] == b[depth]:
        depth += 1
    return a[:depth]


def _last_known(values: list[Any]) -> Iterator[Any]:
    last = None
    for value in values:
        last = value if value is not None else last
        yield last


__all__ = ["Edge", "Model", "Node", "group", "leaf_name", "shared", "zip_calls"]
