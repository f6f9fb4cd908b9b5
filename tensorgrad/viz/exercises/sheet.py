"""Lines of a backward that exercises ask about: the share of each step in a tensor's gradient, and the sum so far."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..step_texts import BackwardStep
from ..text import Value


class Line(NamedTuple):
    """Share of a backward step in the gradient of one tensor.

    `share` is the sum over all inputs of the step that are this tensor, `before` the gradient accumulated earlier, or
    None, and `total` their sum.
    """

    key: str                        # "step back.place"
    step: BackwardStep
    target: str                     # the tensor's name
    place: str                      # its key in the program
    numbers: tuple[int, ...]        # the step's numbers in the program
    rules: tuple[str, ...]
    worked: tuple[str, ...]
    share: Any
    before: Any
    total: Any


def lines(explanation: Any) -> list[Line]:
    """Return the lines of a backward, in the order of the engine's steps."""
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
            found.append(Line(f"{step.number}.{place}", step, gives[0].target, place, own,
                              tuple(t.named for t in gives),
                              tuple(t.worked for t in gives if t.worked), sum(shares),
                              None if before is None else whole(before), total))
    return found


def whole(value: Value) -> Any:
    """Return the numbers of a value in float64; None if only its corners were kept."""
    return np.array(value.kept, dtype=np.float64) if value.whole else None


__all__ = ["Line", "lines", "whole"]
