"""A graph as SVG: text that needs no program and no package, and that pages can light up.

Each node is `<g class="node" data-id="n3">`, each edge `<path class="edge" data-from="n3" data-to="n5">`, each group
`<g class="group" data-id="g1">`.
"""
from __future__ import annotations

from .fold import Group
from .layout import Point
from .scene import BORDER, COLUMN, HEADER, LINE, PAD, Box, Scene, told_count
from .text import columns, escape, shorten

# The colours of a picture, on white and on black paper. Orange and blue stay apart for those who see red and green
# alike.
COLOURS = {name: (light, dark) for name, light, dark in (row.split() for row in """
paper #ffffff #10151d; ink #0f172a #e8edf4; soft #526077 #a3b1c4; line #64748b #8595ab; step #e3eefc #17304f; step-edge #2f6fc4 #5b9bea;
leaf #ffffff #1b222c; leaf-edge #475569 #94a3b8; constant #f3f5f8 #161c25; constant-edge #a3aebd #5b6879; value #1d4f91 #cfe2fb;
value-ink #ffffff #0d2240; group #f3f5f8 #1b232e; group-edge #b6c2d1 #465365; hot #d55e00 #ff9a3d; hot-paper #fff3e6 #3a2410;
gradient #b34700 #ffb066""".split(";"))}  # noqa: E501
FONT = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"
# Looks of elements, by their place in CSS: attributes whose values may be names of colours. A later row
#     overrides an earlier one.
LOOKS = {
    "text": {"font-size": "11px", "fill": "soft", "text-anchor": "middle"},
    ".title": {"font-size": "12px", "font-weight": "600", "fill": "ink"},
    ".name": {"fill": "step-edge"}, ".value": {"fill": "ink"}, ".gradient": {"fill": "gradient"},
    ".label": {"font-size": "10px", "fill": "gradient"},
    ".node rect": {"fill": "step", "stroke": "step-edge", "stroke-width": "1.25"},
    ".leaf rect": {"fill": "leaf", "stroke": "leaf-edge"},
    ".constant rect": {"fill": "constant", "stroke": "constant-edge"},
    ".output rect": {"fill": "value", "stroke": "value"}, ".output text": {"fill": "value-ink"},
    ".failed rect": {"fill": "hot-paper", "stroke": "hot", "stroke-width": "2.5", "stroke-dasharray": "7 4"},
    ".failed .title": {"fill": "hot"},
    ".note rect": {"fill": "paper", "stroke": "none"}, ".group>rect": {"fill": "group", "stroke": "group-edge"},
    ".group.closed>rect": {"fill": "paper", "stroke": "leaf-edge", "stroke-width": "1.25"},
    ".group.closed>rect.front": {"fill": "group"},
    ".head": {"paint-order": "stroke", "stroke": "paper", "stroke-width": "4px", "stroke-linejoin": "round",
              "text-anchor": "start", "font-size": "12px",
              "font-weight": "600", "fill": "ink"},
    ".count": {"fill": "hot"}, ".edge": {"fill": "none", "stroke": "line", "stroke-width": "1.4"},
    ".edge.broken": {"stroke": "hot", "stroke-dasharray": "6 4"}, ".tip": {"fill": "line"},
}


def rules() -> str:
    """The looks as CSS, with the colours as variables: those of a page, or of dark paper."""
    def told(look: dict[str, str]) -> str:
        return ";".join(f"{name}:var(--{value})" if value in COLOURS else f"{name}:{value}"
                        for name, value in look.items())
    return "".join(f".tensorgrad-graph {place}{{{told(look)}}}\n" for place, look in LOOKS.items())


def variables(dark: bool) -> str:
    """The colours as variables of CSS."""
    return (".tensorgrad-graph{" + ";".join(f"--{name}:{pair[dark]}" for name, pair in COLOURS.items())
            + ";background:var(--paper)}")


def look(*places: str) -> str:
    """The looks of some places as attributes, in the colours of white paper: programs that do not read CSS see these.

    >>> look(".count")
    ' fill="#d55e00"'
    """
    found: dict[str, str] = {}
    for place in places:
        found |= LOOKS.get(place, {})
    return "".join(f' {name}="{COLOURS[value][0] if value in COLOURS else value}"' for name, value in found.items())


