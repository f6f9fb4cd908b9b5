"""An explanation as text for the terminal, and as a table for Jupyter."""
from __future__ import annotations

import textwrap
from typing import Any

from .telling import NOT_KEPT, UNKNOWN
from .text import columns, escape
from .values import Value, shape_text

BLUE, ORANGE, BOLD, DIM = "34", "33", "1", "2"       # values, gradients


class Page:
    """Lines of limited width, in colour or not."""

    def __init__(self, width: int, colour: bool) -> None:
        self.width, self.colour, self.lines = max(width, 40), colour, list[str]()

    def paint(self, text: str, colour: str) -> str:
        return f"\033[{colour}m{text}\033[0m" if self.colour and text.strip() else text

    def line(self, text: str = "", colour: str = "") -> None:
        for part in textwrap.wrap(text, self.width, subsequent_indent=" " * 6, drop_whitespace=False) or [""]:
            self.lines.append(self.paint(part.rstrip(), colour) if colour else part.rstrip())

    def equation(self, left: str, parts: list[str], value: Value | str | None, colour: str = "", rest: str = "") -> None:
        """left = part = … = value, in one line if there is room, or in lines that begin with the equals sign."""
        room = self.width - columns(left) - 3
        shown = value.text(room) if isinstance(value, Value) else value
        parts = [p for p in [*parts, shown] if p]
        whole = " = ".join(parts) + rest
        if columns(whole) <= room:
            self.lines.append(f"{left} = {self.painted(whole, shown, colour)}")
            return
        for i, part in enumerate([*parts[:-1], parts[-1] + rest]):
            for k, piece in enumerate(textwrap.wrap(part, max(room, 20)) or [""]):
                lead = f"{left} = " if i == k == 0 else " " * columns(left) + (" = " if k == 0 else "   ")
                self.lines.append(lead + self.painted(piece, shown, colour))

    def painted(self, text: str, shown: str | None, colour: str) -> str:
        if not (colour and self.colour and shown and shown in text):
            return text
        head, _, tail = text.rpartition(shown)
        return head + self.paint(shown, colour) + tail


def text(explanation: Any, width: int = 100, most: int | None = 60, colour: bool = False) -> str:
    """An explanation as text of so many columns."""
    page = Page(width, colour)
    count = len(explanation.steps)
    value = f" = {explanation.value.text(30)}" if explanation.value is not None else ""
    page.line(f"Backprop of {explanation.name}{value} in {count} step{'s' * (count != 1)}", BOLD)
    page.line()
    page.line("Forward", BOLD)
    digits = len(str(max(count, len(explanation.forward))))
    wide = min(24, max([columns(name) for name, _, _ in explanation.given] + [columns(s.result) for s in explanation.forward], default=1))
    for name, given, _ in _some(explanation.given, most, page):
        page.equation(f"  {'':>{digits}}  {_left(name, wide)}", [], given or "not known any more", BLUE)
    for step in _some(explanation.forward, most, page):
        values: Any = step.values[0] if len(step.values) == 1 else None if None in step.values else ", ".join(v.text(30) for v in step.values)
        page.equation(f"  {step.number:>{digits}}  {_left(step.result, wide)}", [step.expression, step.worked], values, BLUE, _source(step))
    if any(UNKNOWN in step.expression for step in explanation.forward):
        page.line(f"  {'':>{digits}}  ({UNKNOWN} {NOT_KEPT})", DIM)
    page.line()
    page.line(f"Back, from ∂L/∂{explanation.name} = {explanation.start.text(40)}{f', with L = {explanation.name}' * (explanation.name != 'L')}", BOLD)
    for step in _some(explanation.steps, most, page):
        _step(page, step, digits)
    page.line()
    page.line("Arrived", BOLD)
    wide = min(40, max((columns(leaf.name) for leaf in explanation.leaves), default=1) + 5)
    for leaf in _some(explanation.leaves, most, page):
        page.equation(f"  {'':>{digits}}  {_left(leaf.name + '.grad', wide)}", [], leaf.gradient, ORANGE,
                      f" (to be added to {leaf.before.text(20)})" if leaf.before is not None else "")
    return "\n".join(page.lines)


