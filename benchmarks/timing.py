"""How things are timed here: interleaved, in short blocks, medians of ratios."""
from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Row:
    """One line of the report: what was timed, our time in microseconds, and its ratio to PyTorch's (None without PyTorch)."""

    name: str
    ours: float
    ratio: float | None
    note: str = ""


def calls_for(action: Callable[[], object], seconds: float) -> int:
    """How many calls fill a block."""
    calls = 1
    while True:
        start = time.perf_counter()
        for _ in range(calls):
            action()
        taken = time.perf_counter() - start
        if taken > seconds / 4:
            return max(1, int(calls * seconds / taken))
        calls *= 4


def block(action: Callable[[], object], calls: int) -> float:
    """The time of one call, measured over a block of them with the collector off."""
    gc.disable()
    start = time.perf_counter()
    for _ in range(calls):
        action()
    taken = (time.perf_counter() - start) / calls
    gc.enable()
    return taken


def compare(name: str, ours: Callable[[], object], theirs: Callable[[], object] | None, *, rounds: int = 9, seconds: float = 0.15, per: int = 1,
            note: str = "") -> Row:
    """Time both in turn (A B A B …); `per` is how many things one call does."""
    mine = calls_for(ours, seconds)
    other = calls_for(theirs, seconds) if theirs else 0
    times, ratios = [], []
    for _ in range(rounds):
        times.append(block(ours, mine))
        if theirs:
            ratios.append(times[-1] / block(theirs, other))
    return Row(name, statistics.median(times) / per * 1e6, statistics.median(ratios) if ratios else None, note)
