"""Boxes of a graph's picture, with their lines of text and sizes, and the layout of each group's contents."""
from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from .fold import Group, Tree
from .layout import Layout, layout
from .model import Edge, Node, leaf_name
from .text import LABEL, clean, columns, numbers, shorten, size, tooltip

# heights of a line and of a group's head; paddings of boxes and of groups
LINE, PAD, HEADER, BORDER = 15.0, 6.0, 26.0, 12.0
COLUMN = {"title": 7.4, "label": 6.2}                   # widths of a letter, by the class of its line
DETAIL = 6.7
ROOM = 60                                               # boxes up to which groups are open at first
LINES = 6                                               # of a text that was given


@dataclass(slots=True)
class Shows:
    """Options of a picture: the details of each tensor and step that it shows."""

    shapes: bool = True
    values: bool = False
    gradients: bool = False
    saved: bool = False
    source: bool = False
    backward: bool = False          # drawn the way gradients go: from the outputs down to the leaves
    sideways: bool = False          # drawn from left to right; for a graph without groups
    upright: bool = False           # texts of edges are turned by 90°


@dataclass(slots=True, eq=False)
class Box:
    """A rectangle of the picture."""

    key: str
    kind: str                               # "leaf", "constant", "step", "value", "failed", "group", "label" or "port"
    lines: list[tuple[str, str]] = field(default_factory=list)       # (class, text)
    tip: str = ""
    width: float = 0.0
    height: float = 0.0
    group: Group | None = None
    upright: bool = False                   # its text is turned by 90°


@dataclass(slots=True, eq=False)
class Inside:
    """A group's contents: boxes, edges (index of a box, index of a box, id of the tensor's node), and their layout."""

    boxes: list[Box]
    edges: list[tuple[int, int, str]]
    layout: Layout


