"""Self-contained pages: one file, that asks for nothing and works offline."""
from __future__ import annotations

from base64 import b64encode
from collections import deque
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from .fold import Group, Tree
from .scene import BORDER, HEADER, LINE, PAD, Box, Inside, Scene, Shows, closed, head_width, told_count, unfolded
from .svg import MARGIN, STYLE
from .text import escape, script, shorten

MOST = 20_000           # boxes that a page holds: groups beyond that stay closed
FIRST = 30              # boxes that it shows at first: about a screen of them

POLICY = ("default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
          "script-src ")


@cache
def beside(name: str) -> str:
    """A file that lies beside this one: a style or a script."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def page(title: str, body: str, style: str = "", script: str = "", head: str = "") -> str:
    """A page of these parts, in the common style.

    Text in `body` has been escaped; the title is escaped here. `head` are elements for its head.

    >>> "<title>1 &lt; 2</title>" in page("1 < 2", "<p>less</p>")
    True
    """
    end = f"<script>{script}</script>\n" if script else ""
    # this script and no other
    runs = f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" if script else "'none'"
    return (f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" '
            f'content="width=device-width, initial-scale=1">\n<meta http-equiv="Content-Security-Policy" '
            f'content="{POLICY}{runs}">\n{head}<title>{escape(title)}</title>\n'
            f"<style>\n{beside('page.css')}{style}</style>\n</head>\n<body>\n{body}\n{end}</body>\n</html>\n")


def controls(last: int) -> str:
    """Return the buttons and the slider of a page with steps 0 to `last`; `player.js` plays them."""
    return f"""<div class="controls" role="group" aria-label="Steps">
<button type="button" id="back" aria-label="One step back" title="One step back (←)">‹</button>
<button type="button" id="play" aria-label="Play" title="Play or pause (space)">▶</button>
<button type="button" id="next" aria-label="One step on" title="One step on (→)">›</button>
<input type="range" id="step" min="0" max="{last}" value="0" step="1" aria-label="Step">
<output id="where" for="step"></output>
</div>"""


GRAPH = """
body { display: flex; flex-direction: column; }
header { display: flex; flex-wrap: wrap; gap: 6px 12px; align-items: center; padding: 8px 14px; border-bottom: 1px solid var(--rule); }
header h1 { flex: 1 1 12rem; }
nav { display: flex; flex-wrap: wrap; gap: 5px; }
#graph { flex: 1; min-height: 0; overflow: auto; }
#graph svg { display: block; margin: 0 auto; }
#told { margin: 0; padding: 10px 14px; max-height: 34vh; overflow: auto; border-top: 1px solid var(--rule); background: var(--raised);
  font: 12.5px/1.5 ui-monospace, Menlo, Consolas, monospace; white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext; }
footer.tensorgrad-graph { display: flex; flex-wrap: wrap; gap: 2px 14px; padding: 6px 14px; border-top: 1px solid var(--rule); color: var(--muted);
  font: .8rem/1.5 system-ui, sans-serif; }
