"""Backprop, step by step: what each step back is given, what its rule makes of it, and what is added up where."""
from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.engine import starts
from ..core.tape import Output, TensorBase
from .decomposition import recomputed
from .expansion import openable, opened
from .model import Model, drawn
from .modules import paths
from .naming import known, names_of, placed, tensors_of, variables
from .program import places, recorded
from .statements import Statements
from .step_texts import Arrived, BackwardStep, ForwardStep
from .tape import Tape
from .text import Value, brief, together

if TYPE_CHECKING:
    from .exercises.exercise import Exercise
from .inplace_writes import versioned, writes


def explain(loss: Any, gradient: Any = None, *, module: Any = None,
            names: Mapping[str, Any] | None = None) -> Explanation:
    """Backprop from `loss`, step by step: each op, its rule, the numbers that go into it, and what is added up where.

    Nothing is changed: no `.grad`, no hook runs, and the graph is kept. Start from `gradient`, as
    `loss.backward(gradient)` does. Tensors are called by the variables of the program that calls, by the parameters of
    `module`, or by `names`, a mapping name → tensor; one called g is told as g′, for g is the gradient that comes in.

    Raises: TypeError for what is no Tensor; RuntimeError, as `backward` does, for a loss of several elements without a
    `gradient`, for a tensor that has no graph, and for a graph that was freed. Formulas: the ops' own `grad_*`.

    >>> import tensorgrad as torch
    >>> x = torch.tensor(3., requires_grad=True)
    >>> y = x * x
    >>> print(torch.viz.explain(y))
    Backprop of y = 9 in 1 step
    ...
    """
    if not isinstance(loss, TensorBase):
        raise TypeError(f"explain(): argument 'loss' (position 1) must be Tensor, not {type(loss).__name__}")
    scope = variables(sys._getframe(1)) if names is None else dict(names)
    return Explanation(loss, gradient, placed(tensors_of(scope, module)), paths(scope, module))


