"""How things are timed: in short blocks with the collector off, tensorgrad and PyTorch in turn, medians of the ratios of neighbouring blocks.

Threads of the other (OpenMP's, OpenBLAS's) look out for work for some 30 ms after their last, on a processor that the one timed needs: no program has both,
so each block comes after a pause in which they fall asleep, and after a run which wakes its own."""
from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

PAUSE = 0.05                            # seconds before a block


class Case(NamedTuple):
    """Something to time: `run`, and `results`, which computes what has to agree. `prepare`: what comes before each run, apart; `run` takes what it gives."""

    run: Callable[..., object]
    results: Callable[[], Sequence[Any]]
    prepare: Callable[[], object] | None = None


@dataclass(frozen=True)
class Budget:
    """How much time a row may take."""

    rounds: int = 7
    seconds: float = 0.04                                   # a block takes so long, or one run if that is longer
    limit: float = 4.0                                      # all blocks of a row, if that leaves `fewest` rounds
    fewest: int = 3
    clock: Callable[[], float] = time.perf_counter


@dataclass
class Measurement:
    """What came out for a row: our time and PyTorch's, the quartiles of the ratio (both None without PyTorch), or why there is none."""

    ours: float = 0.0
    theirs: float | None = None
    quartiles: tuple[float, float, float] | None = None
    unit: str = "s"
    note: str = ""
    problem: str = ""

    @property
    def ratio(self) -> float | None:
        return None if self.problem or self.quartiles is None else self.quartiles[1]


def block(case: Case, runs: int, clock: Callable[[], float]) -> float:
    """The time of one run, measured over a block of them."""
    run, prepare = case.run, case.prepare
    gc.disable()
    try:
        if prepare is None:
            start = clock()
            for _ in range(runs):
                run()
            return (clock() - start) / runs
        taken = 0.0
        for _ in range(runs):
            prepared = prepare()
            start = clock()
            run(prepared)
            taken += clock() - start
        return taken / runs
    finally:
        gc.enable()


def runs_for(case: Case, budget: Budget) -> int:
    """How many runs fill a block, with what comes before each."""
    runs = 1
    while True:
        start = time.perf_counter()
        block(case, runs, budget.clock)
        taken = time.perf_counter() - start
        if taken > budget.seconds / 4:
            return max(1, int(runs * budget.seconds / taken))
        runs *= 4


def alternate(cases: Sequence[Case], budget: Budget) -> list[list[float]]:
    """The times of the cases, block by block, A B B A A B …: what drifts meets both alike."""
    gc.collect()
    runs = [runs_for(case, budget) for case in cases]
    times: list[list[float]] = [[] for _ in cases]
    start = time.perf_counter()
    for turn in range(budget.rounds):
        if turn >= budget.fewest and time.perf_counter() - start > budget.limit * turn / (turn + 1):        # no time for one more
            break
        for i in range(len(cases))[::-1 if turn % 2 else 1]:
            case, number, found = cases[i], runs[i], times[i]
            time.sleep(PAUSE)
            if number > 1:
                block(case, max(1, number // 8), budget.clock)      # the caches are the other's, and the threads asleep
            found.append(block(case, number, budget.clock))
    return times


def summary(ours: list[float], theirs: list[float] | None, per: int = 1, **more: Any) -> Measurement:
    """Medians of the times, and quartiles of the ratios of blocks that were timed one after the other."""
    mine = statistics.median(ours) / per
    if theirs is None:
        return Measurement(mine, **more)
    return Measurement(mine, statistics.median(theirs) / per, quartiles([a / b for a, b in zip(ours, theirs)]), **more)


def quartiles(values: list[float]) -> tuple[float, float, float]:
    first, middle, third = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return first, middle, third
