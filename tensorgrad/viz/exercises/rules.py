"""Check formulas for the rule of a step by finite differences, at numbers other than those that are shown."""
from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..expression_trees import definition
from ..program import Builder
from ..step_texts import BackwardStep
from .grammar import FUNCTIONS, Unread, computed, fitting, parsed
from .questions import Question
from .sheet import Line

NAME = re.compile(r"[^\W\d][\w.]*")


class Rules:
    """Checks formulas for the rule of a line against central differences, at three points near the shown numbers."""

    def __init__(self, recorded: Any) -> None:
        self.builder = Builder(recorded)
        # by line: numbers for its letters, and the gradient that its rule should give
        self.places: dict[str, list[tuple[dict[str, Any], Any]]] = {}
        for step in recorded.steps:
            self.builder.forward(step)

    def question(self, line: Line) -> Question | None:
        """Return the question about the rule of a line; None if no rule is found for it."""
        taken = [entry for entry in self.builder.taken if entry[0].number in line.numbers]
        if len(taken) != 1 or taken[0][0].op.several:
            return None
        step, written, _ = taken[0]
        letters, others = self.letters(line.step, written), []
        out = self.builder.found.names.get(step.results[0], "")
        names = ("g", *dict.fromkeys([*letters.values(), out]))
        if any(np.asarray(taken[0][2].get(name)).dtype.kind != "f" for name in letters):
            return None
        if (not letters or not all(map(NAME.fullmatch, names)) or set(names) & set(FUNCTIONS)
                or "g" in (*letters.values(), out)):
            return None
        others = ([name for name in letters.values() if name != line.target]
                  + [str(abs(v)) for _, (kind, v) in written["inputs"]
                     if kind == "is"
                     and isinstance(v, (int, float))
                     and type(v) is not bool])
        question = Question("", "rule", line, "", names=names, letters=letters)
        found = fitting(line.target, others or [line.target], out, lambda text: self.right(question, text))
        return None if found is None else question._replace(answer=found)

    def letters(self, back: BackwardStep, written: Any) -> dict[str, str]:
        """Return {parameter of the op: the tensor's name} for all inputs that are arrays; empty if one has no name."""
        given, found = {g.name: g.tensor or g.name for g in back.given}, {}
        for name, (kind, value) in written["inputs"]:
            if kind == "place":
                found[name] = self.builder.found.names.get(value, "")
            elif kind == "constant":
                found[name] = given.get(name, name)
        return found if all(found.values()) else {}

    def right(self, question: Question, text: str) -> bool:
        """Return True if the text is the rule. Errors: Unread if it is no formula."""
        tree = parsed(text, question.names)
        if question.line.key not in self.places:
            self.places[question.line.key] = [self.place(question, turned, seed)
                                              for seed, turned in enumerate((True, True, False))]
        for values, truth in self.places[question.line.key]:
            try:
                with np.errstate(all="ignore"):
                    got = broadcast(computed(tree, values), truth.shape)
            except Unread:
                return False
            if got is None or not np.allclose(got, truth, rtol=1e-5,
                                              atol=1e-6 * max(1.0, np.max(np.abs(truth), initial=0))):
                return False
        return True

    def place(self, question: Question, turned: bool, seed: int) -> tuple[dict[str, Any], Any]:
        """Return other numbers for the letters of a rule, and the gradient that it should give.

        `turned` flips some signs, to test both sides of a corner, unless the gradient is not finite there.
        """
        step, written, arguments = next(entry for entry in self.builder.taken
                                        if entry[0].number in question.line.numbers)
        target = next(name for name, (kind, value) in written["inputs"]
                      if kind == "place" and value == question.line.place)
        rng, result = np.random.default_rng(seed), step.results[0]
        letters = {letter: np.asarray(arguments[name], dtype=np.float64) for name, letter in question.letters.items()}
        letters = {letter: x * rng.uniform(0.8, 1.2, x.shape) for letter, x in letters.items()}
        g = rng.uniform(0.5, 1.5, np.shape(self.builder.values[result]))
        for signs in (turned, False):
            at = {letter: x * rng.choice([-1.0, 1.0], x.shape) if signs else x for letter, x in letters.items()}
            truth, value = slope(step.op, arguments | {name: at[letter] for name, letter in question.letters.items()},
                                 target, g)
            if np.all(np.isfinite(truth)):
                break
        return {self.builder.found.names.get(result, ""): value} | at | {"g": g}, truth


def slope(op: Any, arguments: dict[str, Any], name: str, g: Any) -> tuple[Any, Any]:
    """Return Σ g · ∂op/∂input by central differences, and the value of the op."""
    x = arguments[name]
    found = np.zeros(x.shape)

    def value(at: Any) -> Any:
        return np.asarray(definition(op, arguments | {name: at}).value)
    for place in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[place] = h = 1e-5 * max(1.0, abs(float(x[place])))
        with np.errstate(all="ignore"):
            found[place] = np.sum(g * (value(x + step) - value(x - step))) / (2 * h)
    return found, value(x)


def broadcast(got: Any, shape: tuple[int, ...]) -> Any:
    """Sum a formula's value over the axes that `shape` lacks, then broadcast it to `shape`; None if it does not fit."""
    while got.ndim > len(shape):
        got = got.sum(0)
    for axis, n in enumerate(shape[len(shape) - got.ndim:]):
        got = got.sum(axis, keepdims=True) if n == 1 != got.shape[axis] else got
    try:
        return np.broadcast_to(got, shape)
    except ValueError:
        return None


__all__ = ["Rules"]
