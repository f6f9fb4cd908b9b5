"""Where a NaN or an infinity came from: the first step, forward or back, that made one from finite numbers."""
from __future__ import annotations

import sys
from collections.abc import Mapping
from math import isfinite, isnan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.engine import starts
from ..core.tape import TensorBase
from .naming import names_of, placed, tensors_of, variables
from .step_texts import BackwardStep, ForwardStep, Teller, worked
from .tape import Tape
from .text import BOLD, ORANGE, Block, Equation, Line, Value, escape, host, laid_out, shape_text, short

NAN, INFINITE = 2, 1        # how bad an array is: 0 if all of it is finite


class Origin(NamedTuple):
    """A step that made a NaN or an infinity, or a tensor that had it from the beginning.

    `phase` is 'input', 'forward' or 'back'; `made` says in words what came about; `certain` is False where the tape did
    not keep all inputs, so that the culprit may be an earlier step.
    """

    phase: str
    op: str
    made: str
    rows: tuple[tuple[str, Value | str], ...]                               # the step's inputs
    result: tuple[str, tuple[str, ...], Value | str]                        # name, the formulas, the numbers
    # the first element that is not finite, worked out
    element: str
    source: tuple[str, int, str] | None
    certain: bool
    node: Any


def explain_nan(loss: Any, gradient: Any = None, *, module: Any = None,
                names: Mapping[str, Any] | None = None) -> NanReport:
    """Find the first operation, forward or backward, that made a NaN or an infinity from finite numbers.

    The report prints as text, shows itself in Jupyter, and `save(path)` writes it as .html or .txt. An infinity that a
    program puts in itself, as masks do, is no culprit, but the step that makes a NaN of it is. If an infinity of the
    forward does not reach the loss, the first step of the backward that goes wrong is told, too. Lines of the program
    are named for what ran under `viz.watch()`. Nothing is changed: no `.grad`, no hook runs, and the graph is kept.

    `gradient`, `module`, `names` and errors are those of `explain`.

    >>> import tensorgrad as torch
    >>> x = torch.tensor([0., 1.], requires_grad=True)
    >>> print(torch.viz.explain_nan(x.sqrt().sum()))
    The backward of sqrt made an infinity from finite numbers: 1 of 2 elements of ∂L/∂x
    ...
    """
    if not isinstance(loss, TensorBase):
        raise TypeError(f"explain_nan(): argument 'loss' (position 1) must be Tensor, not {type(loss).__name__}")
    scope = variables(sys._getframe(1)) if names is None else dict(names)
    return NanReport(loss, gradient, placed(tensors_of(scope, module)))


