"""The picture of a step: a column for each rank, a row for each chunk, and an arrow for each chunk that is sent."""
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..text import escape
from .schedules import Message
from .steps import Cell, Ran, chunks, plural

if TYPE_CHECKING:
    from .collective import Collective

WIDE, HIGH, ACROSS, BETWEEN = 128, 66, 62, 46       # a cell, and the room between two
LEFT, TOP = 84, 84
CARRIED = ("all_gather", "broadcast")               # what arrives is complete
DOTTED = 8                                          # up to so many ranks are shown as dots; more as a number


class Place(NamedTuple):
    """The upper left corner of a cell."""

    x: float
    y: float

    @staticmethod
    def of(rank: int, chunk: int) -> Place:
        return Place(LEFT + rank * (WIDE + ACROSS), TOP + chunk * (HIGH + BETWEEN))


def picture(ran: Collective, step: Ran | None, last: bool = False) -> str:
    """A step as SVG: the cells after it, and its messages; None: what there is in the beginning.

    In the last step, what is no result is pale.
    """
    cells = step.cells if step else ran.begin
    n = ran.ranks
    corner = Place.of(n, n)
    width, height = corner.x - ACROSS + 14, corner.y - BETWEEN + 46
    parts = [f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
             f'style="--least:{130 * n}px" role="img" aria-label="{escape(described(ran, step))}">']
    parts += [column(rank, ran) for rank in range(n)]
    parts += [f'<text class="label" x="{LEFT - 14}" y="{Place.of(0, c).y + HIGH / 2 + 5:g}">chunk {c}</text>'
              for c in range(n)]
    for rank, row in enumerate(cells):
        for chunk, cell in enumerate(row):
            whole = cell is not None and (len(cell.parts) == n or ran.kind in CARRIED)
            kind = "whole" * whole + " pale" * (last and not is_result(ran, rank, chunk))
            parts.append(box(rank, chunk, cell, step.made.get((rank, chunk), "") if step else "", n, kind))
    if step:
        # short ways over long ones
        sent = sorted(step.sent, key=lambda s: -abs(s.message.source - s.message.target))
        depths = lanes(step)
        parts += [arrow(s.message, chunk, text, depths.get((s.message.source, s.message.target, chunk), 0.0))
                  for s in sent for chunk, text in zip(s.message.chunks, s.carried)]
    return "".join([*parts, "</svg>"])


def is_result(ran: Collective, rank: int, chunk: int) -> bool:
    """Return True if a cell belongs to the result of its rank."""
    return {"reduce_scatter": rank == chunk, "reduce": rank == ran.root}.get(ran.kind, True)


def described(ran: Collective, step: Ran | None) -> str:
    """The picture in words."""
    if step is None:
        return f"{ran.ranks} ranks before the first step"
    return f"{step.phase}: " + "; ".join(f"rank {s.message.source} sends {chunks(s.message.chunks)} to rank "
                                         f"{s.message.target}" for s in step.sent)


def column(rank: int, ran: Collective) -> str:
    """The name of a rank above its cells."""
    x = Place.of(rank, 0).x
    root = " · root" if ran.kind in ("broadcast", "reduce") and rank == ran.root else ""
    return (f'<g class="rank r{rank % 8}"><rect x="{x}" y="8" width="{WIDE}" height="34" rx="17"/>'
            f'<text x="{x + WIDE / 2:g}" y="31">rank {rank}{root}</text></g>')


def box(rank: int, chunk: int, cell: Cell | None, made: str, n: int, kind: str) -> str:
    """A chunk of a rank: how its values were computed, the values, and whose values are in them."""
    x, y = Place.of(rank, chunk)
    inner = f'<rect x="{x}" y="{y}" width="{WIDE}" height="{HIGH}" rx="9"/>'
    if cell is not None:
        middle = x + WIDE / 2
        if made:
            inner += f'<text class="made" x="{middle:g}" y="{y + 16}"{squeezed(made, 6.1)}>{escape(made)}</text>'
        inner += f'<text class="value" x="{middle:g}" y="{y + 36}"{squeezed(cell.text, 9.2)}>{escape(cell.text)}</text>'
        inner += parts_of(cell, n, middle, y + HIGH - 13)
    return f'<g class="cell {"empty " * (cell is None)}{"changed " * bool(made)}{kind}">{inner}</g>'


