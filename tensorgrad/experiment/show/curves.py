"""Thin curves, and compute their axes and their paths in a square of 1000 by 1000."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .reading import Record, Series

SIDE = 1000


@dataclass
class Curve:
    """The points of a run in a chart: `epochs` is None if the run has none; a value that is not finite is a gap."""

    run: int
    steps: np.ndarray
    epochs: np.ndarray | None
    times: np.ndarray
    values: np.ndarray
    gaps: int


def curve(run: int, record: Record, series: Series, most: int) -> Curve:
    """Return a metric of a run, thinned to about `most` points."""
    kept = thinned(series.values, most)
    rows, epochs = series.rows[kept], spread_epochs(record.epochs)
    values = np.where(np.isfinite(series.values), series.values, np.nan)[kept]
    return Curve(
        run,
        record.steps[rows],
        None if epochs is None else epochs[rows],
        record.times[rows],
        values,
        int(np.count_nonzero(~np.isfinite(series.values))),
    )


def thinned(values: np.ndarray, most: int) -> np.ndarray:
    """Return the indices of the values to draw: of each of several equal parts the least, the greatest and a non-finite
    one, in their order.

    The first and the last are always included.

    >>> thinned(np.array([1., 5., 0., 2., 2., 9.]), 4).tolist()
    [0, 1, 2, 3, 5]
    """
    count = len(values)
    if count <= most:
        return np.arange(count)
    kept = {0, count - 1}
    edges = np.linspace(0, count, max(most // 2, 1) + 1).astype(int).tolist()
    finite = np.isfinite(values)
    low, high = np.where(finite, values, np.inf), np.where(finite, values, -np.inf)
    for start, end in zip(edges, edges[1:], strict=False):
        known = finite[start:end]
        if known.any():
            kept |= {start + int(low[start:end].argmin()), start + int(high[start:end].argmax())}
        if not known.all():
            kept.add(start + int(known.argmin()))
    return np.array(sorted(kept))


def spread_epochs(epochs: np.ndarray) -> np.ndarray | None:
    """Return an epoch for each row if some rows have one: rows between two epochs are spread evenly.

    None without two epochs.

    >>> spread_epochs(np.array([0., np.nan, 1., 1., 2.])).tolist()
    [0.0, 0.5, 1.0, 1.5, 2.0]
    """
    rows = np.flatnonzero(np.isfinite(epochs))
    if len(rows) < 2:
        return None
    rows = rows[np.concatenate([[True], np.diff(epochs[rows]) != 0])]
    if len(rows) < 2:
        return None
    known, every = epochs[rows], np.arange(len(epochs))
    spread = np.interp(every, rows, known)
    for out, near, far in ((every < rows[0], 0, 1), (every > rows[-1], -1, -2)):
        slope = (known[near] - known[far]) / (rows[near] - rows[far])
        spread[out] = known[near] + slope * (every[out] - rows[near])
    return spread


def reach(arrays: Sequence[np.ndarray], pad: float = 0.0) -> tuple[float, float]:
    """Return the least and the greatest finite number, with a margin."""
    known = np.concatenate([a[np.isfinite(a)] for a in arrays]) if arrays else np.empty(0)
    if not len(known):
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    if high / 2 - low / 2 < 1e-300:
        half = abs(low) / 2 or 0.5
        return low - half, high + half
    room = high / 2 - low / 2
    return max(low - 2 * pad * room, -1e308), min(high + 2 * pad * room, 1e308)


def ticks(low: float, high: float, most: int) -> list[float]:
    """Return round numbers between two limits.

    >>> ticks(0, 97, 5)
    [0.0, 20.0, 40.0, 60.0, 80.0]
    """
    rough = high / most - low / most
    if not (0 < rough < math.inf) or rough < 1e-300:
        return []
    power = 10.0 ** math.floor(math.log10(rough))
    size = next((m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * 0.999999), 10 * power)
    return [k * size for k in range(math.ceil(low / size - 1e-9), math.floor(high / size + 1e-9) + 1)]


def part(value: Any, ends: tuple[float, float]) -> Any:
    """Return the position of a number between two ends, 0 to 1."""
    return (value / 2 - ends[0] / 2) / (ends[1] / 2 - ends[0] / 2)  # halved, so that differences do not overflow


def path(xs: np.ndarray, ys: np.ndarray, x: tuple[float, float], y: tuple[float, float]) -> str:
    """Return the path of a line through the points, interrupted by gaps; a point between two gaps is a dot."""
    known = np.isfinite(xs) & np.isfinite(ys)
    with np.errstate(all="ignore"):
        across, down = np.round(part(xs, x) * SIDE, 1), np.round((1 - part(ys, y)) * SIDE, 1)
    parts, before = list[str](), False
    for i, here in enumerate(known.tolist()):
        if here:
            lonely = not before and not (i + 1 < len(known) and known[i + 1])
            parts.append(f"{'L' if before else 'M'}{across[i]:g} {down[i]:g}" + "h.01" * lonely)
        before = here
    return "".join(parts)