class NanReport:
    """Where a NaN or an infinity came from, in numbers as they were when `explain_nan` was called.

    `origins` lists what was found, the first one first: none if all is finite. `reached` names the loss and the
        gradients that are not finite, `unknown` the
    steps whose numbers the tape did not keep.
    """

    def __init__(self, loss: Any, gradient: Any, tensors: Mapping[str, tuple[Any, Any]]) -> None:
        roots = starts((loss,), None if gradient is None else (gradient,), False)
        (root, start), = roots.items()
        if root._storage.rank:
            raise RuntimeError("explain_nan() looks at the numbers of one example: it cannot look into a tensor inside "
                               "vmap")
        tape = Tape(roots, [(loss, root), *tensors.values()], roots, again=True)
        teller = Teller(tape, names_of(tape, tensors), start)
        self.name = teller.names[root]
        self.origins: tuple[Origin, ...] = tuple(Search(tape, teller, root, start).origins())
        self.reached = [f"{self.name} = {value.text(40)}" for value in [Value.of(loss)] if badness(loss)]
        self.reached += [f"{teller.names[leaf]}.grad = {Value.of(g).text(40)}"
                         for leaf, g in tape.arrived.items() if badness(g)]
        self.unknown = [teller.names[place] for step in tape.steps.values()
                        for place in step.results if place is not None and place not in tape.values]

    @property
    def finite(self) -> bool:
        """True if no NaN and no infinity was found."""
        return not self.origins and not self.reached

    @property
    def title(self) -> str:
        """The finding in a sentence."""
        return self.origins[0].made if self.origins else self.rest()

    def rest(self) -> str:
        """Return the finding where no step is the culprit."""
        if not self.reached:
            return f"Everything that is known is finite: {self.name}, each step that led to it, and all gradients"
        return "No step made a NaN, and no infinity came from finite numbers: the program put it in"

    def notes(self) -> list[str]:
        """Return remarks: other results that are not finite, doubts, unknown values, and advice."""
        found = [f"Not finite in the end: {text}" for text in self.reached]
        if self.origins and not self.reached:
            found.append(f"{self.name} and all gradients are finite all the same.")
        if any(not o.certain for o in self.origins):
            found.append("The tape did not keep all inputs of this step: one before it may be the culprit. "
                         "autograd.set_detect_anomaly(True) finds what a backward makes, while it runs.")
        elif self.unknown:
            more = ", …" if len(self.unknown) > 6 else ""
            found.append(f"Not known, as the tape had no need to keep it: {', '.join(self.unknown[:6])}{more}.")
        if any(o.source is None and o.phase != "input" for o in self.origins):
            found.append("Run the forward in `with viz.watch():` to see the line of the program.")
        return found

    def text(self, *, width: int = 100, colour: bool = False) -> str:
        """Return the report as text of this width in columns."""
        blocks: list[Line | Block] = []
        for origin in self.origins:
            name, parts, value = origin.result
            rows: list[Line | Equation] = [Equation("  ", n, (), v) for n, v in origin.rows]
            rows.append(Equation("  ", name, parts, value, ORANGE))
            blocks += [Line(origin.made, BOLD), Block(rows, [n for n, _ in origin.rows] + [name], 30)]
            blocks += [Line(f"  at {origin.element}")] if origin.element else []
            blocks += [Line("  {}, line {}: {}".format(*origin.source))] if origin.source else []
            blocks.append(Line())
        blocks += [] if self.origins else [Line(self.title, BOLD)]
        return laid_out([*blocks, *map(Line, self.notes())], width, colour).rstrip()

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<NanReport of {self.name}: {self.title}>"

    def _repr_html_(self) -> str:
        return f"<div><p><b>{escape(self.title)}</b></p>{self._told()}</div>"

    def html(self) -> str:
        """Return the report as a self-contained page."""
        from .html import page
        return page(f"Where the NaN came from: {self.name}" if not self.finite else f"No NaN: {self.name}",
                    f"<main>\n<h1>{escape(self.title)}</h1>\n{self._told()}\n</main>", STYLE)

    def _told(self) -> str:
        """Write the origins, the first of them under the title, and the notes."""
        sections = [_section(origin, headed=i > 0) for i, origin in enumerate(self.origins)]
        return "".join([*sections, *[f"<p>{escape(note)}</p>" for note in self.notes()]])

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, or the text if its name ends in .txt; returns its path."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{self.text()}\n" if path.suffix == ".txt" else self.html(), encoding="utf-8")
        return path


