"""The pictures of a lesson: what the reader sees at each place of the slider, in words and numbers, and what the exercise asks."""
from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

from .telling import NOT_KEPT, UNKNOWN
from .text import Value, escape, shape_text, short

BLANKS = 9         # arrays of so many elements have a blank for each; of larger ones, the first and the last are asked for


class Frame(NamedTuple):
    """One place of the slider. `nodes` and `ways` (from, to) are places on the tape that light up; `values` and `gradients` are learnt here."""

    phase: str                               # "forward", "back", or "" at the beginning and the end
    label: str
    body: str
    nodes: list[Any]
    ways: list[tuple[Any, Any]]
    values: list[tuple[Any, str]]
    gradients: list[tuple[Any, str, str]]    # (place, text, the blank that hides it)


class Writer:
    """Writes the frames, one after the other. In an exercise, the gradients that the reader is to find are blanks, and stay hidden until found."""

    def __init__(self, explanation: Any, exercise: bool) -> None:
        self.explanation, self.exercise = explanation, exercise
        self.blank_of: dict[Any, str] = {}          # the blank whose answer is the gradient that waits at a place of the tape
        self.blanks = 0

    def frames(self, forward: list[Any], back: list[Any], given: list[Any], whole: bool) -> list[Frame]:
        found = self.explanation
        frames = [self.first(given, whole)]
        frames += [self.forward(step, len(found.forward)) for step in forward]
        frames.append(self.turn())
        frames += [self.back(step, len(found.steps)) for step in back]
        return [*frames, self.last(whole)] if whole else frames

    def first(self, given: list[Any], whole: bool) -> Frame:
        rows = "".join(f"<dt>{escape(name)}</dt><dd>{_value(value)}</dd>" for name, value, _ in given[:40])
        more = f"<p>… and {len(given) - 40} more.</p>" if len(given) > 40 else ""
        told = "" if whole else "<p>The graph is long: this page shows the steps next to the loss.</p>"
        body = f"<h2>Where it begins</h2><p>These need a gradient:</p><dl>{rows}</dl>{more}{told}"
        return Frame("", "the leaves", body, [n for *_, n in given], [], [(n, value.text(18)) for _, value, n in given if value is not None], [])

    def forward(self, step: Any, count: int) -> Frame:
        values = [_value(v) for v in step.values if v is not None]
        lines = [escape(step.expression)] + ([escape(step.worked)] if step.worked else []) + (values if len(values) == len(step.values) else [])
        note = f'<p class="note">{UNKNOWN} {NOT_KEPT}</p>' if UNKNOWN in step.expression else ""
        body = f"<h2>{escape(step.op)}</h2>{equation(escape(step.result), lines)}{note}{_source(step)}"
        numbers = [(place, v.text(18)) for place, v in zip(step.places, step.values) if v is not None]
        ways = [(e, step.node) for e in step.node.edges if e is not None]
        return Frame("forward", f"forward, step {step.number} of {count}: {step.op}", body, [step.node], ways, numbers, [])

    def turn(self) -> Frame:
        found = self.explanation
        named = f" Call {escape(found.name)} L." if found.name != "L" else ""
        body = (f"<h2>Now back</h2><p>How does L change with each number that led to it?{named} It changes with itself one for one:</p>"
                f"{equation(f'∂L/∂{escape(found.name)}', [_value(found.start, 'gradient')])}")
        return Frame("back", "back, from the loss", body, [found.root], [], [], [(found.root, found.start.text(18), "")])

    def back(self, step: Any, count: int) -> Frame:
        given = [(name, self.hidden(value, self.incoming(step, i), "gradient")) for i, (name, value) in enumerate(step.incoming)]
        given += [(name, _value(value) if isinstance(value, Value) else escape(value)) for name, value in step.rows]
        rows = "".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in given)
        blocks, gradients = [], []
        for told in step.gives:
            before, waited = told.before, self.blank_of.get(told.node, "")
            inner = equation(f"∂L/∂{escape(told.target)}" + (" +" if before is not None else ""),
                             [escape(told.named), *self.worked(told, step)] + [self.answer(told.value, told.target)])
            if before is not None:
                hidden = [self.hidden(before, waited, "gradient"), self.hidden(told.value, self.blank() if self.exercise else "", "gradient")]
                inner += equation(f"∂L/∂{escape(told.target)}", [" + ".join(hidden), self.answer(told.total, told.target)])
            self.blank_of[told.node] = self.blank() if self.exercise else ""
            blocks.append(f'<div class="told">{inner}</div>')
            gradients.append((told.node, told.total.text(18), self.blank_of[told.node]))
        check = ('<p class="ask"><button type="button" class="check">Check</button> <button type="button" class="reveal">Reveal</button> '
                 '<span class="verdict" role="status"></span></p>') if self.exercise and step.gives else ""
        note = '<p class="note">backward would call a hook here, which may change the gradient.</p>' if step.hooked else ""
        rules = dict.fromkeys(f"∂L/∂{t.input} = {t.rule}" for t in step.gives if t.named != t.rule)
        rule = f'<p class="note rule">In general: {escape(", ".join(rules))}</p>' if rules else ""
        body = (f"<h2>{escape(step.op)}</h2><p class=\"of\">{escape(step.result)} = {escape(step.expression)}</p><dl>{rows}</dl>"
                f"{''.join(blocks)}{check}{note}{rule}{_source(step)}")
        return Frame("back", f"back, step {step.number} of {count}: {step.op}", body, [step.node], [(t.node, step.node) for t in step.gives], [], gradients)

    def last(self, whole: bool) -> Frame:
        leaves = self.explanation.leaves
        rows = "".join(f"<dt>{escape(leaf.name)}.grad</dt><dd>{self.hidden(leaf.gradient, self.blank_of.get(leaf.node, ''), 'gradient')}"
                       + (f" <small>(to be added to {_value(leaf.before)})</small>" if leaf.before is not None else "") + "</dd>" for leaf in leaves[:40])
        more = f"<p>… and {len(leaves) - 40} more.</p>" if len(leaves) > 40 else ""
        return Frame("", "what has arrived", f"<h2>What has arrived</h2><dl>{rows}</dl>{more}", [leaf.node for leaf in leaves], [], [], [])

    # ── the exercise ──────────────────────────────────────────────────────────────────────────────────────────────────

    def blank(self) -> str:
        """The name of the latest blank."""
        return f"b{self.blanks}"

    def incoming(self, step: Any, result: int) -> str:
        """The blank whose answer is the gradient of a step's result."""
        if not self.exercise:
            return ""
        place = step.node if type(step.node.dtype) is not tuple else step.places[result] if result < len(step.places) else None
        return self.blank_of.get(place, "")

    def worked(self, told: Any, step: Any) -> list[str]:
        """The rule with numbers in it; it would tell g before that is found."""
        if not told.worked:
            return []
        return [self.hidden(None, self.incoming(step, 0), "", escape(told.worked))]

    def hidden(self, value: Value | None, blank: str, kind: str, text: str = "") -> str:
        """A number, or a question mark until its blank is filled in."""
        text = text or (_value(value, kind) if value is not None else "0, for nothing comes back")
        return f'<span class="hidden" data-needs="{blank}"><span class="unknown">?</span><span class="known">{text}</span></span>' if blank else text

    def answer(self, value: Value, target: str) -> str:
        """A result, or blanks for it."""
        if not self.exercise:
            return _value(value, "gradient")
        self.blanks += 1
        label = f"∂L/∂{target}"
        if value.whole and value.elements <= BLANKS and len(value.shape) <= 2:
            rows = value.kept.reshape((-1, *value.shape[-1:])) if value.shape else value.kept.reshape(1, 1)
            cells = [[self.field(x, f"{label}, element {list(_place(value.shape, r, c))}" if value.shape else label) for c, x in enumerate(row)]
                     for r, row in enumerate(rows.tolist())]
            inner = "".join(f"<span class=\"row\">{''.join(row)}</span>" for row in cells)
        else:
            flat = value.kept.reshape(-1)
            ends = [self.field(flat[at].item(), f"{label}, the {name} element", name) for at, name in ((0, "first"), (-1, "last"))] if flat.size else []
            inner = " … ".join(ends) or "[]"
        return f'<span class="blank" data-blank="{self.blank()}" data-text="{escape(value.text(18))}">{inner}</span>'

    @staticmethod
    def field(number: Any, label: str, hint: str = "") -> str:
        answer = repr(number) if isinstance(number, float) and isfinite(number) else short(number).replace("−", "-")
        return (f'<input type="text" inputmode="text" autocomplete="off" spellcheck="false" size="7" placeholder="{hint}" aria-label="{escape(label)}" '
                f'data-answer="{escape(answer)}" data-shown="{escape(short(number))}">')


