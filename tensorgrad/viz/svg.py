"""A graph as SVG: text that needs no program and no package, and that pages can light up.

Each node is `<g class="node" data-id="n3">`, each edge `<path class="edge" data-from="n3" data-to="n5">`, each group `<g class="group" data-id="g1">`.
"""
from __future__ import annotations

from .fold import Group
from .layout import Point
from .model import Model
from .scene import BORDER, COLUMN, HEADER, LINE, PAD, Box, Scene, Shows, scene, told_count
from .text import columns, escape, shorten

STYLE = """
.tensorgrad-graph{--paper:#fff;--ink:#0f172a;--soft:#526077;--line:#64748b;--step:#e3eefc;--step-edge:#2f6fc4;--leaf:#fff;--leaf-edge:#475569;
--constant:#f3f5f8;--constant-edge:#a3aebd;--value:#1d4f91;--value-ink:#fff;--group:#64748b14;--group-edge:#b6c2d1;--hot:#d55e00;--hot-paper:#fff3e6;
--gradient:#b34700;background:var(--paper);font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace}
@media(prefers-color-scheme:dark){.tensorgrad-graph{--paper:#10151d;--ink:#e8edf4;--soft:#a3b1c4;--line:#8595ab;--step:#17304f;--step-edge:#5b9bea;
--leaf:#1b222c;--leaf-edge:#94a3b8;--constant:#161c25;--constant-edge:#5b6879;--value:#cfe2fb;--value-ink:#0d2240;--group:#94a3b81a;--group-edge:#465365;
--hot:#ff9a3d;--hot-paper:#3a2410;--gradient:#ffb066}}
.tensorgrad-graph text{font-size:11px;fill:var(--soft);text-anchor:middle;unicode-bidi:isolate;white-space:pre}
.tensorgrad-graph .title{font-size:12px;font-weight:600;fill:var(--ink)}
.tensorgrad-graph .name{fill:var(--step-edge)}
.tensorgrad-graph .value{fill:var(--ink)}
.tensorgrad-graph .gradient{fill:var(--gradient)}
.tensorgrad-graph .label{font-size:10px;fill:var(--gradient)}
.tensorgrad-graph .node rect{fill:var(--step);stroke:var(--step-edge);stroke-width:1.25}
.tensorgrad-graph .leaf rect{fill:var(--leaf);stroke:var(--leaf-edge)}
.tensorgrad-graph .constant rect{fill:var(--constant);stroke:var(--constant-edge)}
.tensorgrad-graph .output rect{fill:var(--value);stroke:var(--value)}
.tensorgrad-graph .output text{fill:var(--value-ink)}
.tensorgrad-graph .failed rect{fill:var(--hot-paper);stroke:var(--hot);stroke-width:2.5;stroke-dasharray:7 4}
.tensorgrad-graph .failed .title{fill:var(--hot)}
.tensorgrad-graph .note rect{fill:var(--paper);stroke:none}
.tensorgrad-graph .group>rect{fill:var(--group);stroke:var(--group-edge)}
.tensorgrad-graph .group.closed>rect{fill:var(--paper);stroke:var(--leaf-edge);stroke-width:1.25}
.tensorgrad-graph .group.closed>rect.front{fill:var(--group)}
.tensorgrad-graph .head{paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round;
text-anchor:start;font-size:12px;font-weight:600;fill:var(--ink)}
.tensorgrad-graph .count{fill:var(--hot)}
.tensorgrad-graph .edge{fill:none;stroke:var(--line);stroke-width:1.4}
.tensorgrad-graph .edge.broken{stroke:var(--hot);stroke-dasharray:6 4}
.tensorgrad-graph .tip{fill:var(--line)}
"""
MARGIN = 16.0
CLASSES = {"value": "output", "label": "note"}         # of boxes, where lines of text have a class of the same name


def draw(model: Model | Scene, *, fold: bool = True, shows: Shows | None = None, opened: set[str] | None = None, title: str = "") -> str:
    """A model as SVG. Groups are open as far as there is room, or those of `opened` are.

    >>> import tensorgrad as torch
    >>> from tensorgrad.viz.tape import read
    >>> w = torch.tensor([1., 2.], requires_grad=True)
    >>> draw(read((w * w).sum())).count('class="edge"')
    4
    """
    drawn = model if isinstance(model, Scene) else scene(model, fold=fold, shows=shows, opened=opened)
    return Drawing(drawn).text(title)