# ── the search ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Search:
    """Searches a tape in the order of execution, on whole arrays, since texts of large ones show their corners only."""

    def __init__(self, tape: Tape, teller: Teller, root: Any, start: Any) -> None:
        self.tape, self.teller, self.root, self.start = tape, teller, root, start
        self.bad = {place: badness(value) for place, value in tape.values.items()}

    def origins(self) -> list[Origin]:
        """Return the first culprit; also that of the backward, if the loss is finite."""
        found = [origin] if (origin := self.forward()) is not None else []
        if not self.bad.get(self.root) and (origin := self.back()) is not None:
            found.append(origin)
        return found

    def forward(self) -> Origin | None:
        """Return the first step of the forward that is a culprit.

        A program may have put in an infinity itself through an unknown input, as masks do: such a step counts only if
        the loss is not finite and no other step explains that.
        """
        doubtful = None
        for step in self.teller.forward():
            inputs = self.inputs(step.node)
            for name, value in inputs.items():
                if badness(value) == NAN and not self.made(step.node, name):
                    return self.entered(name, value, step)
            made = max([self.bad.get(place, 0) for place in step.places])
            if not made:
                continue
            before = max([badness(value) for value in inputs.values()], default=0)
            if made > before:
                origin = self.at(step, inputs, made, before)
                if origin.certain or made == NAN:
                    return origin
                doubtful = doubtful or origin
        return doubtful if self.bad.get(self.root) else None

    def inputs(self, node: Any) -> dict[str, Any]:
        """Return {name in the formula: tensor, array or number} of inputs (None if not kept) and float parameters."""
        given, found = self.tape.given[node], {}
        for o in self.tape.steps[node].inputs:
            if o.edge is not None:
                found[o.name] = self.tape.values.get(o.edge)
            elif o.position in given:
                if given[o.position] is not None:
                    found[o.name] = given[o.position]
            elif self.tape.steps[node].op is None or not self.tape.steps[node].op.composite:
                found[o.name] = None
        return (found | {n: v for n, v in (node.params or {}).items() if type(v) is float} if hasattr(node, "params")
                else found)

    def made(self, node: Any, name: str) -> bool:
        """Return True if an input is the result of a step."""
        edge = next((o.edge for o in self.tape.steps[node].inputs if o.name == name), None)
        return edge is not None and edge not in self.tape.leaves

    def labels(self, node: Any) -> dict[str, str]:
        """Return {name in the formula: the tensor's name} for a step's inputs."""
        given = self.tape.given[node]
        return {o.name: (self.teller.names[o.edge] if o.edge is not None
                         else self.teller.name(None, given.get(o.position))) or o.name
                for o in self.tape.steps[node].inputs}

    def entered(self, name: str, value: Any, step: ForwardStep) -> Origin:
        """Return the origin for a tensor, or a number, that was NaN before any step."""
        label = self.labels(step.node).get(name, name)
        index, count = first_bad(value)
        who = label if label != name else f"The input {name} of {step.op}"
        made = (f"{who} held NaN from the beginning{f', {count}' if count else ''}: it goes into {step.op}, and no "
                f"operation made it")
        element = f"{label}{index} = {element_text(value)}" if index else ""
        return Origin("input", step.op, made, (), (label, (), Value.of(value)), element, step.source, True, step.node)

    def at(self, step: ForwardStep, inputs: Mapping[str, Any], made: int, before: int) -> Origin:
        """Return the origin for a step of the forward."""
        at = next(i for i, place in enumerate(step.places) if self.bad.get(place, 0) == made)
        array, label = host(self.tape.values[step.places[at]]), self.teller.names[step.places[at]]
        labels, known = self.labels(step.node), all(value is not None for value in inputs.values())
        words = f"{step.op} made {kind(array)} from {'an infinity' if before else 'finite numbers'}"
        if not known:
            words = f"{step.op} is the first step whose result is known to hold {kind(array)}"
        rows = {labels.get(name, name): Value.of(value) if value is not None else "not kept"
                for name, value in inputs.items()}
        op = self.tape.steps[step.node].op
        element = elementwise(op, self.teller.formulas[step.node].forward if op is not None else "", inputs, labels,
                              label, array)
        return Origin("forward", step.op, f"{words}: {share_of(array, label)}", tuple(rows.items()),
                      (label, (step.expression, step.worked), Value.of(array)), element, step.source, known, step.node)

    def back(self) -> Origin | None:
        """Return the first step of the backward that is a culprit."""
        expressions: dict[Any, str] = {}
        if badness(self.start):
            return Origin("input", "", f"The gradient that the backward starts from holds {kind(host(self.start))}", (),
                          (f"∂L/∂{self.teller.names[self.root]}", (), Value.of(self.start)), "", None, True, self.root)
        for number, step in enumerate(self.tape.back, 1):
            coming = max([badness(g) for g in step.incoming if g is not None], default=0)
            for i, share in enumerate(step.shares):
                made, summed = badness(share.gradient), badness(share.total)
                if max(made, summed) > max(coming, badness(share.before)):
                    expressions = expressions or {s.node: s.expression for s in self.teller.forward()}
                    return self.at_back(self.teller.step_back(number, step, expressions[step.node]), step, i, made)
        return None

    def at_back(self, told: BackwardStep, step: Any, i: int, made: int) -> Origin:
        """Return the origin for a backward step: its rule or, if that `made` nothing bad, the sum of gradients."""
        share, gives = step.shares[i], told.gives[i]
        array, name = host(share.gradient if made else share.total), f"∂L/∂{gives.target}"
        rows = [(n, v) for n, v in told.incoming if v is not None] + list(told.rows)
        reading, g = self.tape.steps[step.node], step.incoming[0]
        numbers = {o.name: o.value for o in reading.asked.values() if not o.stale and o.value is not None} | {"g": g}
        before = any(badness(v) for v in numbers.values())
        element, parts = "", tuple[str, ...]((gives.named, gives.worked))
        if made:
            labels = {o.name: self.teller.name(o.edge, o.value) or o.name for o in reading.asked.values()}
            element = (elementwise(reading.op, gives.rule, numbers, labels, name, array)
                       if array.shape == np.shape(host(g)) else "")
        else:
            parts = ("a sum of two gradients",)
            rows = [(f"{name} before", gives.before), (f"{name} from here", gives.value)]       # type: ignore[list-item]
        words = (f"The backward of {told.op} made {kind(array)} from "
                 f"{'an infinity of the forward' if before and made else 'finite numbers'}")
        return Origin("back", told.op, f"{words}: {share_of(array, name)}", tuple(rows), (name, parts, Value.of(array)),
                      element, told.source, True, step.node)


# ── arrays that are not finite ────────────────────────────────────────────────────────────────────────────────────────


