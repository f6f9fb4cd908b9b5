"""The time of each algorithm of a collective against the size of the vector: where latency counts, and where bandwidth
does.
"""
from __future__ import annotations

from math import log10
from typing import TYPE_CHECKING

from ..text import escape
from .network import Network, amount, predicted, seconds
from .schedules import COLLECTIVES, Algorithm

if TYPE_CHECKING:
    from .collective import Collective

SIZES = (4e3, 64e3, 4e6, 100e6)                     # of the table
LOW, HIGH = 3, 9                                    # powers of ten of the chart: 1 kB to 1 GB
WIDE, TALL, LEFT, BELOW, RIGHT, ABOVE = 560, 300, 66, 40, 138, 12
APART = 15                                          # between two labels


def others(ran: Collective) -> dict[str, Algorithm]:
    """The algorithms that the ranks could have used over the same network."""
    n = ran.ranks
    return {name: a for name, a in COLLECTIVES[ran.kind].items() if a.shared == ran.algorithm.shared
            and not (a.powers and n & (n - 1))}


def times(ran: Collective, nbytes: float) -> dict[str, float]:
    return {name: predicted(algorithm, ran.ranks, nbytes, ran.network) for name, algorithm in others(ran).items()}


def table(ran: Collective) -> str:
    """The algorithms with their formulas, and their times at some sizes."""
    columns = {size: times(ran, size) for size in SIZES}
    head = "".join(f"<th>{amount(size)}</th>" for size in SIZES)
    rows = []
    for name, algorithm in others(ran).items():
        cells = "".join(f'<td{" class=best" * (found[name] <= min(found.values()))}>{seconds(found[name])}</td>'
                        for found in columns.values())
        rows.append(f'<tr{" class=this" * (name == ran.name)}><th '
                    f'scope="row">{escape(name)}</th><td>{algorithm.rounds.text}</td>'
                    f"<td>{algorithm.volume.times('m')}</td>{cells}</tr>")
    return (f'<table class="numbers"><thead><tr><th>algorithm</th><th>messages</th><th>bytes</th>{head}</tr></thead>'
            f'<tbody>{"".join(rows)}</tbody></table>')


def chart(ran: Collective) -> str:
    """A line for each algorithm, both axes logarithmic, with a mark at the size that was run if there is room for
    it.
    """
    ends = [predicted(a, ran.ranks, 10.0 ** power, ran.network) for a in others(ran).values() for power in (LOW, HIGH)]
    bottom, top = int(log10(min(ends)) // 1), int(-(-log10(max(ends)) // 1))
    scale = Scale(bottom, top)
    parts = [f'<svg class="chart" viewBox="0 0 {WIDE} {TALL}" role="img" aria-label="Time against bytes for '
             f'{escape(", ".join(others(ran)))}">']
    for power in range(LOW, HIGH + 1):
        x = scale.x(10.0 ** power)
        parts.append(f'<path class="grid" d="M{x:.1f} {ABOVE}V{TALL - BELOW}"/>'
                     f'<text class="tick" x="{x:.1f}" y="{TALL - BELOW + 18}">{amount(10.0 ** power)}</text>')
    for power in range(bottom, top + 1):
        y = scale.y(10.0 ** power)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDE - RIGHT}"/>'
                     f'<text class="tick side" x="{LEFT - 8}" y="{y + 4:.1f}">{seconds(10.0 ** power)}</text>')
    ordered = sorted(others(ran).items(), key=lambda item: predicted(item[1], ran.ranks, 10.0 ** HIGH, ran.network))
    labels = spread([scale.y(predicted(a, ran.ranks, 10.0 ** HIGH, ran.network)) for _, a in ordered])
    for number, (name, algorithm) in enumerate(ordered):
        line = curve(algorithm, ran.ranks, ran.network, scale)
        y = scale.y(predicted(algorithm, ran.ranks, 10.0 ** HIGH, ran.network))
        room = labels[number]
        this = " this" * (name == ran.name)
        parts.append(f'<path class="line r{number % 8}{this}" d="{line}"/><path class="lead" d="M{WIDE - RIGHT} '
                     f'{y:.1f}L{WIDE - RIGHT + 12} {room:.1f}"/><text class="name r{number % 8}{this}" '
                     f'x="{WIDE - RIGHT + 16}" y="{room + 4:.1f}">{escape(name)}</text>')
    return "".join([*parts, f'<text class="tick" x="{(LEFT + WIDE - RIGHT) / 2:g}" y="{TALL - 4}">bytes of the '
                            f'vector</text></svg>'])


def spread(places: list[float]) -> list[float]:
    """Places of labels, from the lowest to the highest, moved apart where they are too close, and none above the chart.

    >>> spread([100.0, 99.0, 10.0, 9.0])
    [100.0, 85.0, 27.0, 12.0]
    """
    for i in range(1, len(places)):
        places[i] = min(places[i], places[i - 1] - APART)
    least = float(ABOVE)
    for i in reversed(range(len(places))):
        places[i] = max(places[i], least)
        least = places[i] + APART
    return places


class Scale:
    """From bytes and seconds to places in the chart."""

    def __init__(self, bottom: int, top: int) -> None:
        self.bottom, self.top = bottom, top

    def x(self, nbytes: float) -> float:
        return LEFT + (WIDE - LEFT - RIGHT) * (log10(nbytes) - LOW) / (HIGH - LOW)

    def y(self, took: float) -> float:
        return TALL - BELOW - (TALL - BELOW - ABOVE) * (log10(took) - self.bottom) / (self.top - self.bottom)


def curve(algorithm: Algorithm, n: int, network: Network, scale: Scale) -> str:
    points = [10 ** (LOW + (HIGH - LOW) * i / 36) for i in range(37)]
    return "M" + "L".join(f"{scale.x(b):.1f} {scale.y(predicted(algorithm, n, b, network)):.1f}" for b in points)


__all__ = ["chart", "others", "table"]
