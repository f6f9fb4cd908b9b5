"""An explanation as a program that pages run again with other numbers: what it starts from, its steps forward, and the
rules back.

    {"able": True, "root": "4", "start": array, "names": {"0": "x", …},
     "leaves": [{"name": "x", "place": "0", "value": array}], "constants": {"c0": array},
     "steps": [{"number": 1, "op": "multiply", "inputs": [["a", ["place", "0"]], ["b", ["constant", "c0"]]], "outputs":
     ["out"],
                "results": ["4"], "value": tree, "locals": [[["d"], tree]], "rules": [{"target": "0", "shape": [3],
                "value": tree, "locals": []}]}]}

Places are the explanation's tensors, each before the next write in place; results and gradients are found by them
(`Explanation.keys` says which is which). Rules are those that explanations print; an op with none that can be evaluated
is written as the steps that define it, all with its number.
Constants of the tape stay constants: random numbers, and masks and places that the program computed from leaves without
    a gradient.
Trees are those of `expression_trees`, arrays those of its `packed`. A program that cannot be run is {"able": False,
"why": "…"}.
"""
from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..core.tape import Output
from ..ops.base import input_name
from .decomposition import Step, primitives
from .expression_trees import Formula, Unable, argument_names, copied, definition, packed, plain
from .inferred_values import known_values, unseen
from .tape import Tape
from .textbook_gradients import RULES
from .torch_names import title

MOST = 4000             # numbers that a program may compute, forward
OPTIONAL = {"convolution": "b", "convolution_input": "b"}      # inputs that may be left out, of which steps say nothing
# what is computed here and what was explained differ by less, as float32 and double precision do
CLOSE = 1e-3


class Recorded(NamedTuple):
    """The parts of a program, copied: later writes to the tensors do not reach them."""

    root: str
    start: Any
    names: dict[str, str]
    leaves: dict[str, Any]
    steps: list[Step]
    values: dict[str, Any]              # of the results that the tape has
    seen: dict[str, Any]                # of those that are seen through later steps, up to rounding
    gradients: dict[str, Any]           # that reached the leaves


def program(explanation: Any) -> dict[str, Any]:
    """The program behind an `Explanation`, which JSON can write; {"able": False, "why": …} if it has none.

    None have: programs of more than a few thousand numbers, complex or half-precision numbers, custom functions, ops
        without an evaluable formula,
    values that the tape did not keep.

    >>> import tensorgrad as torch
    >>> from tensorgrad.viz import explain
    >>> x = torch.tensor(3., requires_grad=True)
    >>> made = program(explain(x * x))
    >>> made["steps"][0]["op"], made["steps"][0]["rules"][0]["value"]
    ('multiply', ['call', 'multiply', [['name', 'g'], ['name', 'b']], {}])
    """
    found = explanation.recorded
    if isinstance(found, str):
        return {"able": False, "why": found}
    try:
        return Builder(found).program()
    except Unable:
        try:                # by definitions: printed rules are of the ordinary case
            return Builder(found, taught={}).program()
        except Unable as error:
            return {"able": False, "why": str(error)}


# ── what is kept of a tape ────────────────────────────────────────────────────────────────────────────────────────────


def places(tape: Tape) -> dict[Any, str]:
    """{place on the tape: its key in the program}, in the order of time."""
    whole = {node: str(i) for i, node in enumerate(node for node in tape.nodes if type(node) is not Output)}
    return whole | {node: f"{whole[node.node]}.{node.index}" for node in tape.nodes if type(node) is Output}


def recorded(tape: Tape, names: Mapping[Any, str], root: Any, start: Any) -> Recorded | str:
    """Return the parts of a tape's program, or the reason why there is none."""
    count = 0
    for node in tape.nodes:
        several = type(getattr(node, "dtype", None)) is tuple
        count += 0 if type(node) is Output else sum(map(prod, node.shape)) if several else prod(node.shape)
        if count > MOST:
            return f"it computes more than {MOST} numbers"
    keys = places(tape)
    try:
        leaves = {}
        for leaf in tape.leaves:
            if leaf not in tape.values:
                raise Unable(f"the values of {names[leaf]} are gone, or were written over since")
            leaves[keys[leaf]] = copied(tape.values[leaf])
        known = known_values(tape)
        steps = [step_of(number, node, step, tape.given[node], keys)
                 for number, (node, step) in enumerate(tape.steps.items(), 1)]
        gradients = {keys[leaf]: copied(g) for leaf, g in tape.arrived.items()}
        values, seen = ({key: copied(known[place]) for place, key in keys.items()
                         if place in known and (place in tape.values) is kept}
                        for kept in (True, False))
        return Recorded(keys[root], copied(start), {keys[n]: name for n, name in names.items() if n in keys}, leaves,
                        steps, values, seen, gradients)
    except Unable as error:
        return str(error)