DARK = f"@media(prefers-color-scheme:dark){{{variables(True)}"
STYLE = f"""
{variables(False)}
{DARK}}}
.tensorgrad-graph{{font-family:{FONT}}}
.tensorgrad-graph text{{unicode-bidi:isolate;white-space:pre}}
{rules()}"""
IN_FILES = f"{DARK}{rules()}}}"        # the style of a file by itself: attributes say the rest

MARGIN = 16.0
CLASSES = {"value": "output", "label": "note"}         # of boxes, where lines of text have a class of the same name


def written(drawn: Scene, title: str) -> str:
    """A scene as SVG."""
    return Drawing(drawn).text(title)


class Drawing:
    """The elements of a scene, at absolute places."""

    def __init__(self, drawn: Scene) -> None:
        self.scene, self.flip, self.sideways = drawn, drawn.shows.backward, drawn.shows.sideways
        self.below: list[str] = []           # groups and edges
        self.above: list[str] = []           # nodes, and heads of groups
        self.failed = {node.id for node in drawn.tree.model.nodes if node.kind == "failed"}

    def text(self, title: str) -> str:
        inner = self.scene.inside[self.scene.tree.root.key].layout
        width, height = inner.width + 2 * MARGIN, inner.height + 2 * MARGIN
        todo = [(self.scene.tree.root, MARGIN, MARGIN)]
        while todo:
            group, x, y = todo.pop()
            todo.extend(self.group(group, x, y))
        paper = (f'<rect width="100%" height="100%" style="fill:var(--paper,{COLOURS["paper"][0]})" '
                 f'fill="{COLOURS["paper"][0]}"/>')
        return (f'<svg xmlns="http://www.w3.org/2000/svg" class="tensorgrad-graph" role="img" viewBox="0 0 {width:.0f} '
                f'{height:.0f}" width="{width:.0f}" height="{height:.0f}" '
                f'font-family="{FONT}"><title>{escape(title)}</title><style>{IN_FILES}</style><defs>{ARROW}</defs>'
                f'{paper}' + "\n".join([*self.below, *self.above]) + "</svg>")

    def group(self, group: Group, x: float, y: float) -> list[tuple[Group, float, float]]:
        """Draw what a group holds, from this corner on. Returns the open groups in it, and where they lie."""
        inner = self.scene.inside[group.key]
        places = inner.layout
        opened = []
        for box, cx, cy in zip(inner.boxes, places.x, places.y):
            cx, cy = x + cx, y + (places.height - cy if self.flip else cy)
            if box.group is not None and box.key in self.scene.opened:
                border, head = frame(box, cx, cy)
                self.below.append(border)
                self.above.append(head)
                held = self.scene.inside[box.key].layout
                opened.append((box.group, cx - held.width / 2, cy - box.height / 2 + HEADER))
            elif box.kind != "port":
                self.above.append(drawn_box(box, cx, cy))
        for (s, t, source), way in zip(inner.edges, places.routes):
            points = [(x + px, y + (places.height - py if self.flip else py)) for px, py in way]
            self.edge(inner.boxes[s], inner.boxes[t], source, points)
        return opened

    def edge(self, a: Box, b: Box, source: str, points: list[Point]) -> None:
        # the border of a group has its padding before the line inside goes on
        if a.kind == "group" and a.key in self.scene.opened:
            points = [(points[0][0], points[0][1] - (-HEADER if self.flip else BORDER)), *points]
        if b.kind == "group" and b.key in self.scene.opened:
            points = [*points, (points[-1][0], points[-1][1] + (-BORDER if self.flip else HEADER))]
        if self.flip:
            a, b, points = b, a, points[::-1]
        ends = b.kind not in ("port", "label") and not (b.kind == "group" and b.key in self.scene.opened)
        kind = "edge broken" if b.key in self.failed else "edge"
        arrow = ' marker-end="url(#tg-arrow)"' if ends else ""
        looks = look(".edge", ".edge.broken") if b.key in self.failed else look(".edge")
        self.below.append(f'<path class="{kind}" data-from="{source}" data-to="{escape(b.key)}" '
                          f'd="{curve(points, self.sideways)}"{looks}{arrow}/>')


