"""The lines of a backward that exercises ask about: for each step back and each tensor that it reaches, what the step gives and what has arrived since."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..telling import BackwardStep
from ..text import Value


class Line(NamedTuple):
    """What a step back gives to a tensor. `share` is the sum over the inputs that this tensor is, `before` what had arrived there (None: nothing)."""

    key: str                        # "step back.place"
    step: BackwardStep
    target: str                     # the tensor's name
    place: str                      # its key in the program
    numbers: tuple[int, ...]        # the step in the program
    rules: tuple[str, ...]
    worked: tuple[str, ...]
    share: Any
    before: Any
    total: Any


def lines(explanation: Any) -> list[Line]:
    """The lines of a backward, in the order in which the engine takes its steps."""
    found = []
    numbers = getattr(explanation, "numbers", {})
    forward = {step.node: step.number for step in explanation.forward}
    for step in explanation.steps:
        own = tuple(numbers.get(step.node, (forward[step.node],)))
        by_place: dict[str, list[Any]] = {}
        for told in step.gives:
            by_place.setdefault(explanation.keys[told.node], []).append(told)
        for place, gives in by_place.items():
            shares = [whole(told.value) for told in gives]
            before, total = gives[0].before, whole(gives[-1].total)
            if any(share is None for share in shares) or total is None:
                continue
            found.append(Line(f"{step.number}.{place}", step, gives[0].target, place, own, tuple(t.named for t in gives),
                              tuple(t.worked for t in gives if t.worked), sum(shares), None if before is None else whole(before), total))
    return found


def whole(value: Value) -> Any:
    """The numbers of a value, in double precision; None if only its corners were kept."""
    return np.array(value.kept, dtype=np.float64) if value.whole else None


__all__ = ["Line", "lines", "whole"]