def badness(value: Any) -> int:
    """NAN if an array or a number holds one, INFINITE if it holds an infinity, 0 if all of it is finite.

    >>> import numpy as np
    >>> badness(np.array([1., np.inf])), badness(float("nan")), badness(np.arange(3)), badness(None)
    (1, 2, 0, 0)
    """
    if value is None or type(value) in (int, bool, str):
        return 0
    if type(value) is float:
        return NAN if isnan(value) else 0 if isfinite(value) else INFINITE
    array = host(value)
    if array.dtype.kind not in "fc" or np.isfinite(array).all():
        return 0
    return NAN if np.isnan(array).any() else INFINITE


def kind(array: Any) -> str:
    """Return "a NaN" or "an infinity", for an array that is not finite."""
    return "a NaN" if badness(array) == NAN else "an infinity"


def worst(array: Any) -> Any:
    """Return the index of the first NaN or, without one, of the first infinity."""
    bad = np.isnan(array) if badness(array) == NAN else ~np.isfinite(array)
    return np.unravel_index(int(np.argmax(bad)), array.shape)


def first_bad(value: Any) -> tuple[str, str]:
    """Return where an array is not finite: '[1, 2]' and '3 of 8 elements'; nothing for a single number.

    >>> import numpy as np
    >>> first_bad(np.array([1., np.nan]))
    ('[1]', '1 of 2 elements')
    """
    array = host(value)
    if not array.shape:
        return "", ""
    count = int((~np.isfinite(array)).sum())
    return f"[{', '.join(map(str, worst(array)))}]", f"{count:,} of {array.size:,} elements"


def share_of(array: Any, name: str) -> str:
    """Return which part of an array is not finite: '3 of 8 elements of v1', or the name of a single number."""
    _, count = first_bad(array)
    return f"{count} of {name}" if count else name


def element_text(value: Any) -> str:
    """Return the first element of an array that is not finite, as text."""
    array = host(value)
    return short(array[worst(array)])


def elementwise(op: Any, formula: str, inputs: Mapping[str, Any], labels: Mapping[str, str], name: str,
                array: Any) -> str:
    """Work out the first bad element of an elementwise op's result; '' for other ops and single numbers."""
    if op is None or not op.elementwise or not array.shape:
        return ""
    at = worst(array)
    index, numbers = f"[{', '.join(map(str, at))}]", {}
    for key, value in inputs.items():
        element = host(value) if value is not None else None
        if (element is None or element.ndim > array.ndim
                or any(n not in (1, m) for n, m in zip(element.shape[::-1], array.shape[::-1]))):
            return ""
        numbers[key] = Value(np.broadcast_to(element, array.shape)[at])
    shown = [f"{labels.get(key, key)} = {value.number}" for key, value in numbers.items()]
    computed = worked(formula, numbers)
    return f"{index}, where {', '.join(shown)}: {f'{computed} = ' if computed else ''}{short(array[at])}"


# ── the page ──────────────────────────────────────────────────────────────────────────────────────────────────────────

STYLE = """
main { max-width: 56rem; margin: 0 auto; padding: 1.2rem 1rem; }
main h1 { font-size: 1.2rem; margin-bottom: .8rem; }
section { border: 1px solid var(--rule); border-left: 4px solid var(--warm); border-radius: 7px; background: var(--raised);
  padding: .6rem 1rem; margin-bottom: 1rem; }
section h2 { font-size: 1rem; margin: .2rem 0 .4rem; }
section p { margin: .4rem 0; }
section table { border-collapse: collapse; font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .875rem; }
section th, section td { text-align: left; vertical-align: top; font-weight: normal; padding: .15rem .8rem .15rem 0; overflow-wrap: anywhere; }
section tr.bad { color: var(--warm); font-weight: 650; }
pre { overflow: auto; margin: .4rem 0; }
"""  # noqa: E501


def _section(origin: Origin, headed: bool) -> str:
    name, parts, value = origin.result
    result = " = ".join([part for part in (*parts, _numbers(value)) if part])
    rows = "".join(f'<tr><th scope="row">{escape(n)}</th><td>= {escape(_numbers(v))}</td></tr>' for n, v in origin.rows)
    rows += f'<tr class="bad"><th scope="row">{escape(name)}</th><td>= {escape(result)}</td></tr>'
    element = f"<p>At {escape(origin.element)}</p>" if origin.element else ""
    source = ("<p>{}, line {}:</p><pre><code>{}</code></pre>".format(*map(escape, origin.source)) if origin.source
              else "")
    head = f"<h2>{escape(origin.made)}</h2>" if headed else ""
    return f"<section>{head}<table>{rows}</table>{element}{source}</section>"


def _numbers(value: Value | str) -> str:
    if not isinstance(value, Value):
        return value
    return value.text(200) + (f"  ({shape_text(value.shape)})" if not value.whole else "")
