"""The page of an exercise: the graph with its forward, and a card for each question.

The script computes the right answers by finite differences.
"""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import html
from ..drawing import Graph
from ..explained_graph import Boxes, pictured
from ..expression_trees import packed
from ..mathml import mathml
from ..model import Node
from ..step_texts import BackwardStep
from ..svg import STYLE
from ..text import Value, escape, script, shape_text, short
from .grammar import FORMS
from .questions import FORMAT, VERSION, Question

if TYPE_CHECKING:
    from .exercise import Exercise

DRAWN = 60          # steps of the largest program whose graph the page shows
GOALS = {"number": "Each step back has its rule here. Work out the numbers that it gives.",
         "rule": "What does each step give back? Write it as a formula of g, the gradient that arrives at the step's "
                 "result, and of the step's tensors.",
         "whole": "The forward is done. Find how L changes with each number: all gradients, from the loss down to the "
                  "leaves.",
         "wrong": "Each of these backwards has one mistake, and all that follows was computed from it. Which line is "
                  "wrong, and what should be there?"}
TYPED = ("You can type + − · / @, ^ or ², ᵀ or .T, brackets, comparisons such as (x > 0), which are 1 or 0, and exp, "
         "log, sqrt, tanh, sigmoid, relu, sin, cos, sign, abs, sum, mean, size. A result that is too large is summed "
         "to the tensor's shape.")


class Blank(Boxes):
    """The boxes of a lesson, with a question mark for each gradient."""

    def lines(self, node: Node) -> list[tuple[str, str]]:
        wide = "\u00a0" * 4 if node.gradient and len(node.gradient) > 8 else ""
        return [(kind, f"{wide}grad ?{wide}" if kind == "gradient" else text)
                for kind, text in super().lines(node) if kind != "gradient" or self.gradients]

    gradients = True

class Plain(Blank):
    """Like `Blank`, but without lines for gradients."""

    gradients = False


def page(exercise: Exercise) -> str:
    """Return the whole self-contained page."""
    found = exercise.explanation
    cards = "".join(card(exercise, question) for question in exercise.questions)
    drawn = graph(exercise) if len(found.forward) <= DRAWN else ""
    typed = f'<p class="soft">{escape(TYPED)}</p>' if exercise.level == "rule" else ""
    body = f"""<main class="exercise {'with-graph' if drawn else ''}" data-level="{exercise.level}">
<header><h1>{escape(exercise.title)}</h1><p>{escape(GOALS[exercise.level])}</p>{typed}
<p class="score" role="status"></p><progress max="1" value="0" aria-label="How much is right"></progress></header>
<div class="stage">{drawn}<div class="cards">{forward(exercise)}{cards}</div></div>
<footer><label>Your name <input id="name" maxlength="40" autocomplete="name"></label>
<button type="button" id="hand-in">Hand in</button> <button type="button" id="again">Start again</button>
<span id="handed" role="status"></span>
<p class="soft">“Hand in” saves a file with your answers. Your teacher marks it with <code>python -m tensorgrad.viz grade FILE</code>.
Seed {escape(str(exercise.seed))}. Your progress is kept in this browser.</p></footer>
</main>"""  # noqa: E501
    return html.page(exercise.title, body, STYLE + beside("page.css"),
                     "\n".join([html.beside("evaluator.js"), beside("numbers.js"), beside("grammar.js"),
                                f"const exercise = {script(data(exercise))};",
                                beside("page.js")]))