class Scene:
    """Boxes of a tree, and the layout of each group that is open or in `wanted`."""

    def __init__(self, tree: Tree, shows: Shows, opened: set[str] | None = None,
                 wanted: set[str] | None = None) -> None:
        self.tree, self.shows = tree, shows
        self.opened = unfolded(tree) if opened is None else opened
        self.inside: dict[str, Inside] = {}
        self.known: dict[Any, Layout] = {}
        self.entering: dict[str, list[str]] = {}      # {open group: keys of its input ports, from left to right}
        drawn = [group for group in tree.groups if group.key in self.opened or wanted is not None
                 and group.key in wanted]
        for group in reversed(drawn):
            self.arrange(group)
        if self.reorder(drawn):
            for group in reversed(drawn):
                self.arrange(group)

    def box(self, member: Any) -> Box:
        if isinstance(member, Group):
            return self.group_box(member)
        kind = "constant" if member.kind == "leaf" and member.tape is None else member.kind
        return sized(Box(member.id, kind, self.lines(member), tooltip(self.told(member))))

    def group_box(self, group: Group) -> Box:
        box = closed(group)
        if group.key in self.opened:
            inner = self.inside[group.key].layout
            box.width, box.height = max(inner.width + 2 * BORDER, head_width(group)), inner.height + HEADER + BORDER
        return box

    # ── text ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def lines(self, node: Node) -> list[tuple[str, str]]:
        """Return the lines of a node's box as (class, text)."""
        shows = self.shows
        title = shorten(leaf_name(node, self.tree.home[node.id].path) if node.kind == "leaf" else node.title)
        if shows.backward and node.kind == "step" and hasattr(node.tape, "name"):
            title = shorten(node.tape.name())
        lines = [("title", title)]
        if node.error:
            lines += [("detail", part) for part in explained(node)]
        if caption := self.tree.captions.get(node.id, node.name if node.kind == "step" else None):
            lines.append(("name", shorten(caption)))
        is_number = node.kind == "leaf" and node.dtype is None
        if shows.shapes and not is_number and node.kind != "failed":
            lines.append(("detail", shorten(size(node.shape))))
        if shows.values and node.value is not None and not is_number:
            lines.append(("value", shorten(f"= {numbers(node.value)}")))
        if shows.gradients and node.gradient is not None:
            lines.append(("gradient", shorten(f"grad {numbers(node.gradient)}")))
        if shows.saved and node.saved:
            lines.append(("detail", shorten(f"saves {', '.join(node.saved)}")))
        if shows.source and node.source is not None:
            file, line, text = node.source
            lines.append(("source", shorten(f"{PurePath(file).name}:{line}")))
            lines += [("source", text if len(text) <= LABEL else f"{text[:LABEL - 1]}…")] if text else []
        return lines

    def told(self, node: Node) -> str:
        """Return everything known of a node, for its tooltip."""
        told = [node.name if node.name and node.kind == "leaf" else node.title]
        if node.kind == "step":
            told[0] += f"({given})" if (given := node.arguments()) else ""
            told += [node.about] if node.tape is None else [f"grad_fn: {node.tape.name()}"]
        if node.dtype is not None:
            told.append(f"shape: {size(node.shape)}, "
                        f"{', '.join(map(str, node.dtype)) if isinstance(node.dtype, tuple) else node.dtype}")
        if node.value is not None and node.dtype is not None:
            told.append(f"value: {numbers(node.value, 12)}")
        if node.gradient is not None:
            told.append(f"gradient: {numbers(node.gradient, 12)}")
        if node.saved:
            told.append(f"saves {', '.join(node.saved)}")
        if node.group:
            told.append(f"module: {'.'.join(node.group)}")
        if node.source is not None:
            told.append(f"{node.source[0]}:{node.source[1]}  {node.source[2]}".rstrip())
        return "\n".join(told + ([node.error] if node.error else []))

    # ── places ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def arrange(self, group: Group) -> None:
        """Lay out a group's contents; the groups inside of it have a layout already."""
        boxes = [self.box(member) for member in group.members]
        place = {box.key: i for i, box in enumerate(boxes)}
        top, bottom = [], []
        edges: list[tuple[int, int, str]] = []
        for (source, a, b), of in group.links.items():
            for key, side in ((a, top), (b, bottom)):
                if key not in place:
                    place[key] = len(boxes)
                    side.append(len(boxes))
                    boxes.append(Box(key, "port", width=1.0))
            s, t = place[a], place[b]
            for edge in of if boxes[t].group is None and boxes[t].kind != "port" else of[:1]:      # w * w has two edges
                if (label := self.label(edge, boxes[s], boxes[t])) is not None:
                    edges += [(s, len(boxes), source), (len(boxes), t, source)]
                    boxes.append(label)
                else:
                    edges.append((s, t, source))
        ports = [(self.port(boxes[s], f"out:{source}"), self.port(boxes[t], f"in:{source}")) for s, t, source in edges]
        plain = tuple((s, t) for s, t, _ in edges)
        sizes = tuple((box.height, box.width) if self.shows.sideways else (box.width, box.height) for box in boxes)
        if wanted := self.entering.get(group.key):
            top = [place[key] for key in wanted]
        key = sizes, plain, tuple(ports), tuple(top), tuple(bottom), bool(wanted)
        if key not in self.known:        # equal blocks share a layout
            found = layout(sizes, plain, top, bottom, ports if any(p != (None, None) for p in ports) else (),
                           bool(wanted))
            self.known[key] = found.transposed() if self.shows.sideways else found
        self.inside[group.key] = Inside(boxes, edges, self.known[key])

    def reorder(self, drawn: list[Group]) -> bool:
        """Note the order of edges into open groups where it differs from that of the ports; True if any does."""
        for group in drawn:
            inner = self.inside[group.key]
            for t, box in enumerate(inner.boxes):
                if box.kind == "group" and box.key in self.opened:
                    came = sorted((inner.layout.at[bends[-1] if bends else s], f"in:{source}")
                                  for (s, b, source), bends in zip(inner.edges, inner.layout.bends) if b == t)
                    if len(came) > 1 and [key for _, key in came] != self.ports(box.key):
                        self.entering[box.key] = [key for _, key in came]
        return bool(self.entering)

    def ports(self, group: str) -> list[str]:
        """Return the keys of an open group's input ports, from left to right."""
        inner = self.inside[group]
        found = [(inner.layout.x[i], box.key) for i, box in enumerate(inner.boxes)
                 if box.kind == "port" and box.key.startswith("in:")]
        return [key for _, key in sorted(found)]

    def label(self, edge: Edge, a: Box, b: Box) -> Box | None:
        """Return a box on an edge that shows its text or its gradient; None where there is nothing to show."""
        if edge.text and "port" not in (a.kind, b.kind):
            box = sized(Box(f"l{edge.target}.{edge.position}", "label",
                            [("detail", shorten(line)) for line in edge.text.split("\n")[:LINES]]))
            if self.shows.upright:
                box.upright, box.width, box.height = True, box.height, box.width
            return box
        if not self.shows.backward or edge.gradient is None or "port" in (a.kind, b.kind) or b.group is not None:
            return None
        return sized(Box(f"l{edge.target}.{edge.position}", "label",
                         [("label", shorten(numbers(edge.gradient, 4), 34))]))

    def port(self, box: Box, key: str) -> float | None:
        """Return the offset of a port from the middle of an open group; None for other boxes."""
        if box.kind != "group" or box.key not in self.opened:
            return None
        inner = self.inside[box.key]
        for i, other in enumerate(inner.boxes):
            if other.key == key:
                return inner.layout.x[i] - inner.layout.width / 2
        return None