footer i { display: inline-block; width: 18px; height: 11px; margin-right: 5px; border: 1.5px solid; vertical-align: -1px; }
.tensorgrad-graph .node:not(.note), .tensorgrad-graph .handle, .tensorgrad-graph .closed[role] { cursor: pointer; }
.tensorgrad-graph :focus { outline: none; }
.tensorgrad-graph :focus-visible { outline: 2px solid var(--accent); }
.tensorgrad-graph .grip { fill: transparent; stroke: none; }
.tensorgrad-graph .handle:hover .grip, .tensorgrad-graph .handle:focus-visible .grip { fill: var(--group); }
.tensorgrad-graph .head.count { text-anchor: end; }
.tensorgrad-graph .closed[role] .title { fill: var(--step-edge); }
.tensorgrad-graph .closed[role]:hover rect { stroke: var(--step-edge); }
@media (max-width: 600px) {
  header { padding: 6px 8px; } nav { gap: 4px; } nav button { padding: 4px 7px; font-size: .8rem; }
  footer.tensorgrad-graph { padding: 4px 8px; font-size: .72rem; gap: 0 9px; }
}
.tensorgrad-graph .lit > rect { stroke-width: 3; stroke: var(--hot); }
.tensorgrad-graph .edge.lit { stroke: var(--hot); stroke-width: 2.5; }
"""  # noqa: E501
LEGEND = """<footer class="tensorgrad-graph"><span><i style="background:var(--step);border-color:var(--step-edge);border-radius:5px"></i>step</span>
<span><i style="background:var(--leaf);border-color:var(--leaf-edge)"></i>parameter or leaf</span>
<span><i style="background:var(--constant);border-color:var(--constant-edge)"></i>no gradient</span>
<span><i style="background:var(--value);border-color:var(--value);border-radius:5px"></i>output</span></footer>"""  # noqa: E501
BUTTONS = (("all", "Open all", "Open all groups"), ("none", "Close all", "Close all groups"),
           ("first", "Reset", "As it was in the beginning"), ("out", "−", "Smaller (−)"), ("in", "+", "Larger (+)"),
           ("fit", "Fit", "The whole graph (0)"))


def graph_page(tree: Tree, shows: Shows, title: str, note: str = "") -> str:
    """The page of a graph: groups open and close, and each box tells what is known of it."""
    wanted = held(tree)
    drawn = Scene(tree, shows, unfolded(tree, FIRST), wanted)
    data = {"root": tree.root.key, "flip": shows.backward, "border": BORDER, "header": HEADER, "line": LINE, "pad": PAD,
            "margin": MARGIN, "title": title,
            "open": sorted(drawn.opened),
            "groups": {g.key: told_group(g, drawn.inside[g.key], drawn, wanted)
                       for g in tree.groups if g.key in wanted}}
    buttons = "".join(f'<button type="button" data-do="{do}" title="{tip}" aria-label="{tip}">{name}</button>'
                      for do, name, tip in BUTTONS)
    told = f'<pre id="told"{"" if note else " hidden"} aria-live="polite">{escape(note, lines=True)}</pre>'
    body = (f'<header><h1>{escape(title)}</h1><nav>{buttons}</nav></header>\n<main id="graph" '
            f'tabindex="-1"></main>\n{told}\n{LEGEND}')
    return page(title, body, STYLE + GRAPH, f"const data = {script(data)};\n{beside('graph.js')}")


def held(tree: Tree) -> set[str]:
    """The groups whose contents a page holds: all of them, or, from the outermost, as many as there is room for."""
    found, boxes = {tree.root.key}, len(tree.root.members)
    todo = deque([tree.root])
    while todo:
        for member in todo.popleft().members:
            if isinstance(member, Group) and boxes + len(member.members) <= MOST:
                boxes += len(member.members)
                found.add(member.key)
                todo.append(member)
    return found


def told_group(group: Group, inner: Inside, drawn: Scene, wanted: set[str]) -> dict[str, Any]:
    """A group for the script."""
    places = inner.layout
    ends = [round(way[-1][0] - places.x[t], 1) for (_, t, _), way in zip(inner.edges, places.routes)]
    return {"title": shorten(group.title), "count": told_count(group), "head": round(head_width(group)),
            "boxes": [told_box(box, low, wanted) for box, low in zip(inner.boxes, places.low)],
            "edges": [(s, t, source, 0 if inner.boxes[t].key in drawn.opened else end, bends)
                      for (s, t, source), end, bends in zip(inner.edges, ends, places.bends)],
            "x": [round(x, 1) for x in places.at], "rank": places.rank, "order": places.order,
            "tops": [round(y, 1) for y in places.tops], "tall": [round(h, 1) for h in places.tall]}


def told_box(box: Box, low: bool, wanted: set[str]) -> dict[str, Any]:
    """A box for the script: its size when closed, and, where that is another, when it was laid out."""
    told: dict[str, Any] = {"key": box.key, "kind": box.kind}
    small = closed(box.group) if box.group is not None else box
    if box.kind != "port":
        told |= {"w": round(small.width, 1), "h": round(small.height, 1), "lines": box.lines, "tip": box.tip}
    if box.group is not None:
        told |= {"w0": round(box.width, 1), "group": int(box.key in wanted), "stack": int(box.group.count > 0)}
        told |= ({} if box.key in wanted
                 else {"tip": f"{box.tip}\nThe page has no room for these {box.group.steps} steps."})
    return told | ({"low": 1} if low else {})


__all__ = ["controls", "graph_page", "page"]
