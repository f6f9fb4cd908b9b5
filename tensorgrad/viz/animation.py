"""An explanation as one SVG that moves: numbers appear as the forward makes them, gradients as they come back, with the
rule of each step below.

Programs that do not animate show the last picture; so do readers who ask their system for less motion.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from xml.etree import ElementTree

from ..core.tape import Output
from .drawing import Graph
from .explained_graph import Boxes, pictured
from .svg import COLOURS, MARGIN
from .text import columns, shorten

SECONDS = 1.8           # duration of a picture
REST = 2                # pause before the film repeats, in pictures
MOST = 60               # half the steps, forward and back together, of the longest film
SVG = "http://www.w3.org/2000/svg"
CAPTION = 34.0          # the height of the line below the graph
WIDE = 7.3              # width of a column of the caption


class Picture(NamedTuple):
    """A picture of the film: the boxes that light up, the (box, kind of line) that appear, and the caption."""

    lit: list[str]
    appear: list[tuple[str, str]]
    caption: str


def film(explanation: Any) -> str:
    """Return the steps of an explanation as an animated SVG. Errors: ValueError for too many steps."""
    if len(explanation.forward) + len(explanation.steps) > 2 * MOST:
        raise ValueError(f"a film shows at most {MOST} steps forward and back, not {len(explanation.forward)} and "
                         f"{len(explanation.steps)}: save a page, .html")
    model = pictured(explanation, None)
    ids = {node.tape: node.id for node in model.nodes if node.tape is not None}
    shown = list(pictures(explanation, ids))
    root = ElementTree.fromstring(Graph(model, fold=False, title=f"Backprop of {explanation.name}, step by step",
                                        scene=Boxes).svg())
    boxes = {box.get("data-id"): box for box in root.iter(f"{{{SVG}}}g")}
    length = len(shown) + REST
    width = widened(root, max(columns(p.caption) for p in shown) * WIDE + 2 * MARGIN)
    height = float(root.get("height", 0))
    css = [f".tg-film{{animation-duration:{length * SECONDS:g}s;animation-iteration-count:infinite"
           f";animation-timing-function:step-end}}"]
    for number, picture in enumerate(shown):
        begin, end = (f"{100 * (number + late) / length:.2f}%" for late in (0, 1))
        css.append(f"@keyframes tg-from{number}{{0%{{opacity:{int(number == 0)}}}{begin}{{opacity:1}}}}")
        last = int(number == len(shown) - 1)
        css.append(f"@keyframes tg-only{number}{{0%{{opacity:{int(number == 0)}}}{begin}{{opacity:1}}{end}{{opacity:"
                   f"{last}}}100%{{opacity:{last}}}}}")
        for box in picture.lit:
            animate(outline(boxes[box]), f"tg-only{number}")
        for box, kind in picture.appear:
            for line in boxes[box].findall(f"{{{SVG}}}text"):
                if line.get("class") == kind:
                    animate(line, f"tg-from{number}")
        text = ElementTree.SubElement(root, f"{{{SVG}}}text",
                                      {"x": f"{width / 2:.1f}", "y": f"{height - MARGIN:.1f}", "font-size": "12px",
                                      "text-anchor": "middle", "fill": COLOURS["ink"][0],
                                       "opacity": str(last)})
        text.set("style", f"fill:var(--ink,{COLOURS['ink'][0]})")
        text.text = picture.caption
        animate(text, f"tg-only{number}")
    css.append("@media(prefers-reduced-motion:reduce){.tg-film{animation:none!important}}")
    ElementTree.SubElement(root, f"{{{SVG}}}style").text = "".join(css)
    ElementTree.register_namespace("", SVG)
    return ElementTree.tostring(root, encoding="unicode")


def pictures(explanation: Any, ids: dict[Any, str]) -> Iterator[Picture]:
    """Yield the pictures of the forward, of the turn, and of the backward."""
    def place(node: Any) -> list[str]:
        found = ids.get(node.node if type(node) is Output else node)
        return [] if found is None else [found]
    yield Picture([b for *_, leaf in explanation.given for b in place(leaf)],
                  [(b, "value") for *_, leaf in explanation.given for b in place(leaf)],
                  "the leaves")
    for step in explanation.forward:
        value = [v.text(24) for v in step.values if v is not None]
        yield Picture(place(step.node), [(b, "value") for b in place(step.node)],
                      told(step.result, step.expression, step.worked, *value))
    root = place(explanation.root)
    yield Picture(root, [(b, "gradient") for b in root],
                  f"now back: ∂L/∂{explanation.name} = {explanation.start.text(24)}")
    # a gradient shows once all of its terms have come
    whole = {b: step for step in explanation.steps for gives in step.gives for b in place(gives.node)}
    for step in explanation.steps:
        captions, appear = [], []
        for gives in step.gives:
            captions.append(told(f"∂L/∂{gives.target}{' +' if gives.before is not None else ''}", gives.named,
                                 gives.worked, gives.value.text(24)))
            appear += [(b, "gradient") for b in place(gives.node) if whole[b] is step]
        yield Picture(place(step.node), appear, ",   ".join(dict.fromkeys(captions)))


def told(left: str, *parts: str) -> str:
    """Write left = part = part …, shortened to a line."""
    return shorten(" = ".join([left, *[part for part in parts if part]]), 90)


def widened(root: Any, least: float) -> float:
    """Make room for captions below the graph, and at its sides. Returns the width."""
    width, height = float(root.get("width")), float(root.get("height"))
    more = max(0.0, least - width)
    root.set("viewBox", f"{-more / 2:.0f} 0 {width + more:.0f} {height + CAPTION:.0f}")
    root.set("width", f"{width + more:.0f}")
    root.set("height", f"{height + CAPTION:.0f}")
    paper = root.find(f"{{{SVG}}}rect")
    paper.set("x", f"{-more / 2:.0f}")
    return width


def outline(box: Any) -> Any:
    """Add a frame around a box, visible only while it is animated."""
    rect = box.find(f"{{{SVG}}}rect")
    hot = {"fill": "none", "stroke": COLOURS["hot"][0], "stroke-width": "3",
           "style": "fill:none;stroke:var(--hot,{});stroke-width:3;".format(
        COLOURS["hot"][0]), "opacity": "0"}
    return ElementTree.SubElement(box, f"{{{SVG}}}rect",
                                  {**{k: rect.get(k) for k in ("x", "y", "width", "height", "rx")}, **hot})


def animate(element: Any, name: str) -> None:
    """Add an animation to those that an element has."""
    style = element.get("style", "")
    kept, _, names = style.partition("animation-name:")
    element.set("class", f"{element.get('class', '')} tg-film".replace(" tg-film tg-film", " tg-film").strip())
    element.set("style", f"{kept}{';' if kept and not kept.endswith(';') else ''}animation-name:"
                         f"{names + ',' if names else ''}{name}")


__all__ = ["film"]