def step_of(number: int, node: Any, step: Any, given: Mapping[int, Any], keys: Mapping[Any, str]) -> Step:
    if step.op is None:
        raise Unable(f"{node.name().removesuffix('Backward')} is a function of the program's own")
    inputs: list[tuple[str, Any]] = []
    for o in step.inputs:
        if o.edge is not None:
            inputs.append(("place", keys[o.edge]))
        elif o.position in given:
            inputs.append(("value", copied(given[o.position])))
        elif step.op.composite or o.name in OPTIONAL.get(step.op.opname, ()):
            inputs.append(("value", None))
        else:
            inputs.append(("missing", o.name))
    own = keys[node]
    results = tuple(f"{own}.{i}" for i in range(len(node.shape))) if type(node.dtype) is tuple else (own,)
    params = dict(node.params or {})
    if "written" in params:             # the write was done already when the tape noted it; here it is done again
        params["written"] = False
    return Step(number, step.op, params, tuple(inputs), results, tuple(o.edge is not None for o in step.inputs))


# ── from what is kept to a program ────────────────────────────────────────────────────────────────────────────────────


class Builder:
    """Writes the steps as trees, and runs them on the way: so shapes are known, and whether the rules give what was
    explained.
    """

    def __init__(self, found: Recorded, taught: Mapping[str, Mapping[str, Any]] = RULES) -> None:
        self.found, self.taught = found, taught
        self.values: dict[str, Any] = dict(found.leaves)
        self.constants: dict[str, Any] = {}
        self.gradients: dict[str, Any] = {found.root: found.start}
        # each step as it is written, and its arguments
        self.taken: list[tuple[Step, dict[str, Any], dict[str, Any]]] = []

    def program(self) -> dict[str, Any]:
        found = self.found
        for step in found.steps:
            self.forward(step)
        for step, written, arguments in reversed(self.taken):
            self.back(step, written, arguments)
        self.check()
        leaves = [{"name": found.names.get(key, key), "place": key, "value": packed(value)}
                  for key, value in found.leaves.items()]
        return {"able": True, "root": found.root, "start": packed(found.start), "names": found.names, "leaves": leaves,
                "constants": {key: packed(value) for key, value in self.constants.items()},
                "steps": [written for _, written, _ in self.taken]}

    def forward(self, step: Step) -> None:
        arguments, inputs = self.inputs(step)
        try:
            formula = definition(step.op, arguments)
        except Unable as error:
            raise Unable(f"step {step.number}, {named(step)}: {error}") from None
        results = list(map(np.asarray, formula.value)) if step.op.several else [np.asarray(formula.value)]
        self.compare(step, results)
        if step.op.composite and any(wanted and not self.rule(step.op, i) for i, wanted in enumerate(step.wanted)):
            for part in primitives(step, formula):
                self.forward(part)
            return
        self.values.update(zip(step.results, results, strict=True))
        outputs = list(step.op.outputs or [f"out[{i}]" for i in range(len(results))]) if step.op.several else ["out"]
        written = {"number": step.number, "op": step.op.opname, "inputs": inputs, "outputs": outputs,
                   "results": list(step.results), "several": step.op.several, "value": formula.tree,
                   "locals": formula.locals, "rules": []}
        self.taken.append((step, written, arguments | dict(zip(outputs, results, strict=True))))

    def compare(self, step: Step, results: list[Any]) -> None:
        """Unable, unless what was computed is what the tape has of it."""
        if len(results) != len(step.results):
            raise Unable(f"step {step.number}, {named(step)} has {len(results)} results")
        for key, result in zip(step.results, results, strict=True):
            expected = self.found.values.get(key)
            if result.dtype.kind not in "fiub" or expected is not None and not close(result, expected):
                raise Unable(f"step {step.number}, {named(step)}: the formula, as read, does not give its result")

    def inputs(self, step: Step) -> tuple[dict[str, Any], list[Any]]:
        """The values of a step's arguments, by their names in its formulas; and where a program finds those that are no
        options.
        """
        op = step.op
        values: list[Any] = [self.values[value] if kind == "place" else value if kind == "value" else None
                             for kind, value in step.inputs]
        missing = [i for i, (kind, _) in enumerate(step.inputs) if kind == "missing"]
        for i in missing:
            try:
                result = self.found.values.get(step.results[0], self.found.seen.get(step.results[0]))
                values[i] = unseen(op.opname, i, values, step.params, result if len(missing) == 1 else None)
            except Unable:
                raise Unable(f"the tape does not keep {step.inputs[i][1]} of {named(step)}") from None
        references = [["place", value] if kind == "place" else self.constant(v)
                      for (kind, value), v in zip(step.inputs, values, strict=True)]
        arguments: dict[str, Any] = dict(op.parameters) | step.params
        group = op.inputs[-1] if op.arity is None else None
        single = len(op.inputs) - (group is not None)
        names = [*op.inputs[:single], *[f"{group}[{i}]" for i in range(len(values) - single)]]
        arguments |= (dict(zip(op.inputs[:single], values[:single], strict=True))
                      | ({group: list(values[single:])} if group else {}))
        arguments |= {f"{name}_shape": np.shape(value) for name, value in zip(op.inputs[:single], values, strict=False)}
        arguments |= {f"{group}_shapes": tuple(map(np.shape, values[single:]))} if group else {}
        return arguments, [list(pair) for pair in zip(names, references, strict=True)]

    def constant(self, value: Any) -> list[Any]:
        """Where a program finds a value that no gradient reaches."""
        if not isinstance(value, np.ndarray):
            return ["is", plain(value)]
        key = f"c{len(self.constants)}"
        self.constants[key] = value
        return ["constant", key]

    def back(self, step: Step, written: dict[str, Any], arguments: dict[str, Any]) -> None:
        """The rules of a step, and what they give."""
        op = step.op
        if not any(result in self.gradients for result in step.results):
            return
        incoming = [self.gradients.get(r, np.zeros(np.shape(self.values[r]))) for r in step.results]
        arguments = arguments | {"g": incoming if op.several else incoming[0]}
        given: list[tuple[str, Any]] = []
        for position, ((_, target), wanted) in enumerate(zip(step.inputs, step.wanted, strict=True)):
            name, function = input_name(op, position), self.rule(op, position)
            if not wanted or function is None:
                continue
            own = arguments | {"position": position - op.inputs.index(name)}
            asked = ("g", *argument_names(function))
            try:
                formula = Formula(function, {k: v for k, v in own.items() if k in asked})
            except Unable as error:
                raise Unable(f"step {step.number}, {named(step)}, the gradient of {name}: {error}") from None
            shape = np.shape(self.values[target])
            written["rules"].append({"target": target, "input": name, "shape": list(shape), "value": formula.tree,
                                     "locals": formula.locals})
            given.append((target, fitted(np.asarray(formula.value), shape)))
        for target, gradient in given:
            self.gradients[target] = self.gradients[target] + gradient if target in self.gradients else gradient

    def rule(self, op: Any, position: int) -> Any:
        """The function whose formula is the gradient of an input, or None."""
        name = input_name(op, position)
        return self.taught.get(op.opname, {}).get(name) or getattr(op, f"grad_{name}", None)

    def check(self) -> None:
        """Unable, unless the rules give what was explained."""
        largest = max([np.max(np.abs(g), initial=0, where=np.isfinite(g)) for g in self.gradients.values()])
        for key, expected in self.found.gradients.items():
            got = self.gradients.get(key)
            if got is None or not close(got, expected, largest):
                raise Unable(f"the rules, as read, do not give the gradient of {self.found.names.get(key, key)}")


def named(step: Step) -> str:
    return title(step.op.opname, step.params)


def close(got: Any, expected: Any, largest: float = 0.0) -> bool:
    """Return True if numbers differ by no more than the rounding of single precision, with numbers as large as
    `largest` on the way.
    """
    scale = 1e-6 + 1e-3 * largest + np.max(np.abs(expected), initial=0, where=np.isfinite(expected))
    with np.errstate(invalid="ignore"):
        return (got.shape == expected.shape
                and bool(np.allclose(got, expected, rtol=CLOSE, atol=CLOSE * scale, equal_nan=True)))


def fitted(gradient: Any, shape: tuple[int, ...]) -> Any:
    """A gradient summed over the axes along which its input was broadcast."""
    lead = gradient.ndim - len(shape)
    axes = (*range(lead), *(i + lead for i, n in enumerate(shape) if n == 1 != gradient.shape[i + lead]))
    return (np.broadcast_to(gradient.sum(axis=axes, keepdims=True), (1,) * lead + shape).reshape(shape) if lead >= 0
            else gradient)


__all__ = ["MOST", "places", "program", "recorded"]