ARROW = ('<marker id="tg-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="9" '
         f'markerHeight="9" orient="auto-start-reverse"><path class="tip" d="M0 0.5L8 4L0 '
         f'7.5z"{look(".tip")}/></marker>')


def curve(points: list[Point], sideways: bool = False) -> str:
    """A way as a path: straight where it is upright, and with upright ends where it is not; `sideways`: level for
    upright.
    """
    (x, y), *rest = points
    parts = [f"M{x:.1f} {y:.1f}"]
    for nx, ny in rest:
        if abs(ny - y if sideways else nx - x) < 0.5:
            parts.append(f"L{nx:.1f} {ny:.1f}")
        elif sideways:
            middle = (x + nx) / 2
            parts.append(f"C{middle:.1f} {y:.1f} {middle:.1f} {ny:.1f} {nx:.1f} {ny:.1f}")
        else:
            middle = (y + ny) / 2
            parts.append(f"C{x:.1f} {middle:.1f} {nx:.1f} {middle:.1f} {nx:.1f} {ny:.1f}")
        x, y = nx, ny
    return "".join(parts)


def rectangle(x: float, y: float, w: float, h: float, radius: float, more: str = "") -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{radius:g}"{more}/>'


def drawn_box(box: Box, cx: float, cy: float) -> str:
    x, y, w, h = cx - box.width / 2, cy - box.height / 2, box.width, box.height
    tip = f"<title>{escape(box.tip, lines=True)}</title>" if box.tip else ""
    if box.group is not None:
        behind = rectangle(x + 4, y + 4, w, h, 7, look(*CLOSED)) if box.group.count else ""
        sheets = (rectangle(x, y, w, h, 7, look(*CLOSED)) + rectangle(x, y, w, h, 7,
                                                                      ' class="front"'
                                                                      + look(*CLOSED, ".group.closed>rect.front")))
        return f'<g class="group closed" data-id="{box.key}">{tip}{behind}{sheets}{texts_of(box, cx, y, "group")}</g>'
    radius = {"step": 9, "failed": 9, "value": 9}.get(box.kind, 2)
    kind = CLASSES.get(box.kind, box.kind)
    sheet = rectangle(x, y, w, h, radius, look(".node rect", f".{kind} rect"))
    return f'<g class="node {kind}" data-id="{escape(box.key)}">{tip}{sheet}{texts_of(box, cx, y, kind)}</g>'


CLOSED = ".group>rect", ".group.closed>rect"


def texts_of(box: Box, cx: float, top: float, inside: str) -> str:
    """The lines of a box of this class."""
    pad = 0 if box.kind == "label" else PAD
    turned = ""
    if box.upright:
        top, cy = top + (box.height - box.width) / 2, top + box.height / 2
        turned = f' transform="rotate(-90 {cx:.1f} {cy:.1f})"'
    return "".join(f'<text class="{kind}" x="{cx:.1f}" y="{top + pad + LINE * (k + 0.75):.1f}"{turned}'
                   f'{look("text", f".{kind}", f".{inside} text", f".{inside} .{kind}")}>{escape(text)}</text>'
                   for k, (kind, text) in enumerate(box.lines))


def frame(box: Box, cx: float, cy: float) -> tuple[str, str]:
    """An open group: its border, and its head."""
    assert box.group is not None
    x, y = cx - box.width / 2, cy - box.height / 2
    title, count = shorten(box.group.title), told_count(box.group)
    told = f'<text class="head" x="{x + 10:.1f}" y="{y + 17:.1f}"{look("text", ".head")}>{escape(title)}</text>'
    if count:
        place = x + 10 + (columns(title) + 1) * COLUMN["title"]
        told += (f'<text class="head count" x="{place:.1f}" y="{y + 17:.1f}"{look("text", ".head", ".count")}>{count}'
                 f'</text>')
    tip = f"<title>{escape(box.tip, lines=True)}</title>"
    return (f'<g class="group open" '
            f'data-id="{box.key}">{tip}{rectangle(x, y, box.width, box.height, 9, look(CLOSED[0]))}</g>', told)


__all__ = ["STYLE", "curve", "written"]
