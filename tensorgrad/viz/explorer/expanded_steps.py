"""Steps that are opened: what an op is made of, forward and back, below its own rule.

The smallest first, as far as the page has room.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from ..program import program
from ..text import escape
from .frames import Frames
from .numbers import Numbers

ROOM = 700_000          # characters of all parts


class Part(NamedTuple):
    """A step's parts as HTML, what the script needs to compute them anew, and their arrays."""

    html: str
    data: dict[str, Any]
    numbers: Numbers


def parts(explanation: Any, back: list[Any]) -> dict[int, Part]:
    """{number of a step back: its parts}, of those that have some."""
    found = {}
    for i, step in enumerate(back):
        if isinstance(explanation.openable[i], str):
            continue
        try:
            inner = explanation.open(i)
        except ValueError:              # a single step
            continue
        if len(inner.steps) > 1:
            found[step.number] = part(explanation, i, inner)
    left, kept = ROOM, {}
    for number, one in sorted(found.items(), key=lambda item: size(item[1])):
        left -= size(one)
        if left >= 0:
            kept[number] = one
    return kept


def size(one: Part) -> int:
    """About how many characters the page gets longer by."""
    made = one.data["program"]
    return (len(one.html) + sum([4 * value.elements + 40 for value in one.numbers.arrays.values()])
            + (0 if made is None else len(str(made))))


def part(explanation: Any, index: int, inner: Any) -> Part:
    step, prefix = explanation.steps[index], f"o{index + 1}/"
    numbers = Numbers(inner, prefix)
    frames = Frames(inner, numbers, heading="h4")
    forward = "".join(f'<div class="part">{frames.forward(step).body}</div>' for step in inner.forward)
    back = "".join(f'<div class="part">{frames.back(step).body}</div>' for step in inner.steps)
    html = (f'<details class="parts" data-parts="{prefix}"><summary>{escape(step.op)} in {len(inner.steps)} '
            f'parts</summary><h3>Forward</h3>{forward}<h3>Back</h3>{back}</details>')
    names = {name: explanation.keys[place] for name, place, _ in explanation.openable[index].inputs
             if place in explanation.keys}
    leaves = {inner.keys[place]: names.get(name) for name, _, place in inner.given}
    made = program(inner) if len(step.incoming) == 1 and None not in leaves.values() else {"able": False}
    data = {"prefix": prefix, "program": made if made["able"] else None, "leaves": leaves,
            "start": explanation.keys[step.node], "rest": frames.rest}
    return Part(html, data, numbers)