class Drawing:
    """The elements of a scene, at absolute places."""

    def __init__(self, drawn: Scene) -> None:
        self.scene, self.flip = drawn, drawn.shows.backward
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
        return (f'<svg xmlns="http://www.w3.org/2000/svg" class="tensorgrad-graph" role="img" viewBox="0 0 {width:.0f} {height:.0f}" '
                f'width="{width:.0f}" height="{height:.0f}"><title>{escape(title or self.told())}</title><style>{STYLE}</style>'
                f'<defs>{ARROW}</defs>' + "\n".join([*self.below, *self.above]) + "</svg>")

    def told(self) -> str:
        nodes = self.scene.tree.model.nodes
        steps = sum(node.kind == "step" for node in nodes)
        return f"{'Backward graph' if self.flip else 'Graph'} of {steps} step{'s' if steps != 1 else ''}"

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
        if a.kind == "group" and a.key in self.scene.opened:      # the border of a group has its padding before the line inside goes on
            points = [(points[0][0], points[0][1] - (-HEADER if self.flip else BORDER)), *points]
        if b.kind == "group" and b.key in self.scene.opened:
            points = [*points, (points[-1][0], points[-1][1] + (-BORDER if self.flip else HEADER))]
        if self.flip:
            a, b, points = b, a, points[::-1]
        ends = b.kind not in ("port", "label") and not (b.kind == "group" and b.key in self.scene.opened)
        kind = "edge broken" if b.key in self.failed else "edge"
        arrow = ' marker-end="url(#tg-arrow)"' if ends else ""
        self.below.append(f'<path class="{kind}" data-from="{source}" data-to="{escape(b.key)}" d="{curve(points)}"{arrow}/>')


ARROW = ('<marker id="tg-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9" orient="auto-start-reverse">'
         '<path class="tip" d="M0 0.5L8 4L0 7.5z"/></marker>')


def curve(points: list[Point]) -> str:
    """A way as a path: straight where it is upright, and with upright ends where it is not."""
    (x, y), *rest = points
    parts = [f"M{x:.1f} {y:.1f}"]
    for nx, ny in rest:
        if abs(nx - x) < 0.5:
            parts.append(f"L{nx:.1f} {ny:.1f}")
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
    lines = written(box, cx, y)
    if box.group is not None:
        behind = rectangle(x + 4, y + 4, w, h, 7) if box.group.count else ""
        return f'<g class="group closed" data-id="{box.key}">{tip}{behind}{rectangle(x, y, w, h, 7)}{rectangle(x, y, w, h, 7, FRONT)}{lines}</g>'
    radius = {"step": 9, "failed": 9, "value": 9}.get(box.kind, 2)
    kind = CLASSES.get(box.kind, box.kind)
    return f'<g class="node {kind}" data-id="{escape(box.key)}">{tip}{rectangle(x, y, w, h, radius)}{lines}</g>'


FRONT = ' class="front"'


def written(box: Box, cx: float, top: float) -> str:
    pad = 0 if box.kind == "label" else PAD
    return "".join(f'<text class="{kind}" x="{cx:.1f}" y="{top + pad + LINE * (k + 0.75):.1f}">{escape(text)}</text>'
                   for k, (kind, text) in enumerate(box.lines))


def frame(box: Box, cx: float, cy: float) -> tuple[str, str]:
    """An open group: its border, and its head."""
    assert box.group is not None
    x, y = cx - box.width / 2, cy - box.height / 2
    title, count = shorten(box.group.title), told_count(box.group)
    told = f'<text class="head" x="{x + 10:.1f}" y="{y + 17:.1f}">{escape(title)}</text>'
    if count:
        told += f'<text class="head count" x="{x + 10 + (columns(title) + 1) * COLUMN["title"]:.1f}" y="{y + 17:.1f}">{count}</text>'
    tip = f"<title>{escape(box.tip, lines=True)}</title>"
    return f'<g class="group open" data-id="{box.key}">{tip}{rectangle(x, y, box.width, box.height, 9)}</g>', told


__all__ = ["STYLE", "Shows", "curve", "draw"]