class Explanation:
    """The steps of a forward and a backward, with their numbers as they were when `explain` was called.

    `forward` and `steps` list the steps, `leaves` what arrives in the end; `keys` has the names of places in its
    `program`, `numbers` the steps of that which each step forward tells.
    The explanation prints as text, shows itself as a page in Jupyter, and `html()` or `save(path)` make that page,
    which walks through the steps on the graph.
    """

    def __init__(self, loss: Any, gradient: Any, tensors: Mapping[str, tuple[Any, Any]],
                 modules: Mapping[int, tuple[str, ...]] | None = None) -> None:
        roots = starts((loss,), None if gradient is None else (gradient,), False)
        (self.root, start), = roots.items()
        if self.root._storage.rank:
            raise RuntimeError("explain() shows the numbers of one example: it cannot look into a tensor inside vmap")
        tape = Tape(roots, [(loss, self.root), *tensors.values()], roots, again=True, modules=modules)
        found = writes(tape)
        called, names = known(tensors), versioned(names_of(tape, tensors), found)
        teller = Statements(tape, names, start, found)
        self.name, self.value, self.start = names[self.root], teller.values.get(self.root), teller.start
        self.forward: list[ForwardStep] = teller.forward()
        self.steps: list[BackwardStep] = teller.back(self.forward)
        self.leaves: list[Arrived] = teller.arrived()
        parts = dict(zip([step.node for step in tape.back], openable(tape, names)))
        self.openable = ["it is a write in place, whose rule is whole" if step.node in found else parts[step.node]
                         for step in self.steps]
        self.keys, self.recorded = places(tape), recorded(tape, names, self.root, start)
        numbers = {node: number for number, node in enumerate(tape.steps, 1)}
        self.numbers = {s.node: [numbers[n] for n in (found[s.node].steps if s.node in found else [s.node])]
                        for s in self.forward}
        self.results = {step.node: step.places for step in self.forward if type(step.places[0]) is Output}
        self.model = self._model(drawn(tape, called, [(loss, self.root)]), names, teller.values)
        self.given: list[tuple[str, Value | None, Any]] = [(names[n], teller.values.get(n), n) for n in tape.leaves]

    def _model(self, model: Model, names: Mapping[Any, str], values: Mapping[Any, Value]) -> Model:
        """The graph, with the names and numbers that are told here."""
        fixed = [node for node in model.nodes if node.tape is None and hasattr(node.value, "shape")]
        placed = [node for node in model.nodes if node.tape is not None and node.kind != "value"]
        gradients = {told.node: told.total for step in self.steps for told in step.gives} | {self.root: self.start}
        told = {step.node: step for step in self.forward}
        for node, text in zip(fixed, brief([node.value for node in fixed])):
            node.value = text
        results = [self.results.get(node.tape, [node.tape]) for node in placed]
        shown = together([[table.get(p) for p in places] for table in (values, gradients) for places in results])
        for node, node.value, node.gradient in zip(placed, shown[:len(placed)], shown[len(placed):], strict=True):
            step = told.get(node.tape)
            node.name = step.result if step is not None and node.tape in self.results else names[node.tape]
            node.title = node.name if node.kind == "leaf" else node.title if step is None else step.op
        return model

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[BackwardStep]:
        return iter(self.steps)

    def __getitem__(self, index: Any) -> Any:
        return self.steps[index]

    def open(self, index: int) -> Explanation:
        """The step back at an index, taken apart: an explanation of the op's definition on the step's own numbers, from
        the gradient that came in.

        Its leaves are the step's inputs, and what arrives there is what the step gives. Parts may be opened in their
        turn.

        ValueError for a step that has no parts, or whose inputs the tape did not keep.

        >>> import tensorgrad as torch
        >>> x = torch.tensor([1., 2.], requires_grad=True)
        >>> print(torch.viz.explain(x.mean()).open(0))
        Backprop of L = 1.5 in 2 steps
        ...
        """
        step = self.openable[index]
        parts = opened(step)
        found = Explanation(parts.loss, parts.gradient, parts.tensors)
        # None for an input that no part uses
        keys = [found.keys.get(parts.leaves.get(edge)) for _, edge, _ in step.inputs]
        inputs = [("value", value) if key is None else ("place", key)
                  for (_, _, value), key in zip(step.inputs, keys, strict=True)]
        found.recorded = recomputed(found.recorded, step.op, parts.definition, step.params, inputs)
        return found

    def text(self, *, width: int = 100, most: int | None = 60, colour: bool = False) -> str:
        """The steps as text of so many columns. Of more than `most` steps (None: no limit) the middle is left out."""
        from .report import text
        return text(self, width, most, colour)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Explanation of {self.name}: {len(self.forward)} steps forward, {len(self.steps)} back>"

    def _repr_html_(self) -> str:
        from .explorer import framed
        return framed(self.html())

    def html(self) -> str:
        """A page that needs nothing else: the graph, the steps forward and back, and leaves whose values can be
        changed: what follows from them is computed in the page, by the rules that it shows."""
        from .explorer import page
        return page(self)

    def svg(self) -> str:
        """A picture that moves: numbers and gradients appear in the graph step by step.

        ValueError for more than 120 steps.

        Forges, browsers and slides play it in an `<img>`; programs that do not animate show the last picture.
        """
        from .animation import film
        return film(self)

    def save(self, path: Any) -> Path:
        """Write the page to a file, or the steps as text if its name ends in .txt, or the moving picture for .svg;
        returns its path.
        """
        path = Path(path)
        content = (f"{self.text(most=None)}\n" if path.suffix == ".txt" else self.svg() if path.suffix == ".svg"
                   else self.html())
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        return path

    def show(self) -> Path:
        """Open the page in the browser; returns where it lies."""
        import tempfile
        import webbrowser
        path = self.save(Path(tempfile.mkdtemp(prefix="tensorgrad-"), "explanation.html"))
        webbrowser.open(path.as_uri())
        return path

    def exercise(self, level: str = "number", seed: int | str = 0) -> Exercise:
        """An exercise about this backward: "number", "rule", "whole" or "wrong", as `viz.exercise` says.

        The seed chooses what is asked.

        ValueError for a program that has no question of this level, or whose steps a page cannot compute.

        >>> import tensorgrad as torch
        >>> x = torch.tensor(3., requires_grad=True)
        >>> torch.viz.explain(x * x + x).exercise("rule")
        <Exercise "rule", seed 0, about L: 1 question>
        """
        from .exercises.exercise import Exercise
        return Exercise(self, level, seed)
