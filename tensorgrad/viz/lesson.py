"""An explanation as a page: the graph, a slider that lights up one step after the other, and beside it what happens there. As an exercise, too."""
from __future__ import annotations

from typing import Any

from ..core.tape import Output
from . import html, svg
from .fold import Tree
from .frames import Frame, Writer
from .model import Model, Node
from .scene import Scene, Shows
from .text import clean, escape, script, shorten

MOST = 120         # steps of a page; of a longer backward it shows those next to the loss


def page(explanation: Any, exercise: bool = False) -> str:
    """The whole page, which needs nothing else."""
    back = explanation.steps[:MOST]
    whole = len(back) == len(explanation.steps) and len(explanation.forward) <= MOST
    shown = {step.node for step in back}
    seen = shown | {e for node in shown for e in node.edges if e is not None} | {explanation.root}
    forward = [step for step in explanation.forward if whole or step.node in shown]
    given = [leaf for leaf in explanation.given if whole or leaf[2] in seen]
    frames = Writer(explanation, exercise).frames(forward, back, given, whole)
    model = pictured(explanation, None if whole else seen)
    drawing = svg.draw(Boxes(Tree(model, False), Shows()))
    ids = {node.tape: node.id for node in model.nodes if node.tape is not None and node.kind != "value"}
    title = f"Backprop of {explanation.name}, step by step"
    sections = "".join(f'<section class="frame" data-phase="{f.phase}"{" hidden" if i else ""}>{_phase(f)}{f.body}</section>' for i, f in enumerate(frames))
    note = "" if whole else (f'<p class="note">{len(explanation.steps)} steps back are more than a page can show: these are the {len(back)} next to the loss.'
                             " The text, print(explanation.text(most=None)), has all.</p>")
    body = f"""<main class="lesson{' exercise' if exercise else ''}">
<header><h1>{escape(title)}</h1>{'<p class="score" role="status"></p>' if exercise else ''}{note}</header>
<div class="stage">
<div class="graph" role="img" aria-label="The graph behind {escape(explanation.name)}" tabindex="0">{drawing}</div>
<div class="panel" aria-live="polite">{sections}</div>
</div>
{CONTROLS.replace('LAST', str(len(frames) - 1))}
<script type="application/json" id="frames">{script([_data(f, ids) for f in frames])}</script>
</main>"""
    return html.page(title, body, html.beside("lesson.css"), html.beside("lesson.js"))


CONTROLS = """<svg class="markers" aria-hidden="true"><defs>
<marker id="lesson-on" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="13" markerHeight="13" markerUnits="userSpaceOnUse" orient="auto">
<path d="M0 0.5L8 4L0 7.5z"/></marker>
<marker id="lesson-back" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="13" markerHeight="13" markerUnits="userSpaceOnUse" orient="auto-start-reverse">
<path d="M0 0.5L8 4L0 7.5z"/></marker></defs></svg>
<div class="controls" role="group" aria-label="Steps">
<button type="button" id="back" aria-label="One step back" title="One step back (←)">‹</button>
<button type="button" id="play" aria-label="Play" title="Play or pause (space)">▶</button>
<button type="button" id="next" aria-label="One step on" title="One step on (→)">›</button>
<input type="range" id="step" min="0" max="LAST" value="0" step="1" aria-label="Step">
<output id="where" for="step"></output>
</div>"""


class Boxes(Scene):
    """The boxes of the graph, with lines for the value and the gradient, which show when the lesson comes to them."""

    def lines(self, node: Node) -> list[tuple[str, str]]:
        lines = [("title", shorten(clean(node.title)))]
        if node.kind == "step" and node.name:
            lines.append(("name", node.name))
        if node.value and node.dtype is not None:
            lines.append(("value", f"= {node.value}"))
        return lines + ([("gradient", f"grad {node.gradient}")] if node.gradient else [])

    def told(self, node: Node) -> str:
        return f"{node.name} = {node.title}" if node.kind == "step" else node.title


def framed(page: str) -> str:
    """A page within another, as notebooks show it."""
    return f'<iframe srcdoc="{escape(page, lines=True)}" style="width:100%;height:640px;border:0" title="Backprop, step by step"></iframe>'


def pictured(explanation: Any, some: set[Any] | None) -> Model:
    """The graph that the page draws: all of it, or the steps of `some` and what leads to them."""
    model = explanation.model
    ends = {node.id for node in model.nodes if node.kind == "value"}        # the root says so itself
    keep = {n.id for n in model.nodes if n.id not in ends and (some is None or n.tape in some)}
    if some is not None:
        keep |= {e.source for e in model.edges if e.target in keep and model.by_id[e.source].kind == "leaf"}
    part = Model([n for n in model.nodes if n.id in keep], [e for e in model.edges if e.source in keep and e.target in keep])
    part.by_id = {n.id: n for n in part.nodes}
    return part


def _phase(frame: Frame) -> str:
    text = {"forward": "↓ forward", "back": "↑ back"}.get(frame.phase)
    return f'<p class="phase">{text}</p>' if text else ""


def _data(frame: Frame, ids: dict[Any, str]) -> dict[str, Any]:
    """What the script needs to know of a frame."""
    def place(node: Any) -> str | None:
        return ids.get(node.node if type(node) is Output else node)
    return {"phase": frame.phase, "label": frame.label, "nodes": [i for n in frame.nodes if (i := place(n))],
            "ways": [[a, b] for s, t in frame.ways if (a := place(s)) and (b := place(t))],
            "values": [[i, text] for n, text in frame.values if (i := place(n))],
            "gradients": [[i, text, blank] for n, text, blank in frame.gradients if (i := place(n))]}