def squeezed(text: str, wide: float) -> str:
    """Attributes that keep a text within its box."""
    return f' textLength="{WIDE - 12}" lengthAdjust="spacingAndGlyphs"' if len(text) * wide > WIDE - 12 else ""


def parts_of(cell: Cell, n: int, middle: float, y: float) -> str:
    """A dot for each rank: filled if its values are in the chunk."""
    if n > DOTTED:
        return f'<text class="part count" x="{middle:g}" y="{y + 4:g}">{plural(len(cell.parts), "rank")}</text>'
    start = middle - (n - 1) * 8
    return "".join(f'<g class="part r{r % 8}{" in" * (r in cell.parts)}"><circle cx="{start + 16 * r:g}" cy="{y:g}" '
                   f'r="6.6"/><text x="{start + 16 * r:g}" y="{y + 3.4:g}">{r}</text></g>' for r in range(n))


def lanes(step: Ran) -> dict[tuple[int, int, int], float]:
    """How far from the cells each way runs that passes other cells, such that ways on the same side of a row keep
    apart: from 0 to 1.
    """
    sides: dict[tuple[int, bool], list[tuple[int, int]]] = {}
    for sent in step.sent:
        source, target = sent.message.source, sent.message.target
        if abs(source - target) > 1:
            for chunk in sent.message.chunks:
                sides.setdefault((chunk, target > source), []).append((source, target))
    depths = {}
    for (chunk, _), ways in sides.items():
        ways.sort(key=lambda ends: (abs(ends[0] - ends[1]), ends))
        depths |= {(*ends, chunk): (number + 1) / len(ways) for number, ends in enumerate(ways)}
    return depths


def arrow(message: Message, chunk: int, text: str, depth: float) -> str:
    """The way of a chunk from one rank to another, and the token that travels on it."""
    source, target = message.source, message.target
    path = way(source, target, chunk, depth)
    return (f'<g class="message r{source % 8}"><path class="way" d="{path}" marker-end="url(#arrow{source % 8})"/>'
            f'<g class="token" style="offset-path:path(\'{path}\')" aria-hidden="true"><circle r="7"/></g>'
            f"<title>rank {source} → rank {target}, chunk {chunk}: {escape(text)}</title></g>")


def way(source: int, target: int, chunk: int, depth: float) -> str:
    """To the next column straight ahead; further on in a bow, above the cells to the right, below them to the left."""
    a, b = Place.of(source, chunk), Place.of(target, chunk)
    right = target > source
    if abs(target - source) == 1:
        y = a.y + HIGH / 2 + (-9 if right else 9)
        return f"M{a.x + (WIDE + 3 if right else -3):g} {y:g}H{b.x + (-5 if right else WIDE + 5):g}"
    y, away = (a.y, -1) if right else (a.y + HIGH, 1)
    start, end = a.x + WIDE / 2 + (26 if right else -26), b.x + WIDE / 2 + (-1 if right else 1) * (8 + 34 * depth)
    far = 10 + 24 * depth
    bend = min(60.0, abs(end - start) / 3) * (1 if right else -1)
    return (f"M{start:g} {y + 2 * away:g}C{start + bend * .3:g} {y + away * far:g} {start + bend * .6:g} "
            f"{y + away * far:g} {start + bend:g} {y + away * far:g}H{end - bend:g}C{end - bend * .6:g} "
            f"{y + away * far:g} {end - bend * .3:g} {y + away * far:g} {end:g} {y + 5 * away:g}")


MARKERS = '<svg class="markers" aria-hidden="true"><defs>' + "".join(
    f'<marker id="arrow{r}" class="r{r}" viewBox="0 0 8 8" refX="6.5" refY="4" markerWidth="11" markerHeight="11" '
    'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0.5L8 4L0 7.5z"/></marker>'
    for r in range(8)) + "</defs></svg>"

__all__ = ["MARKERS", "picture"]
