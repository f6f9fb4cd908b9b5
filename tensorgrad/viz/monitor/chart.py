"""Lines over the steps of a training, as SVG with literal colours; a page's style turns them for dark paper."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..svg import COLOURS
from ..text import escape

# On white and on dark paper: told apart by colour-blind readers, and by their dashes.
LINES = (("#0072b2", "#5bb0e8"), ("#d55e00", "#ff9a3d"), ("#00795a", "#2ccb9c"),
         ("#b0568c", "#e29bc4"), ("#8a6100", "#f0c64a"), ("#334155", "#e8edf4"))
DASHES = ("", "6 3", "2 3", "8 3 2 3")
MOST = len(LINES) * 2           # lines of one chart
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 360, 210, 50, 10, 10, 34
POINTS = 200                    # of a line; of more, the lowest and the highest of each stretch

INK, SOFT, RULE = COLOURS["ink"], COLOURS["soft"], ("#d5dce6", "#2c3644")
STYLE = ("@media (prefers-color-scheme: dark) {" + "".join(f".c{i}{{stroke:{dark}}}.f{i}{{fill:{dark}}}"
                                                           for i, (_, dark) in enumerate(LINES))
         + f".ink{{fill:{INK[1]}}}.soft{{fill:{SOFT[1]}}}.rule{{stroke:{RULE[1]}}}}}\n")


@dataclass
class Line:
    """Values over steps, under a name. NaN and infinities are gaps."""

    name: str
    steps: Sequence[int]
    values: Sequence[float]


def picked(lines: list[Line]) -> list[Line]:
    """As many lines as a chart shows, spread evenly from the first to the last."""
    if len(lines) <= MOST:
        return lines
    return [lines[round(i * (len(lines) - 1) / (MOST - 1))] for i in range(MOST)]


def look(index: int) -> str:
    """The colour and the dashes of a line."""
    dash = DASHES[index // len(LINES) % len(DASHES)] if index >= len(LINES) else DASHES[index % 2]
    colour = index % len(LINES)
    return f'class="c{colour}" stroke="{LINES[colour][0]}"' + (f' stroke-dasharray="{dash}"' if dash else "")


def thinned(steps: Sequence[int], values: Sequence[float]) -> list[tuple[int, float]]:
    """The points of a line: all, or of each stretch the lowest, the highest and a gap if there was one.

    >>> len(thinned(range(1000), [0.0, 1.0] * 500)) <= 3 * POINTS
    True
    """
    points = list(zip(steps, values, strict=True))
    if len(points) <= 2 * POINTS:
        return points
    kept = []
    for k in range(POINTS):
        stretch = points[k * len(points) // POINTS:(k + 1) * len(points) // POINTS]
        known = [point for point in stretch if math.isfinite(point[1])]
        gaps = [point for point in stretch if not math.isfinite(point[1])][:1]
        kept += sorted({min(known, key=lambda p: p[1]), max(known, key=lambda p: p[1]), *gaps} if known else gaps)
    return kept


def ticks(low: float, high: float, log: bool) -> list[float]:
    """Round numbers between two numbers: about four, or powers of ten.

    >>> ticks(0, 1, False)
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    if log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        found = [10.0 ** k for k in range(first, last + 1, max(1, (last - first + 4) // 4))]
        return found if len(found) > 1 else [low, high]
    rough = (high - low) / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * m for m in (1, 2, 2.5, 5, 10) if unit * m >= rough * 0.999)
    return [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def chart(title: str, lines: list[Line], share: bool = False) -> str:
    """The lines as one SVG element; "" if there is no finite number. With `share` the scale is from 0 to 1.

    A logarithmic scale where values are positive and span more than two powers of ten.

    >>> chart("loss", [Line("loss", [1, 2], [3.0, 1.0])]).count("<title>loss</title>")
    1
    """
    drawn = [thinned(line.steps, line.values) for line in lines]
    known = [value for points in drawn for _, value in points if math.isfinite(value)]
    if not known:
        return ""
    steps = [step for points in drawn for step, _ in points]
    low, high = (0.0, 1.0) if share else (min(known), max(known))
    log = not share and low > 0 and high > 100 * low
    if low == high:
        low, high = low - (abs(low) / 2 or 1), high + (abs(high) / 2 or 1)
    first, last = min(steps), max(max(steps), min(steps) + 1)

    def across(step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (step - first) / (last - first)

    def up(value: float) -> float:
        part = math.log(value / low) / math.log(high / low) if log else (value - low) / (high - low)
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * part
    paths = [path([(across(step), up(value) if math.isfinite(value) else None) for step, value in points], i)
             for i, points in enumerate(drawn)]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'font-family="system-ui,sans-serif" font-size="11">'
            f"<title>{escape(title)}</title>{grid(ticks(low, high, log), up)}{below(first, last, across)}"
            f"{''.join(paths)}</svg>")


def path(points: list[tuple[float, float | None]], index: int) -> str:
    """A line with gaps; a point between two gaps is a dot."""
    told, before = "", False
    for k, (x, y) in enumerate(points):
        if y is not None:
            alone = not before and (k + 1 == len(points) or points[k + 1][1] is None)
            told += f"{'L' if before else 'M'}{x:.1f} {y:.1f}" + ("h.01" if alone else "")
        before = y is not None
    wide = 4 if "L" not in told else 1.8
    return (f'<path d="{told}" fill="none" stroke-width="{wide}" stroke-linecap="round" stroke-linejoin="round" '
            f'{look(index)}/>' if told else "")


def grid(values: list[float], up) -> str:                                                        # type: ignore[no-untyped-def]
    return "".join(f'<path class="rule" d="M{LEFT} {up(v):.1f}H{WIDTH - RIGHT}" stroke="{RULE[0]}"/>'
                   f'<text class="soft" x="{LEFT - 6}" y="{up(v) + 4:.1f}" text-anchor="end" '
                   f'fill="{SOFT[0]}">{short(v)}</text>' for v in values)


def below(first: int, last: int, across) -> str:                                                 # type: ignore[no-untyped-def]
    whole = sorted({round(v) for v in ticks(first, last, False)} | {first})
    told = [v for v in whole if v == first or across(v) - across(first) > 30]
    return "".join(f'<text class="soft" x="{across(v):.1f}" y="{HEIGHT - 18}" text-anchor="middle" '
                   f'fill="{SOFT[0]}">{v}</text>' for v in told) + (
        f'<text class="soft" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 4}" text-anchor="middle" '
        f'fill="{SOFT[0]}">step</text>')


def short(value: float) -> str:
    """A number in few characters.

    >>> short(0.0001), short(0.25), short(12345.0)
    ('1e-4', '0.25', '1.2e4')
    """
    if value and not 1e-3 <= abs(value) < 1e4:
        return f"{value:.1e}".replace(".0e", "e").replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def legend(lines: list[Line]) -> str:
    """The names of lines, each with a piece of its line."""
    return '<ul class="legend">' + "".join(
        f'<li><svg viewBox="0 0 26 8" width="26" height="8" aria-hidden="true"><path d="M1 4H25" stroke-width="2.2" '
        f'{look(i)}/></svg>'
        f"{escape(line.name)}</li>"
        for i, line in enumerate(lines)) + "</ul>"