def _step(page: Page, step: Any, digits: int) -> None:
    page.line(f"  {step.number:>{digits}}  {step.op}:  {step.result} = {step.expression}{_source(step)}", BOLD)
    indent = " " * (digits + 4)
    given = list(step.rows)
    targets = [f"∂L/∂{t.target}" for t in step.gives]
    sums = [f"{target} +" for target, t in zip(targets, step.gives) if t.before is not None]
    wide = min(30, max((columns(name) for name in [*(n for n, _ in given), *targets, *sums]), default=1))
    half = (page.width - len(indent) - wide - 6) // 2
    for name, value in step.incoming:
        page.equation(indent + _left(name, wide), [], value or "0, since nothing comes back", ORANGE)
    for name, value in given:
        page.equation(indent + _left(name, wide), [], value, BLUE)
    for target, told in zip(targets, step.gives):
        first = told.before is None
        page.equation(indent + _left(target if first else f"{target} +", wide), [told.named, told.worked], told.value, ORANGE)
        if not first:
            page.equation(indent + " " * wide, [f"{told.before.text(half)} + {told.value.text(half)}"], told.total, ORANGE)
    if step.hooked:
        page.line(f"{indent}(backward would call hooks here, which may change the gradient)")


def _left(text: str, width: int) -> str:
    return text + " " * (width - columns(text))


def _source(step: Any) -> str:
    return f"    {step.source[0].rpartition('/')[2]}:{step.source[1]}" if step.source else ""


def _some(items: list[Any], most: int | None, page: Page) -> Any:
    """All, or the first and the last, with a line on what is left out between."""
    if most is None or len(items) <= most:
        yield from items
        return
    last = most // 4
    yield from items[:most - last]
    page.line(f"     … {len(items) - most} more: text(most=None) shows all, and steps[i] one …")
    yield from items[len(items) - last:]


# ── the table ─────────────────────────────────────────────────────────────────────────────────────────────────────────

MOST = 200
HEAD = "<tr>" + "".join(f'<th style="text-align:left">{name}</th>' for name in ("", "step", "given", "rule", "gradient")) + "</tr>"


def table(explanation: Any) -> str:
    """An explanation as an HTML table, one row for each gradient that a step gives."""
    rows = []
    for step in explanation.steps[:MOST]:
        given = [(name, value) for name, value in step.incoming if value is not None]
        given += step.rows
        shown = "<br>".join(f"{escape(name)} = {_cell(value)}" for name, value in given)
        span = max(len(step.gives), 1)
        first = (f'<td rowspan="{span}">{step.number}</td><td rowspan="{span}" style="text-align:left"><b>{escape(step.op)}</b><br>'
                 f'{escape(step.result)} = {escape(step.expression)}</td><td rowspan="{span}" style="text-align:left">{shown}</td>')
        cells = [f'<td style="text-align:left">{escape(told.rule)}</td><td style="text-align:left">{_gradient(told)}</td>'
                 for told in step.gives] or ["<td></td><td></td>"]
        rows += [f"<tr>{first if i == 0 else ''}{cell}</tr>" for i, cell in enumerate(cells)]
    if len(explanation.steps) > MOST:
        rows.append(f'<tr><td colspan="5">… {len(explanation.steps) - MOST} more steps</td></tr>')
    value = f" = {_cell(explanation.value)}" if explanation.value is not None else ""
    return f"<table><caption>Backprop of {escape(explanation.name)}{value}</caption><thead>{HEAD}</thead><tbody>{''.join(rows)}</tbody></table>"


def _cell(value: Any) -> str:
    return escape(value.text(64) if isinstance(value, Value) else value)


def _gradient(told: Any) -> str:
    shape = f' <span style="opacity:.6">{shape_text(told.value.shape)}</span>' if "…" in _cell(told.value) else ""
    parts = [part for part in (told.named, told.worked) if part not in ("", told.rule)]
    left = f"∂L/∂{escape(told.target)} {'=' if told.before is None else '+='} "
    text = left + " = ".join([*map(escape, parts), _cell(told.value)]) + shape
    return text if told.before is None else f"{text}<br>{_cell(told.before)} + {_cell(told.value)} = {_cell(told.total)}"
