"""The tape behind tensors, read once: its steps, the values that it still has, and the gradients of a way back.

Nothing is changed by reading: no .grad, no hook runs, and nothing that was saved is freed.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from ..core.dispatch import apply, wrap
from ..core.mode import no_grad
from ..core.sweep import StepBack, steps_back
from ..core.tape import Leaf, Output, TensorBase, node_of
from ..core.unbroadcast import added
from ..runtime.numpy_state import Region
from .model import Model, Reader, drawn, group
from .modules import Path, Place, homes, paths
from .naming import named
from .notes import NOTES

LARGEST = 1 << 20       # elements of an input, up to which a step is computed again
SLACK = 8               # units in the last place


class Tape:
    """All that leads to some places on the tape, in numbers as they are now.

    - `nodes`: leaves, steps and places of several results, in the order of time
    - `leaves`: {leaf: its tensor}; `steps`: {step: its Reading}
    - `tensors`: {place: the tensor that is there}, of those that live
    - `values`: {place: a tensor or array}, where the value is still what it was when it was used
    - `given`: {step: {position: an input that needs no gradient}}
    - `back`: the steps back from `starts`, {place: gradient}; `arrived`: {leaf: the gradient that reached it}

    `living` are further tensors to be looked at, each with its place, and `modules` the paths of modules, by ids. With
    `again`, values that nobody kept are computed again where their inputs are known, and saved-tensors hooks unpack
    what they keep. If a step back fails, its error is raised, unless what was found until then is enough (`partly`).
    """

    def __init__(self, roots: Iterable[Any], living: Iterable[tuple[Any, Any]] = (),
                 starts: Mapping[Any, Any] | None = None, *, partly: bool = False, again: bool = False,
                 modules: Mapping[int, Path] | None = None) -> None:
        self.nodes, living = behind(roots), list(living)
        self.leaves = {node: node.tensor for node in self.nodes if type(node) is Leaf}
        self.modules = modules or {}
        self.tensors: dict[Any, Any] = {}
        self.values: dict[Any, Any] = {}
        self.given: dict[Any, dict[int, Any]] = {}
        self.back: list[StepBack] = []
        self.arrived = dict(starts or {})
        steps = [node for node in self.nodes if type(node) not in (Leaf, Output)]
        with Region(), no_grad():
            if starts:
                self._go_back(steps, partly)
            unpacked = {step.node: step.reading for step in self.back} if again else {}
            self.steps = {node: unpacked.get(node) or node.read(unpack=False) for node in steps}
            self._see_tensors(living)
            self._see_saved()
            if again:
                self._compute_again([tensor for tensor, _ in living])

    @cached_property
    def _called(self) -> tuple[dict[Any, Place], list[Any]]:
        return homes(self.nodes, self.modules)

    @cached_property
    def parameters(self) -> dict[Any, str]:
        """{leaf: its name as a parameter} of modules that no variable of the program has.

        Where two have one name, the classes of these tell them apart.
        """
        found = {p._node: (name, f"{type(module).__name__}.{name}") for module in self._called[1]
                 for name, p in module.named_parameters()}
        counts = Counter(name for names in found.values() for name in names)
        return {leaf: name for leaf, names in found.items()
                if (name := next((n for n in names if counts[n] == 1), None)) is not None}

    @cached_property
    def homes(self) -> dict[Any, Place]:
        """{step: the module that it was made in}: the path, and the calls of the modules on it; ((), ()) for none."""
        found = self._called[0] | {node: (note.group, note.calls) for node in self.steps
                                   if (note := NOTES.get(node)) is not None and note.group is not None}
        return {node: found.get(node, ((), ())) for node in self.steps}

    def _go_back(self, steps: list[Any], partly: bool) -> None:
        """Take the steps back. `arrived` holds the gradients that wait, and in the end those of the leaves."""
        try:
            for step in steps_back(self.arrived):
                self.back.append(step)
        except RuntimeError:
            if not partly:
                raise
            taken = {step.node for step in self.back}
            unfinished = {e for node in steps if node not in taken for e in node.edges}
            self.arrived = {n: g for n, g in self.arrived.items() if type(n) is Leaf and n not in unfinished}

    def _see_tensors(self, living: list[tuple[Any, Any]]) -> None:
        """Note the tensors that live, and their values, unless they were written over since they were used."""
        until = {node: node.time for node in self.nodes}
        until |= {e: node.time for node in self.nodes for e in node.edges if type(e) is Leaf}
        retained = [(n.hooks.retained(), n) for n in self.nodes if n.hooks is not None and n.hooks.retained is not None]
        own = [(tensor, leaf) for leaf, tensor in self.leaves.items() if tensor is not None and tensor._node is leaf]
        for tensor, node in (*living, *own, *retained):
            if tensor is not None and node in until:
                self.tensors.setdefault(node, tensor)
                written = tensor._storage.written
                current = written <= until[node] or written <= getattr(node, "since", 0)
                if current and tensor.array.shape == node.shape:
                    self.values.setdefault(node, tensor)

    def _see_saved(self) -> None:
        """Note the values that steps saved of their inputs and results."""
        for node, step in self.steps.items():
            given, arity = self.given.setdefault(node, {}), len(step.inputs)
            for o in (*step.inputs, *[o for o in step.asked.values() if o.position >= arity]):
                if o.stale:
                    continue
                if o.edge is None and o.position < arity:
                    if o.value is not None or o.name in step.asked or step.op is not None and step.op.composite:
                        given[o.position] = o.value       # None: an input that may be left out
                elif o.edge is not None and getattr(getattr(o.value, "array", o.value), "shape", None) == o.edge.shape:
                    self.values.setdefault(o.edge, o.value)

    def _compute_again(self, tensors: list[Any]) -> None:
        """Find the values that nobody kept, and the terms of sums, which may be among these tensors."""
        for node, step in self.steps.items():
            if any([place is not None and place not in self.values for place in step.results]):
                for place, result in zip(step.results, self._again(node, step)):
                    if place is not None:
                        self.values.setdefault(place, result)
        for node, given in self.given.items():
            if not given:
                given |= recovered(node, self.steps[node], self.values, tensors)

    def _again(self, node: Any, step: Any) -> Any:
        """The results of a step, computed once more; none if some input is not known."""
        op, given, inputs = step.op, self.given[node], []
        if op is None:
            return ()
        for o in step.inputs:
            if o.position not in given if o.edge is None else o.edge not in self.values:
                return ()
            value, place = (given[o.position], node) if o.edge is None else (self.values[o.edge], o.edge)
            backend = type(getattr(value, "_storage", place._storage))
            array = getattr(value, "array", value)
            if getattr(array, "size", 0) > LARGEST:
                return ()
            inputs.append(wrap(array, backend()) if hasattr(array, "shape") else array)      # views leave no trace
        params = {**(node.params or {})}
        # the program wrote to the tensor before the step was noted; here it is written to a copy
        if "written" in params:
            params["written"] = False
        try:
            results = apply(op, *([inputs] if op.sequence else inputs), **params)
        except Exception:       # arguments that the tape does not keep as they were
            return ()
        results, shapes = (list(results), node.shape) if op.several else ([results], (node.shape,))
        return results if [r.array.shape for r in results] == list(shapes) else ()


def behind(roots: Iterable[Any]) -> list[Any]:
    """All that leads to these places on the tape, in the order of time."""
    found = dict.fromkeys(roots)
    todo = list(found)
    while todo:
        for e in todo.pop().edges:
            if e is not None and e not in found:
                found[e] = None
                todo.append(e)
    return sorted(found, key=attrgetter("time"))


# ── terms of sums ─────────────────────────────────────────────────────────────────────────────────────────────────────

# op → the missing first term, and the missing second one, made from the result y and the other term t
TERMS = {"add": (lambda y, t: y - t, lambda y, t: y - t),
         "subtract": (lambda y, t: y + t, lambda y, t: t - y),
         "rsub": (lambda y, t: t - y, lambda y, t: y + t)}


def recovered(node: Any, step: Any, values: Mapping[Any, Any], tensors: Iterable[Any]) -> dict[int, Any]:
    """{position: the term of a sum, which saves none}: the only tensor among these that fits, or a simple number.

    >>> import tensorgrad as torch
    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> y = (x + 0.1).grad_fn
    >>> recovered(y, y.read(), {y: torch.tensor([1.1, 2.1]), y.edges[0]: x}, [])
    {1: 0.1}
    """
    terms = TERMS.get(step.op.opname) if step.op is not None else None
    if terms is None or sum(e is None for e in node.edges) != 1:
        return {}
    position = 0 if node.edges[0] is None else 1
    y, t = numbers(values.get(node)), numbers(values.get(node.edges[1 - position]))
    if y is None or t is None or not y.size:
        return {}
    term = terms[position](y, t)
    slack = SLACK * np.finfo(node.dtype).eps * max(np.abs(y).max(), np.abs(t).max(), 1e-30)
    fits = {id(c.array): c for c in tensors if isinstance(c, TensorBase) and fitting(term, numbers(c), slack)}
    if len(fits) == 1:
        return {position: next(iter(fits.values()))}
    simple = float(f"{term.mean():.3g}")
    return {position: simple} if np.abs(term - simple).max() <= slack else {}


def numbers(value: Any) -> Any:
    """The real numbers of a tensor or an array, if they are at hand, in double precision."""
    array = getattr(value, "array", value)
    real = isinstance(array, (np.ndarray, np.generic)) and array.dtype.kind in "fiu"
    return np.asarray(array, np.float64) if real else None


def fitting(term: Any, candidate: Any, slack: float) -> bool:
    if candidate is None or len(candidate.shape) > len(term.shape):
        return False
    if any(n not in (1, m) for n, m in zip(candidate.shape[::-1], term.shape[::-1])):
        return False
    return bool(np.abs(term - candidate).max() <= slack)


# ── what is drawn ─────────────────────────────────────────────────────────────────────────────────────────────────────


def read(*outputs: Any, module: Any = None, names: dict[str, Any] | None = None, gradients: Any = False,
         modules: Mapping[int, Path] | None = None) -> Model:
    """The graph that these tensors came from.

    Parameters have the names that `module` gives them, other tensors those of `names`, modules the paths of `modules`,
    by ids. With `gradients`, those that steps hand on are collected, from ones at the outputs, or from the gradients
    that are given; no `.grad` is changed, and no hook is run.

    >>> import tensorgrad as torch
    >>> w, x = torch.tensor(2., requires_grad=True), torch.tensor(3.)
    >>> model = read(w * x, names={"w": w, "x": x})
    >>> [(node.kind, node.title) for node in model.nodes]
    [('leaf', 'w'), ('leaf', 'x'), ('step', 'multiply'), ('value', 'output')]
    """
    for output in outputs:
        if not isinstance(output, TensorBase):
            raise TypeError(f"a graph is read from tensors, not from {type(output).__name__}")
    roots = list(map(node_of, outputs))
    if not roots or None in roots:
        raise RuntimeError("there is no graph to draw: the tensor does not require grad" if roots else
                           "there is no tensor to draw the graph of")
    known, ends = named(module, names), list(zip(outputs, roots))
    start = _starts(outputs, roots, gradients) if gradients is not False and gradients is not None else {}
    if any([node.freed for node in behind(roots) if type(node) not in (Leaf, Output)]):
        start = {}                                # there is no way back: what tensors retained is what is known
    tape = Tape(roots, ends, start, partly=gradients is True, modules=paths({}, module) if modules is None else modules)
    return drawn(tape, known, ends, start)


def read_failed(seen: Any) -> Model:
    """The steps that a forward recorded until it failed, and the operation that failed.

    `seen` is the `watch` around it.
    """
    failure = seen.failure
    operands = [(name, tensor, node_of(tensor)) for name, tensor in failure.operands]
    reader = Reader(Tape([*seen.nodes, *[node for _, _, node in operands if node is not None]]), {})
    made: list[Any] = []
    for name, tensor, node in operands:
        source = reader.seen[node] if node is not None else reader.constant(tensor)
        if source is not None and source.kind == "leaf" and source.name is None and name.isidentifier():
            source.title = name
        made.append(source)
    last = next((node for node in reversed(reader.model.nodes) if node.kind == "step"), None)
    if failure.more and last is not None and last not in made:
        made.append(last)
    broken = reader.model.add("failed", f"{failure.title} failed", error=failure.error, group=failure.group,
                              calls=failure.calls, source=failure.source)
    for position, source in enumerate(made):
        if source is not None:
            reader.model.link(source, broken, position=position)
    group(reader.model)
    return reader.model


def _starts(outputs: tuple[Any, ...], roots: list[Any], gradients: Any) -> dict[Any, Any]:
    """{place: gradient} to draw the way back from: ones, unless gradients are given."""
    several = isinstance(gradients, (tuple, list))
    given = (None,) * len(outputs) if gradients is True else gradients if several else (gradients,)
    if len(given) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    starts: dict[Any, Any] = {}
    for output, root, g in zip(outputs, roots, given):
        xp = type(output._storage).xp
        if g is None:
            g = xp.ones(root.shape, dtype=root.dtype)
        elif not isinstance(g, TensorBase):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
        elif tuple(g.array.shape) != tuple(root.shape):
            raise RuntimeError(f"Mismatch in shape: the gradient has a shape of {list(g.array.shape)} and the output "
                               f"one of {list(root.shape)}")
        else:
            g = g.array if g.array.dtype == root.dtype else xp.cast(g.array, dtype=root.dtype)
        starts[root] = added(xp, starts[root], g) if root in starts else g
    return starts


__all__ = ["Tape", "behind", "read", "read_failed"]
