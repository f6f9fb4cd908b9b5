"""The tape behind tensors as the plain model that is drawn."""
from __future__ import annotations

from typing import Any

from ..core.engine import sweep
from ..core.fused import Residual, plan_of
from ..core.tape import FREED, Hooks, Leaf, Output, Packed, TensorBase, node_of
from ..ops.base import OPS, Op, input_name
from .model import Model, Node, group
from .notes import name_of, note_of


def read(*outputs: Any, module: Any = None, names: dict[str, Any] | None = None, gradients: Any = False) -> Model:
    """The graph that these tensors came from.

    Parameters have the names that `module` gives them, other tensors those of `names`. With `gradients`, those that steps hand on are
    collected, from ones at the outputs, or from the gradients that are given; no `.grad` is changed, and no hook is run.

    >>> import tensorgrad as torch
    >>> w, x = torch.tensor(2., requires_grad=True), torch.tensor(3.)
    >>> model = read(w * x, names={"w": w, "x": x})
    >>> [(node.kind, node.title) for node in model.nodes]
    [('leaf', 'w'), ('leaf', 'x'), ('step', 'multiply'), ('value', 'output')]
    """
    for output in outputs:
        if not isinstance(output, TensorBase):
            raise TypeError(f"a graph is read from tensors, not from {type(output).__name__}")
    roots = [node_of(output) for output in outputs]
    if not roots or None in roots:
        raise RuntimeError("there is no graph to draw: the tensor does not require grad" if roots else "there is no tensor to draw the graph of")
    reader = Reader(named(module, names))
    reader.walk(behind(roots))
    for number, (output, root) in enumerate(zip(outputs, roots)):
        reader.output(output, root, f"output {number + 1}" if len(outputs) > 1 else "output")
    group(reader.model)
    flow(reader.model, outputs, roots, gradients)
    return reader.model


def read_failed(seen: Any) -> Model:
    """What was recorded of a forward that failed, and the operation it failed at: of a `watch` that ended in an error."""
    failure = seen.failure
    reader = Reader({})
    operands = [(name, tensor, node_of(tensor)) for name, tensor in failure.operands]
    reader.walk(behind(list(dict.fromkeys([*seen.nodes, *[node for _, _, node in operands if node is not None]]))))
    made: list[Node | None] = []
    for name, tensor, node in operands:
        source = reader.seen[node] if node is not None else reader.constant(tensor)
        if source is not None and source.kind == "leaf" and source.name is None and name.isidentifier():
            source.title = name
        made.append(source)
    last = next((node for node in reversed(reader.model.nodes) if node.kind == "step"), None)
    if failure.more and last is not None and last not in made:
        made.append(last)
    broken = reader.model.add("failed", f"{failure.title} failed", error=failure.error, group=failure.group, calls=failure.calls, source=failure.source)
    for position, source in enumerate(made):
        if source is not None:
            reader.model.link(source, broken, position=position)
    group(reader.model)
    return reader.model


def named(module: Any, names: dict[str, Any] | None) -> dict[int, tuple[str, tuple[str, ...] | None, Any]]:
    """{id of a tensor or tape node: (its name, the path of the module it belongs to, the object itself)}."""
    found: dict[int, tuple[str, tuple[str, ...] | None, Any]] = {}
    if module is not None:
        if not hasattr(module, "named_parameters"):
            raise TypeError(f"module: expected a Module, not {type(module).__name__}")
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            found[id(tensor)] = (name, tuple(name.split(".")[:-1]), tensor)
    for name, tensor in (names or {}).items():
        if not isinstance(tensor, TensorBase):
            raise TypeError(f"names: {name!r} is a {type(tensor).__name__}, not a tensor")
        found[id(tensor)] = (name, None, tensor)
        if (node := node_of(tensor)) is not None and type(node) is not Leaf:
            found[id(node)] = (name, None, node)
    return found


def behind(roots: list[Any]) -> list[Any]:
    """All that leads to these places on the tape, in the order of time."""
    found, todo = set(roots), list(roots)
    while todo:
        for e in todo.pop().edges:
            if e is not None and e not in found:
                found.add(e)
                todo.append(e)
    return sorted(found, key=lambda node: node.time)


