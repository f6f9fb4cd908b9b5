"""Time cases in turn: in short blocks, all libraries in each round, so that what drifts meets all alike.

Threads of the others (OpenMP's, OpenBLAS's) look out for work for a while after their last, on a processor that the one
timed needs. No program has both, so each block comes after a rest in which they fall asleep, and after a run which
wakes its own.
"""
from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

REST = 0.05                             # seconds until threads sleep


class Limits(Protocol):
    """How much time a comparison may take: rounds, or seconds for each case once `fewest` rounds are done."""

    @property
    def rounds(self) -> int: ...

    @property
    def limit(self) -> float: ...

    @property
    def fewest(self) -> int: ...


@dataclass(frozen=True)
class Budget:
    """`seconds` is what a block takes, or one run if that is longer."""

    rounds: int = 11
    seconds: float = 0.1
    limit: float = 4.0
    fewest: int = 3


class Timed(Protocol):
    """A case of this process or of another: `fill` says how many runs fill a block, `block` is the time of a run.

    `rest`: seconds until its threads sleep.
    """

    @property
    def rest(self) -> float: ...

    def fill(self, budget: Any) -> int: ...

    def block(self, runs: int, budget: Any) -> float: ...


def alternate(things: Sequence[Timed], budget: Limits) -> list[list[float]]:
    """Return the times of all, block by block, in the order A B B A A B …"""
    runs, rest = [thing.fill(budget) for thing in things], things[-1].rest
    times: list[list[float]] = [[] for _ in things]
    start = time.perf_counter()
    for turn in range(budget.rounds):
        # no time for one more
        if turn >= budget.fewest and time.perf_counter() - start > budget.limit * len(things) * turn / (turn + 1):
            break
        for i in range(len(things))[::-1 if turn % 2 else 1]:
            time.sleep(rest)
            rest = things[i].rest
            if runs[i] > 1:
                things[i].block(max(1, runs[i] // 8), budget)       # the caches are another's, and the threads asleep
            times[i].append(things[i].block(runs[i], budget))
    return times


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the first quartile, the median and the third.

    >>> quartiles([1.0, 2.0, 3.0])
    (1.5, 2.0, 2.5)
    """
    if len(values) < 2:
        return values[0], values[0], values[0]
    first, middle, third = statistics.quantiles(values, n=4, method="inclusive")
    return first, middle, third
