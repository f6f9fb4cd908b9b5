"""The page: the list of steps, the graph, what happens at a step, and the leaves, whose values can be changed."""
from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from ...core.tape import Output
from .. import html
from ..drawing import Graph
from ..explained_graph import Boxes, framed, pictured
from ..program import program
from ..text import escape, script
from .expanded_steps import parts
from .frames import Frame, Frames
from .numbers import Numbers, together
from .steplist import steplist

MOST = 400         # steps on a page; a longer backward is cut to those next to the loss
SCRIPTS = ("arrays", "heat", "stepping", "tuning", "saving")


def page(explanation: Any) -> str:
    """Return the whole self-contained page."""
    back = explanation.steps[:MOST]
    whole = len(back) == len(explanation.steps) and len(explanation.forward) <= MOST
    shown = {step.node for step in back}
    seen = shown | {e for node in shown for e in node.edges if e is not None} | {explanation.root}
    forward = [step for step in explanation.forward if whole or step.node in shown]
    given = [leaf for leaf in explanation.given if whole or leaf[2] in seen]
    numbers, opened = Numbers(explanation), parts(explanation, back)
    writer = Frames(explanation, numbers, {number: part.html for number, part in opened.items()})
    frames = writer.all(forward, back, given, whole)
    model = pictured(explanation, None if whole else seen)
    ids = {node.tape: node.id for node in model.nodes if node.tape is not None and node.kind != "value"}
    groups = {node.tape: node.group for node in model.nodes}
    made = program(explanation) if whole else {"able": False, "why": "it shows a part of the graph"}
    data = {"frames": [told(f, ids, explanation.results) for f in frames], "rest": writer.rest,
            "parts": [part.data for part in opened.values()], "leaves": leaves(explanation, ids),
            "keys": keys(explanation, ids)}
    title = f"Backprop of {explanation.name}, step by step"
    note = "" if whole else (f'<p class="note">{len(explanation.steps)} steps back are more than a page can show: '
                             f'these are the {len(back)} next to the loss.'
                             " The text, print(explanation.text(most=None)), has all.</p>")
    body = f"""<main class="explorer">
<header><h1>{escape(title)}</h1>{note}<div class="tools">{TOOLS}</div></header>
<div class="stage">
<details class="steps" open><summary>Steps</summary>{steplist(frames, groups)}</details>
<div class="graph" role="group" aria-label="The graph behind {escape(explanation.name)}" tabindex="0">{Graph(model, fold=False, scene=Boxes).svg()}</div>
<div class="panel" aria-live="polite">{sections(frames)}</div>
</div>
<div class="dock">
<details class="leaves" open><summary>Change a leaf</summary></details>
{MARKERS}
{html.controls(len(frames) - 1)}
</div>
<script type="application/json" id="data">{script(data)}</script>
<script type="application/json" id="numbers">{script(together(numbers, [part.numbers for part in opened.values()]))}</script>
<script type="application/json" id="program">{script(made)}</script>
</main>"""  # noqa: E501
    return html.page(title, body, beside("explorer.css"), scripts())


def sections(frames: list[Frame]) -> str:
    return "".join(f'<section class="frame" data-phase="{f.phase}"{" hidden" if i else ""}>{phase(f)}{f.body}</section>'
                   for i, f in enumerate(frames))


TOOLS = """<button type="button" id="print" title="Print all steps">Print</button>
<button type="button" id="picture" title="Save the graph, as it is at this step, as SVG">Save step</button>"""
MARKERS = """<svg class="markers" aria-hidden="true"><defs>
<marker id="lesson-on" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="13" markerHeight="13" markerUnits="userSpaceOnUse" orient="auto">
<path d="M0 0.5L8 4L0 7.5z"/></marker>
<marker id="lesson-back" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="13" markerHeight="13" markerUnits="userSpaceOnUse" orient="auto-start-reverse">
<path d="M0 0.5L8 4L0 7.5z"/></marker></defs></svg>"""  # noqa: E501


@cache
def beside(name: str) -> str:
    """Return the text of a file in this directory."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


@cache
def scripts() -> str:
    """Join the scripts in one function scope, and export their names as `Explorer`."""
    inner = "\n".join([html.beside("evaluator.js"), html.beside("player.js"),
                       *[beside(f"{name}.js") for name in SCRIPTS]])
    return (f'(() => {{\n"use strict";\n{inner}\nglobalThis.Explorer = {{Evaluator, Arrays, Heat, Stepping, '
            f'Tuning}};\n}})();')


def phase(frame: Frame) -> str:
    text = {"forward": "↓ forward", "back": "↑ back"}.get(frame.phase)
    return f'<p class="phase">{text}</p>' if text else ""


def told(frame: Frame, ids: dict[Any, str], results: dict[Any, tuple[Any, ...]]) -> dict[str, Any]:
    """Return the data of a frame for the script. `results` has the places of the results of steps with several."""
    def place(node: Any) -> str | None:
        return ids.get(node.node if type(node) is Output else node)
    return {"phase": frame.phase, "label": frame.label, "nodes": [i for n in frame.nodes if (i := place(n))],
            "ways": [[a, b] for s, t in frame.ways if (a := place(s)) and (b := place(t))],
            "values": [i for n, _ in frame.values if (i := place(n))],
            "gradients": [[i, results[n.node].index(n) if type(n) is Output else 0, text, key]
                          for n, text, key in frame.gradients if (i := place(n))]}


def leaves(explanation: Any, ids: dict[Any, str]) -> list[dict[str, str]]:
    """Return the data of the leaves for the script: names, places in the program, boxes."""
    return [{"name": name, "place": explanation.keys[place], "node": ids.get(place, "")}
            for name, _, place in explanation.given]


def keys(explanation: Any, ids: dict[Any, str]) -> dict[str, list[str]]:
    """Return {box: the places in the program whose values it shows}."""
    places = {box: explanation.results.get(place, (place,)) for place, box in ids.items()}
    return {box: [explanation.keys[p] for p in of] for box, of in places.items()
            if all(p in explanation.keys for p in of)}


__all__ = ["framed", "page"]