def remembered(node: Any) -> list[tuple[int, str, Any]]:
    """(which input it was, or, after these, which result; the name; the value) of all that a step saved and that is still there."""
    saved = getattr(node, "saved", None)
    if saved is FREED or not isinstance(node, Op):
        return []
    if isinstance(saved, Residual):
        if node.composite:
            return [(i, input_name(OPS[node.opname], i), value) for i, value in enumerate(saved.needed)]
        plan, saved = plan_of(OPS[node.opname], node.edges), saved.needed
    else:
        plan = node.plan
    return [(origin, name, value) for origin, name, value in zip(plan.origins, plan.names, saved) if not isinstance(value, Packed)]


class Reader:
    """Fills a model from the tape."""

    def __init__(self, names: dict[int, tuple[str, tuple[str, ...] | None, Any]]) -> None:
        self.names, self.model = names, Model()
        self.seen: dict[Any, Node] = {}               # of tape nodes
        self.constants: dict[int, Node] = {}          # of tensors that need no gradient

    def walk(self, nodes: list[Any]) -> None:
        for node in nodes:
            if type(node) is Output:
                self.seen[node] = self.seen[node.node]
            elif type(node) is Leaf:
                self.seen[node] = self.leaf(node.tensor, node)
            else:
                self.step(node)

    def leaf(self, tensor: Any, tape: Any = None) -> Node:
        """The box of a leaf of the tape, or of a tensor that needs no gradient."""
        name, path, _ = self.names.get(id(tensor), (getattr(tensor, "name", None), None, None))
        if name is None and tape is not None and (name := name_of(tape)) is not None:
            path = tuple(name.split(".")[:-1])
        name = None if name is None else str(name)
        where = tape if tape is not None else tensor.array
        node = self.model.add("leaf", name or ("tensor" if tape is not None else "input"), shape=tuple(where.shape), dtype=where.dtype, name=name,
                              tape=tape, tensor=tensor, value=getattr(tensor, "array", None), group=path or (),
                              parameter=path is not None or type(tensor).__name__ in ("Parameter", "Buffer"))
        grad = getattr(tensor, "_grad", None)
        node.gradient = None if grad is None else grad.array
        return node

    def constant(self, value: Any) -> Node | None:
        if isinstance(value, TensorBase):
            if id(value) not in self.constants:
                self.constants[id(value)] = self.leaf(value)
            return self.constants[id(value)]
        return self.model.add("leaf", f"{value}", value=value) if isinstance(value, (bool, int, float, complex)) else None

    def step(self, tape: Any) -> None:
        kept = remembered(tape)
        arity = len(tape.edges)
        given = {origin: value for origin, _, value in kept if origin < arity}
        sources = [self.seen[e] if e is not None else self.constant(given.get(i)) for i, e in enumerate(tape.edges)]
        op = OPS.get(tape.opname) if isinstance(tape, Op) else None
        name = self.names.get(id(tape), (None,))[0]
        title = op.opname if op is not None else tape.name().removesuffix("Backward")
        node = self.model.add("step", title, shape=tape.shape, dtype=tape.dtype, name=name, op=op, tape=tape, saved=tuple(dict.fromkeys(n for _, n, _ in kept)))
        if (note := note_of(tape)) is not None:
            node.group, node.calls = note.group, note.calls
            node.source = note.source()
        self.seen[tape] = node
        for position, source in enumerate(sources):
            if source is not None:
                e = tape.edges[position]
                self.model.link(source, node, role=input_name(op, position) if op is not None and op.inputs else "", position=position,
                                result=e.index if type(e) is Output else 0)
        self.learn_values(tape, kept)

    def learn_values(self, tape: Any, kept: list[tuple[int, str, Any]]) -> None:
        """What steps saved tells what their inputs and results were, unless they were written to since."""
        for origin, _, value in kept:
            of = tape if origin >= len(tape.edges) else tape.edges[origin]
            storage = value._storage if isinstance(value, TensorBase) else tape._storage
            node = self.seen.get(of)
            if node is not None and node.value is None and type(of) is not Output and storage.written <= tape.time:
                array = getattr(value, "array", value)
                if getattr(array, "shape", None) == of.shape:
                    node.value = array
        if tape.hooks is not None and tape.hooks.retained is not None and (tensor := tape.hooks.retained()) is not None:
            self.known(self.seen[tape], tensor)

    def known(self, node: Node, tensor: Any) -> None:
        """Note what tensor a step made."""
        node.tensor, node.value = tensor, tensor.array
        node.name = node.name or getattr(tensor, "name", None)
        if tensor._grad is not None:
            node.gradient = tensor._grad.array

    def output(self, tensor: Any, root: Any, title: str) -> None:
        made = self.seen[root]
        if made.kind == "step" and type(root) is not Output:
            self.known(made, tensor)
        name = self.names.get(id(tensor), (getattr(tensor, "name", None),))[0]
        node = self.model.add("value", str(name or title), shape=tuple(tensor.array.shape), dtype=tensor.array.dtype, name=name, tensor=tensor,
                              value=tensor.array, tape=root)
        node.gradient = None if tensor._grad is None else tensor._grad.array
        self.model.link(made, node, result=root.index if type(root) is Output else 0)


