"""Backwards with one mistake in them, which all that follows is computed from."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..expression_trees import Unable
from ..program import Builder
from .sheet import Line

LEAST = 0.05        # a mistake changes a gradient by such a share of its size


class Shown(NamedTuple):
    """A backward as it is shown: for each line what has arrived, and which of them is wrong, with what should be there.

    The backward begins with `times` the gradient of the exercise.
    """

    totals: list[Any]
    wrong: int
    right: Any
    times: int


KINDS: dict[str, Callable[[Any, Any, Any], Any]] = {       # (before, share, g) → what is written as the new sum
    "sign": lambda before, share, g: before - share,
    "twice": lambda before, share, g: before + 2 * share,
    "half": lambda before, share, g: before + share / 2,
    "forgotten factor": lambda before, share, g: before + g if np.shape(g) == np.shape(share) else None,
    "forgotten sum": lambda before, share, g: share if np.any(before) else None,
    "turned": lambda before, share, g: before + share.T if share.ndim == 2 and share.shape[0] == share.shape[1]
    else None,
}


class Mistaken(Builder):
    """Goes back through a program, and makes a mistake at one step."""

    def __init__(self, found: Any, numbers: Sequence[int], place: str, mistake: Any) -> None:
        super().__init__(found)
        self.numbers, self.place, self.mistake = numbers, place, mistake
        self.totals: dict[tuple[int, str], Any] = {}        # what has arrived at a place after a step
        self.right: Any = None
        for step in found.steps:
            self.forward(step)
        taken = list(reversed(self.taken))
        for i, (step, written, arguments) in enumerate(taken):
            start = i == 0 or taken[i - 1][0].number != step.number
            before = dict(self.gradients) if start else before      # noqa: F821 – set where a step begins
            self.back(step, written, arguments)
            if i + 1 < len(taken) and taken[i + 1][0].number == step.number:
                continue
            if step.number == numbers[0]:
                self.spoil(before, step)
            self.totals |= {(step.number, key): g for key, g in self.gradients.items() if g is not before.get(key)}

    def spoil(self, before: dict[str, Any], step: Any) -> None:
        """Replace what has arrived by what the mistake makes of it."""
        old = before.get(self.place, np.zeros(np.shape(self.gradients[self.place])))
        self.right = self.gradients[self.place]
        made = self.mistake(old, np.asarray(self.right - old), self.gradients.get(step.results[0]))
        if made is not None and visible(np.asarray(made), self.right):
            self.gradients[self.place] = np.asarray(made)


def visible(made: Any, right: Any) -> bool:
    size = max(np.max(np.abs(right), initial=0), np.max(np.abs(made), initial=0))
    return (bool(np.all(np.isfinite(made))) and np.max(np.abs(made - right), initial=0) > LEAST * size
            and abs(made.sum() - right.sum()) > LEAST * size / 4)


def order(lines: Sequence[Line]) -> list[Line]:
    """The lines in the order in which a program goes back: the last step first."""
    return sorted(lines, key=lambda line: -line.numbers[0])


def mistaken(found: Any, times: int, lines: Sequence[Line], draw: Callable[[Sequence[Any]], Any],
             taken: set[int]) -> Shown | None:
    """The backward from `times` the gradient with a mistake at a line that is not `taken`; None if no mistake shows
    anywhere.
    """
    found = found._replace(start=found.start * times)
    places = [i for i, line in enumerate(lines) if i not in taken and len(line.numbers) == 1]
    kinds = list(KINDS)
    while places:
        at = draw(places)
        places.remove(at)
        line = lines[at]
        for _ in range(2 * len(kinds)):
            try:
                walk = Mistaken(found, line.numbers, line.place, KINDS[draw(kinds)])
            except Unable as error:
                raise ValueError(str(error)) from None
            totals = [walk.totals.get((other.numbers[0], other.place)) for other in lines]
            if any(total is None for total in totals):
                return None
            if np.any(totals[at] != walk.right) and all(np.all(np.isfinite(total)) for total in totals):
                return Shown(totals, at, walk.right, times)
    return None
