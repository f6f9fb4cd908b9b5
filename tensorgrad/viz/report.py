"""An explanation as text for the terminal."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .step_texts import NOT_KEPT, UNKNOWN
from .text import BLUE, BOLD, DIM, ORANGE, Block, Equation, Line, laid_out


def text(explanation: Any, width: int = 100, most: int | None = 60, colour: bool = False) -> str:
    """An explanation as text of so many columns."""
    count, name = len(explanation.steps), explanation.name
    value = "" if explanation.value is None else f" = {explanation.value.text(30)}"
    start = explanation.start.text(40)
    digits = len(str(max(count, len(explanation.forward))))
    lead = " " * (digits + 4)
    blocks: list[Line | Block] = [
        Line(f"Backprop of {name}{value} in {count} step{'s' * (count != 1)}", BOLD), Line(),
        Line("Forward", BOLD), _forward(explanation, digits, most)]
    if any(UNKNOWN in step.expression for step in explanation.forward):
        blocks.append(Line(f"{lead}({UNKNOWN} {NOT_KEPT})", DIM))
    blocks += [Line(), Line(f"Back, from ∂L/∂{name} = {start}{f', with L = {name}' * (name != 'L')}", BOLD)]
    for part in _some(explanation.steps, most, lambda step: _back(step, digits)):
        blocks += [part] if isinstance(part, Line) else part
    arrived = _some(explanation.leaves, most, lambda leaf: _arrived(leaf, lead))
    blocks += [Line(), Line("Arrived", BOLD), Block(arrived, [f"{leaf.name}.grad" for leaf in explanation.leaves], 40)]
    return laid_out(blocks, width, colour)


def _forward(explanation: Any, digits: int, most: int | None) -> Block:
    def given(leaf: Any) -> Equation:
        return Equation(" " * (digits + 4), leaf[0], (), leaf[1] or "not known any more", BLUE)

    def made(step: Any) -> Equation:
        values = step.values
        several = None if None in values else ", ".join(v.text(30) for v in values) if len(values) > 1 else ""
        value = values[0] if len(values) == 1 else several
        lead = f"  {step.number:>{digits}}  "
        return Equation(lead, step.result, (step.expression, step.worked), value, BLUE, _source(step))

    names = [name for name, _, _ in explanation.given] + [step.result for step in explanation.forward]
    return Block(_some(explanation.given, most, given) + _some(explanation.forward, most, made), names, 24)


def _back(step: Any, digits: int) -> list[Line | Block]:
    lead, nothing = " " * (digits + 4), "0, since nothing comes back"
    rows: list[Line | Equation] = [Equation(lead, name, (), value or nothing, ORANGE) for name, value, _ in step.needed]
    rows += [Equation(lead, name, (), value, BLUE) for name, value in step.rows]
    names = [name for name, _ in step.rows] + [f"∂L/∂{told.target}" for told in step.gives]
    for told in step.gives:
        name = f"∂L/∂{told.target}" if told.before is None else f"∂L/∂{told.target} +"
        rows.append(Equation(lead, name, (told.named, told.worked), told.value, ORANGE))
        if told.before is not None:
            names.append(name)
            rows.append(Equation(lead, "", ((told.before, told.value),), told.total, ORANGE))
    head = Line(f"  {step.number:>{digits}}  {step.op}:  {step.result} = {step.expression}{_source(step)}", BOLD)
    hooked = [Line(f"{lead}(backward would call hooks here, which may change the gradient)")] * step.hooked
    return [head, Block(rows, names, 30), *hooked]


def _arrived(leaf: Any, lead: str) -> Equation:
    before = "" if leaf.before is None else f" (to be added to {leaf.before.text(20)})"
    return Equation(lead, f"{leaf.name}.grad", (), leaf.gradient, ORANGE, before)


def _source(step: Any) -> str:
    return f"    {step.source[0].rpartition('/')[2]}:{step.source[1]}" if step.source else ""


def _some(items: list[Any], most: int | None, row: Callable[[Any], Any]) -> list[Any]:
    """The rows of all items, or of the first and the last, with a line between on what is left out."""
    if most is None or len(items) <= most:
        return list(map(row, items))
    last = most // 4
    note = Line(f"     … {len(items) - most} more: text(most=None) shows all, and steps[i] one …")
    return [*map(row, items[:most - last]), note, *map(row, items[len(items) - last:])]