# ── gradients ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def flow(model: Model, outputs: tuple[Any, ...], roots: list[Any], gradients: Any) -> None:
    """Collect the gradient of each tensor and of each edge: a sweep whose hooks only look, and that adds to no `.grad`."""
    if gradients is False or gradients is None:
        return
    steps = [node for node in model.nodes if node.kind == "step"]
    if any(getattr(step.tape, "saved", None) is FREED for step in steps):
        return      # what is known is what tensors retained
    starts = _starts(outputs, roots, gradients)
    totals: dict[Any, Any] = {}
    parts: dict[Any, tuple[Any, ...]] = {}
    try:
        with only_looking([node.tape for node in model.nodes if node.tape is not None], totals, parts) as leaves:
            sweep(dict(starts), retain_graph=True, wanted=frozenset(leaves))
    except RuntimeError:      # a value was written to since, or a Function does without: what was passed until then is known
        if gradients is not True:
            raise
    for node in model.nodes:
        if node.kind != "value" and (g := totals.get(node.tape)) is not None:
            node.gradient = g
    for output, root in zip((n for n in model.nodes if n.kind == "value"), roots):
        output.gradient = starts.get(root) if output.gradient is None else output.gradient
    for edge in model.edges:
        source, target = model.by_id[edge.source], model.by_id[edge.target]
        if target.kind == "value":
            edge.gradient = target.gradient
        elif target.tape in parts and source.tape is not None:
            edge.gradient = parts[target.tape][edge.position]


def _starts(outputs: tuple[Any, ...], roots: list[Any], gradients: Any) -> dict[Any, Any]:
    given = (None,) * len(outputs) if gradients is True else gradients if isinstance(gradients, (tuple, list)) else (gradients,)
    if len(given) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    starts: dict[Any, Any] = {}
    for output, root, g in zip(outputs, roots, given):
        if g is None:
            g = type(output._storage).xp.ones(root.shape, dtype=root.dtype)
        elif not isinstance(g, TensorBase):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
        elif tuple(g.array.shape) != tuple(root.shape):
            raise RuntimeError(f"Mismatch in shape: the gradient has a shape of {list(g.array.shape)} and the output one of {list(root.shape)}")
        else:
            g = g.array if g.array.dtype == root.dtype else g.array.astype(root.dtype)
        starts[root] = starts[root] + g if root in starts else g
    return starts


class only_looking:
    """While it lasts, the steps have no hooks but one that notes what gradients pass: {step: of its result}, {step: (of each input)}."""

    def __init__(self, tapes: list[Any], totals: dict[Any, Any], parts: dict[Any, Any]) -> None:
        self.nodes, self.totals, self.parts = list(dict.fromkeys(tapes)), totals, parts

    def __enter__(self) -> list[Any]:
        self.before = [(node, node.hooks) for node in self.nodes]
        for node in self.nodes:
            node.hooks = hooks = Hooks()
            if type(node) is Leaf:
                hooks.tensor[0] = self.noting_leaf(node)
            else:
                hooks.after[0] = self.noting(node)
        return [node for node in self.nodes if type(node) is Leaf]

    def __exit__(self, *exception: object) -> None:
        for node, hooks in self.before:
            node.hooks = hooks

    def noting(self, node: Any) -> Any:
        def note(inputs: Any, outputs: Any) -> None:
            self.parts[node] = tuple(getattr(g, "array", None) for g in inputs)
            first = next((g for g in outputs if g is not None), None)
            self.totals[node] = getattr(first, "array", None)
        return note

    def noting_leaf(self, leaf: Any) -> Any:
        def note(g: Any) -> None:
            self.totals[leaf] = g.array
        return note


__all__ = ["read", "read_failed"]