def equation(left: str, lines: list[str]) -> str:
    """left = line = line …, the equals signs under each other."""
    return '<div class="equation">' + "".join(f"<span>{left if i == 0 else ''}</span><span>=</span><span>{line}</span>"
                                              for i, line in enumerate(lines or ["…"])) + "</div>"


def _place(shape: tuple[int, ...], row: int, column: int) -> tuple[int, ...]:
    return (column,) if len(shape) == 1 else (row, column)


def _value(value: Value | None, kind: str = "value") -> str:
    if value is None:
        return "<i>not known any more</i>"
    shape = f' <small>{shape_text(value.shape)}</small>' if value.elements > BLANKS else ""
    if len(value.shape) != 2 or value.scalar or not value.elements:
        text = value.text(100)
        return f'<span class="{kind}">{escape(text)}</span>{shape * ("…" in text)}'
    rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in _cells(value))
    return f'<span class="{kind}"><table class="matrix"><tbody>{rows}</tbody></table></span>{shape}'


def _cells(value: Value) -> list[list[str]]:
    """A matrix as it is written, less its middle if it is large."""
    def ends(items: list[Any], n: int, most: int) -> list[Any]:
        corner = min(most // 2, len(items) // 2)
        return [*items[:corner], None, *items[-corner:]] if n > most else items
    rows, columns = value.shape
    kept = [ends([short(x) for x in row], columns, 4) for row in value.kept.tolist()]
    dots = ["⋮"] * len(kept[0])
    return [[cell or "…" for cell in row] if row is not None else dots for row in ends(kept, rows, 6)]


def _source(step: Any) -> str:
    if not step.source:
        return ""
    file, line, text = step.source
    return f'<p class="source"><code>{escape(text)}</code><br>{escape(file.replace(chr(92), "/").rpartition("/")[2])}, line {line}</p>'
