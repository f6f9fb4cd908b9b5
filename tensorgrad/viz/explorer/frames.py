"""Frames of the slider: the leaves, each step forward, the turn, each step back, and the gradients of the leaves."""
from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, NamedTuple

from ..step_texts import NOT_KEPT, UNKNOWN, Gives, Lettered, replaced
from ..text import Value, escape, script
from .markup import derivative, equation, in_numbers, number, typeset
from .numbers import Numbers

LEAVES = 40        # leaves that are listed


class Frame(NamedTuple):
    """A position of the slider.

    `nodes` and `ways` (from, to) of the tape light up; `values` and `gradients` become known here.
    """

    phase: str                               # "forward", "back", or "" at the beginning and the end
    label: str
    short: str                               # in the list of steps
    body: str
    nodes: list[Any]
    ways: list[tuple[Any, Any]]
    values: list[tuple[Any, str]]            # (place, key)
    gradients: list[tuple[Any, str, str]]    # (place, text, key)


class Frames:
    """Writes the frames of an explanation and registers their arrays with `numbers`.

    `parts` maps numbers of backward steps to HTML that is shown below them.
    """

    def __init__(self, explanation: Any, numbers: Numbers, parts: Mapping[int, str] | None = None,
                 heading: str = "h2") -> None:
        self.explanation, self.numbers, self.parts, self.heading = explanation, numbers, parts or {}, heading
        self.forward_number = {step.node: step.number for step in explanation.forward}
        self.shown: Any = None                    # the source line that was shown last
        self.rest: list[list[Any]] = []           # for the script: each step back, and what it adds to which place

    def all(self, forward: list[Any], back: list[Any], given: list[Any], whole: bool) -> list[Frame]:
        frames = [self.first(given, whole)]
        frames += [self.forward(step) for step in forward]
        frames.append(self.turn())
        frames += [self.back(step) for step in back]
        return [*frames, self.last()] if whole else frames

    def first(self, given: list[Any], whole: bool) -> Frame:
        keys = [self.numbers.value(place, value) for _, value, place in given]
        rows = "".join(f"<dt>{escape(name)}</dt><dd>{number(value, key)}</dd>"
                       for (name, value, _), key in zip(given[:LEAVES], keys))
        told = "" if whole else "<p>The graph is long: this page shows the steps next to the loss.</p>"
        body = f"<h2>Where it begins</h2><p>These need a gradient:</p><dl>{rows}</dl>{more(given)}{told}"
        places = [place for *_, place in given]
        return Frame("", "the leaves", "Where it begins", body, places, [], list(zip(places, keys)), [])

    def forward(self, step: Any) -> Frame:
        keys = [self.numbers.value(place, value) for place, value in zip(step.places, step.values)]
        lines = [self.expression(step)]
        if step.worked:
            lines.append(in_numbers(step.formula, self.numbers, self.keys_of(step.formula)) or escape(step.worked))
        if None not in step.values:
            lines += [number(value, key) for value, key in zip(step.values, keys)]
        note = f'<p class="note">{UNKNOWN} {NOT_KEPT}</p>' if UNKNOWN in step.expression else ""
        body = f"{self.head(step)}{equation(escape(step.result), lines)}{note}{self.source(step)}"
        ways = [(e, step.node) for e in step.node.edges if e is not None]
        label = f"forward, step {step.number} of {len(self.explanation.forward)}: {step.op}"
        # the op of an in-place write names its result
        short = step.op if "=" in step.op else f"{step.result} = {step.op}"
        return Frame("forward", label, short, body, [step.node], ways, list(zip(step.places, keys)), [])

    def expression(self, step: Any) -> str:
        """Typeset a step's expression with the names of its inputs."""
        formula = step.formula
        if formula is None or replaced(formula.text, formula.labels) != step.expression:
            return escape(step.expression)
        return typeset(formula.text, formula.labels, step.expression)

    def turn(self) -> Frame:
        found = self.explanation
        named = f" Call {escape(found.name)} L." if found.name != "L" else ""
        key = self.numbers.gradient(found.root, found.start)
        body = (f"<h2>Now back</h2><p>How does L change with each number that led to it?{named} It changes with itself "
                f"one for one:</p>{equation(derivative(found.name), [number(found.start, key, 'gradient')])}")
        return Frame("back", "back, from the loss", "Now back", body, [found.root], [], [],
                     [(found.root, found.start.text(18), key)])

    def back(self, step: Any) -> Frame:
        rows = [(name, value, self.numbers.gradient(place, value), "gradient") for name, value, place in step.needed]
        place_of = {id(given.value): given.place for given in step.given}
        for name, value in step.rows:
            place = place_of.get(id(value))
            rows.append((name, value, self.numbers.value(place, value) or self.numbers.constant(value), "value"))
        listed = "".join(f"<dt>{escape(name)}</dt><dd>{row(value, key, kind)}</dd>" for name, value, key, kind in rows)
        blocks, gradients, shares = [], [], []
        for i, told in enumerate(step.gives):
            keys = self.numbers.shares(step, i)
            blocks.append(self.block(step, i, told, keys))
            gradients.append((told.node, told.total.text(18), keys[2]))
            shares.append([self.numbers.keys[told.node], keys[0], keys[2]])
        self.rest.append([self.explanation.numbers[step.node], shares])
        note = ('<p class="note">backward would call a hook here, which may change the gradient.</p>' if step.hooked
                else "")
        rules = dict.fromkeys((t.input, t.rule) for t in step.gives if t.named != t.rule)
        general = "".join(f"<p>{derivative(name)} = {typeset(rule)}</p>" for name, rule in rules)
        rule = f'<details class="note rule"><summary>In general</summary>{general}</details>' if rules else ""
        body = (f"{self.head(step)}<p class=\"of\">{escape(step.result)} = "
                f"{escape(step.expression)}</p><dl>{listed}</dl>{''.join(blocks)}{note}{rule}"
                f"{self.parts.get(step.number, '')}{self.source(step)}")
        label = f"back, step {step.number} of {len(self.explanation.steps)}: {step.op}"
        return Frame("back", label, f"{step.op}  → {', '.join(dict.fromkeys(t.target for t in step.gives))}", body,
                     [step.node],
                     [(t.node, step.node) for t in step.gives], [], gradients)

    def head(self, step: Any) -> str:
        return f"<{self.heading}>{escape(step.op)}</{self.heading}>"

    def block(self, step: Any, i: int, told: Gives, keys: tuple[str, str, str]) -> str:
        """Return the HTML of a gradient: its rule, the rule with numbers, and the sum with the gradient so far.

        Its data attributes are for programs that read the page: the step, the input's place in the program, the rule,
        the keys of its letters.
        """
        share, before, total = keys
        of = self.keys_of(told.formula)
        if len(step.incoming) == 1:
            of["g"] = self.numbers.gradient(step.node, step.incoming[0][1])
        lines = [typeset(told.formula.text, told.formula.labels, told.named)]
        if told.worked:
            lines.append(in_numbers(told.formula, self.numbers, of) or escape(told.worked))
        lines.append(number(told.value, share, "gradient"))
        inner = equation(derivative(told.target) + (" +" if told.before is not None else ""), lines)
        if told.before is not None:
            both = f"{number(told.before, before, 'gradient')} + {number(told.value, share, 'gradient')}"
            inner += equation(derivative(told.target), [both, number(told.total, total, "gradient")])
        known = {"step": step.number, "forward": self.forward_number[step.node], "give": i, "op": step.op,
                 "input": told.input, "target": self.numbers.keys[told.node], "rule": told.rule,
                 "letters": script(self.letters(told.formula, of)), "share": share, "before": before, "total": total}
        attributes = " ".join(f'data-{name}="{escape(text)}"' for name, text in known.items())
        return f'<div class="told{" inner" if self.numbers.prefix else ""}" {attributes}>{inner}</div>'

    def letters(self, formula: Lettered | None, of: Mapping[str, str]) -> dict[str, Any]:
        """Return, for each letter of a formula, the key of its array, or the number itself."""
        found: dict[str, Any] = {name: key for name, key in of.items() if key}
        for name, value in formula.numbers.items() if formula is not None else ():
            if name not in found and isinstance(value, (bool, int, float, Value)):
                known = (self.numbers.constant(value) if isinstance(value, Value) else value if isfinite(value)
                         else str(value))
                found |= {name: known} if known != "" else {}
        return found

    def keys_of(self, formula: Lettered | None) -> dict[str, str]:
        """Return the keys of a formula's letters that have places on the tape."""
        if formula is None:
            return {}
        return {name: self.numbers.value(place, formula.numbers.get(name))
                for name, place in formula.places.items() if name != "g"}

    def source(self, step: Any) -> str:
        """Return the source line of a step; for parts, which show together, only if it differs from the last."""
        if not step.source or self.numbers.prefix and step.source == self.shown:
            return ""
        self.shown = step.source
        file, line, text = step.source
        return (
            f'<p class="source"><code>{escape(text)}</code><br>{escape(file.replace(chr(92), "/").rpartition("/")[2])}'
            f', line {line}</p>')

    def last(self) -> Frame:
        leaves = self.explanation.leaves
        rows = "".join(f"<dt>{escape(leaf.name)}.grad</dt><dd>"
                       f"{number(leaf.gradient, self.numbers.gradient(leaf.node, leaf.gradient), 'gradient')}"
                       + (f" <small>(to be added to {number(leaf.before)})</small>" if leaf.before is not None else "")
                       + "</dd>" for leaf in leaves[:LEAVES])
        body = f"<h2>What has arrived</h2><dl>{rows}</dl>{more(leaves)}"
        return Frame("", "what has arrived", "What has arrived", body, [leaf.node for leaf in leaves], [], [], [])


def row(value: Any, key: str, kind: str) -> str:
    if value is None:
        return "0, since nothing comes back"
    return number(value, key, kind) if isinstance(value, Value) else escape(value)


def more(listed: list[Any]) -> str:
    return f"<p>… and {len(listed) - LEAVES} more.</p>" if len(listed) > LEAVES else ""