def beside(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def data(exercise: Exercise) -> dict[str, Any]:
    """Return the script's data: the forward program and the questions, without answers."""
    found = exercise.explanation
    known: dict[str, str] = {}
    for question in exercise.questions:
        if question.kind in ("share", "total"):
            last = [line for line in exercise.lines if line.place == question.line.place][-1]
            if question.line is last and (question.kind == "total" or last.before is None):
                known[question.line.place] = question.key
    placed = {node.id: found.results.get(node.tape, (node.tape,)) for node in found.model.nodes if node.kind != "value"}
    boxes = {box: [found.keys[place] for place in places] for box, places in placed.items()
             if all(place in found.keys for place in places)}
    return {"format": FORMAT, "version": VERSION, "level": exercise.level, "seed": exercise.seed, "made": exercise.made,
            "fingerprint": exercise.fingerprint,
            "program": exercise.program, "questions": [asked(exercise, question) for question in exercise.questions],
            "known": known, "boxes": boxes,
            "forms": FORMS if exercise.level == "rule" else []}


def asked(exercise: Exercise, question: Question) -> dict[str, Any]:
    line = question.line
    told: dict[str, Any] = {"key": question.key, "kind": question.kind}
    if question.kind == "wrong" and question.shown is not None:
        lines = exercise.wrong_lines()
        return told | {"times": question.shown.times,
                       "lines": [{"numbers": own.numbers, "place": own.place, "shown": packed(total)}
  for own, total in zip(lines, question.shown.totals, strict=True)]}
    told |= {"numbers": line.numbers, "place": line.place, "through": question.through, "name": line.target}
    if question.kind == "rule":
        own = next(step for step in exercise.program["steps"] if step["number"] in line.numbers)
        told |= {"names": question.names, "letters": question.letters, "inputs": own["inputs"],
                 "out": question.names[-1] if len(question.names) > 1 else "",
                 "number": own["number"], "result": own["results"][0]}
        told["out"] = exercise.program["names"].get(own["results"][0], "")
    return told


# ── what is shown ─────────────────────────────────────────────────────────────────────────────────────────────────────


def graph(exercise: Exercise) -> str:
    model = pictured(exercise.explanation, None)
    boxes = Blank if exercise.level in ("number", "whole") else Plain
    drawing = Graph(model, fold=False, scene=boxes).svg()
    return (f'<div class="graph" role="img" aria-label="The graph behind {escape(exercise.explanation.name)}" '
            f'tabindex="0">{drawing}</div>')


def forward(exercise: Exercise) -> str:
    """Return the forward with its numbers, to look up."""
    found = exercise.explanation
    rows = "".join(f"<tr><th>{escape(name)}</th><td></td><td>{value_of(value)}</td></tr>"
                   for name, value, _ in found.given[:40])
    rows += "".join(f"<tr><th>{escape(step.result)}</th><td>{formula(step.expression)}</td><td>"
                    f"{' '.join(map(value_of, step.values))}</td></tr>"
                    for step in found.forward[:120])
    opened = " open" if exercise.level == "whole" else ""
    return (f'<details class="card forward"{opened}><summary>Forward: {escape(found.name)} and what leads to '
            f'it</summary><table>{rows}</table></details>')


def card(exercise: Exercise, question: Question) -> str:
    """Return a question with its blanks and buttons."""
    writer = {"share": share_card, "total": total_card, "rule": rule_card, "wrong": wrong_card}[question.kind]
    told, blanks, hints = writer(exercise, question)
    return f"""<section class="card" id="{question.key}" data-hints="{escape(script(hints))}">
{told}<div class="blanks">{blanks}</div>
<p class="ask"><button type="button" class="check">Check</button> <button type="button" class="hint" disabled>Hint</button>
<button type="button" class="reveal" disabled>Reveal</button> <span class="verdict" role="status"></span></p>
<ol class="hints" aria-live="polite"></ol></section>"""  # noqa: E501


def share_card(exercise: Exercise, question: Question) -> tuple[str, str, list[str]]:
    line, step = question.line, question.line.step
    keys = exercise.explanation.keys
    rows = "".join(f'<dt>{escape(name)}</dt><dd><span class="gradient" '
                   f'data-gradient="{keys.get(place, "")}">?</span></dd>'
                   for name, _, place in step.needed)
    rows += "".join(f"<dt>{escape(name)}</dt><dd>{value_of(value) if isinstance(value, Value) else escape(value)}</dd>"
                    for name, value in step.rows)
    rule = " + ".join(line.rules)
    told = (f"{heading(exercise, step)}"
            f'<dl>{rows}</dl><p class="equation">∂L/∂{escape(line.target)} '
            f'{"from here " if line.before is not None else ""}= '
            f"{formula(rule)} =</p>")
    several = (f" {line.target} goes into this step {len(line.rules)} times: add what it gets each time."
               if len(line.rules) > 1 else "")
    hints = [f"g is ∂L/∂{step.result}, the gradient that has arrived there.{several}",
             f"Put the numbers into {rule}. There are as many as {line.target} has: "
             f"{shape_text(line.share.shape) or 'one'}."]
    return told, blanks(line.share.shape, f"∂L/∂{line.target} from step {step.number}"), hints


def heading(exercise: Exercise, step: BackwardStep) -> str:
    return (f'<p class="phase">Step {step.number} of {len(exercise.explanation.steps)} back: {escape(step.op)}</p>'
            f"<h2>{escape(step.result)} = {formula(step.expression)}</h2>")


def total_card(exercise: Exercise, question: Question) -> tuple[str, str, list[str]]:
    line = question.line
    ways = [own for own in exercise.lines if own.place == line.place]
    if question.through:
        ways = ways[:len(question.through)]
        told = (f'<p class="phase">Added up</p><h2>∂L/∂{escape(line.target)}, so far</h2><p '
                f'class="equation">∂L/∂{escape(line.target)} = '
                f'{" + ".join(f"(from step {own.step.number})" for own in ways)} =</p>')
        hints = [f"{line.target} leads to L on {len(ways)} ways so far. What they give is added.",
                 "; ".join(f"step {own.step.number} gives {' + '.join(own.rules)}" for own in ways)]
        return told, blanks(line.total.shape, f"∂L/∂{line.target} so far"), hints
    value = next((v for name, v, node in exercise.explanation.given
                  if exercise.explanation.keys.get(node) == line.place), None)
    told = f'<h2>∂L/∂{escape(line.target)}</h2>' + (f'<div class="soft">{escape(line.target)} = {value_of(value)}</div>'
                                                    if value is not None else "")
    uses = "; ".join(f"{own.step.result} = {own.step.expression}" for own in ways)
    rules = "; ".join(f"from {own.step.result}: {' + '.join(own.rules)}, where g is ∂L/∂{own.step.result}"
                      for own in ways)
    more = " What they give is added." if len(ways) > 1 else ""
    return (told, blanks(line.total.shape, f"∂L/∂{line.target}"),
            [f"{line.target} is used in {uses}.{more}", f"The rule: {rules}."])


def rule_card(exercise: Exercise, question: Question) -> tuple[str, str, list[str]]:
    line, step = question.line, question.line.step
    told = (f"{heading(exercise, step)}"
            f'<p>g is ∂L/∂{escape(step.result)}. You may use <b>{", ".join(map(escape, question.names))}</b>.</p>'
            f'<p class="equation">∂L/∂{escape(line.target)}{" from here" if line.before is not None else ""} =</p>')
    label = f"The rule for ∂L/∂{line.target}"
    return (told, f'<input class="formula" autocomplete="off" autocapitalize="off" spellcheck="false" '
                  f'aria-label="{escape(label)}">', [])


def wrong_card(exercise: Exercise, question: Question) -> tuple[str, str, list[str]]:
    assert question.shown is not None
    rows = []
    for i, (line, total) in enumerate(zip(exercise.wrong_lines(), question.shown.totals, strict=True), 1):
        label = f"Line {i}, ∂L/∂{line.target}, is wrong"
        rows.append(f'<tr><td><input type="radio" name="{question.key}" value="{i}" '
                    f'aria-label="{escape(label)}"></td><th>{i}</th>'
                    f"<td>{escape(line.step.result)} = {formula(line.step.expression)}</td>"
                    f"<td>∂L/∂{escape(line.target)}{' so far' if line.before is not None else ''}</td><td>"
                    f"{value_of(Value(total), 'gradient')}</td></tr>")
    start = exercise.explanation.start
    number = short(start.kept.item() * question.shown.times) if start.number else f"{question.shown.times} · g"
    told = (f'<h2>Backward {question.key[1:]}, with {escape(number)} coming in at '
            f'{escape(exercise.explanation.name)}</h2><div class="wide"><table '
            f'class="lines"><thead><tr><th></th><th></th><th>step</th><th colspan="2">gradient</th></tr></thead>'
            f"<tbody>{''.join(rows)}</tbody></table></div>")
    label = "What should be there? For an array: the sum of its numbers"
    field = f'<input class="number" autocomplete="off" spellcheck="false" size="8" aria-label="{label}">'
    return told, f"<label>{label} {field}</label>", \
        ["Take one line after the other: does the rule of its step, with the numbers of the lines above, give what it "
         "says?"]


def blanks(shape: Sequence[int], label: str) -> str:
    """Return an input field for each element, in rows."""
    labels = [f"{label}, element {list(at)}" if at else label for at in np.ndindex(*shape)]
    cells = [f'<input class="number" autocomplete="off" spellcheck="false" size="7" aria-label="{escape(own)}">'
             for own in labels]
    wide = shape[-1] if shape else 1
    rows = [cells[i:i + wide] for i in range(0, len(cells), wide)]
    return "".join(f'<span class="row">{"".join(row)}</span>' for row in rows)


def formula(text: str) -> str:
    """Return a formula as MathML, or as text where that fails."""
    return mathml(text) or f"<code>{escape(text)}</code>"


def value_of(value: Value | None, kind: str = "value") -> str:
    if value is None:
        return "<i>not known any more</i>"
    if len(value.shape) != 2 or value.scalar or not value.whole or value.elements > 36:
        return f'<span class="{kind}">{escape(value.text(70))}</span>'
    rows = "".join(f"<tr>{''.join(f'<td>{escape(short(x))}</td>' for x in row)}</tr>" for row in value.kept.tolist())
    return f'<table class="matrix {kind}"><tbody>{rows}</tbody></table>'


__all__ = ["page"]