def closed(group: Group) -> Box:
    """Return the box of a closed group."""
    lines = [("title", shorten(group.title)), ("detail", told_steps(group))]
    return sized(Box(group.key, "group", lines, tooltip(".".join(group.path) or group.title), group=group))


def sized(box: Box) -> Box:
    """Clean the text of a box, set its size to fit, and return it."""
    box.lines = [(kind, clean(text)) for kind, text in box.lines]
    box.width = (max((columns(text) * COLUMN.get(kind, DETAIL) for kind, text in box.lines), default=0.0)
                 + (6 if box.kind == "label" else 20))
    box.height = LINE * len(box.lines) + (0 if box.kind == "label" else 2 * PAD)
    return box


def head_width(group: Group) -> float:
    return (columns(shorten(group.title)) + columns(told_count(group)) + 6) * COLUMN["title"]


def told_count(group: Group) -> str:
    return f"× {group.count}" if group.count and not group.repeats else ""


def told_steps(group: Group) -> str:
    count = told_count(group)
    return f"{count}{', ' if count else ''}{group.steps} step{'s' if group.steps != 1 else ''}"


def wrapped(text: str, width: int = 52, most: int = 5) -> list[str]:
    """Wrap a message into at most `most` lines."""
    lines: list[str] = []
    for word in " ".join(text.split()).split(" "):
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(shorten(word, width))
    return lines if len(lines) <= most else [*lines[:most - 1], lines[most - 1] + " …"]


def explained(node: Node) -> list[str]:
    """Return the lines of an error's message, fewer where advice follows.

        The offer of a picture is left out, and the source line, which the box shows anyway.
        """
    message, *advice = node.error.split("\n")
    here = f"{PurePath(node.source[0]).name}, line {node.source[1]}: " if node.source is not None else "\n"
    advice = [line.strip() for line in advice if not line.lstrip().startswith(("A picture of", here))]
    return [*wrapped(message, most=2 if advice else 5), *(part for line in advice for part in wrapped(line, most=3))]


def unfolded(tree: Tree, room: int = ROOM) -> set[str]:
    """Return the groups that are open at first: outer ones first, up to `room` boxes; of repeated blocks, the first."""
    opened, shown = {tree.root.key}, len(tree.root.members)
    todo = deque([tree.root])
    while todo:
        for member in todo.popleft().members:
            if isinstance(member, Group) and not member.repeats and shown + len(member.members) <= room:
                opened.add(member.key)
                shown += len(member.members)
                todo.append(member)
    return opened
