"""How things are timed: in short blocks with the collector off, all libraries in turn, medians of the ratios of blocks
of the same round.

Threads of the others (OpenMP's, OpenBLAS's) look out for work for a while after their last, on a processor that the one
timed needs: no program has both, so each block comes after a rest in which they fall asleep, and after a run which
    wakes its own."""
from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

REST = 0.05                             # seconds until threads sleep


@dataclass(frozen=True)
class Budget:
    """How much time a row may take."""

    rounds: int = 7
    seconds: float = 0.04                                   # a block takes so long, or one run if that is longer
    # all blocks of a library in a row, if that leaves `fewest` rounds
    limit: float = 2.0
    fewest: int = 3
    clock: Callable[[], float] = time.perf_counter


class Timed(Protocol):
    """A case that can be timed in turn with others: of this process, or of another.

    `rest`: seconds until its threads sleep.
    """

    @property
    def rest(self) -> float: ...

    def fill(self, budget: Budget) -> int: ...

    def block(self, runs: int, budget: Budget) -> float: ...


class Case(NamedTuple):
    """Something to time: `run`; `prepare`: what comes before each run, apart, and `run` takes what it gives.

    `results` computes what has to agree with PyTorch's, and gives None where that was compared before.
    """

    run: Callable[..., object]
    results: Callable[[], Sequence[Any] | None]
    prepare: Callable[[], object] | None = None
    rest: float = REST

    def block(self, runs: int, budget: Budget) -> float:
        """The time of one run, measured over a block of them."""
        run, prepare, clock = self.run, self.prepare, budget.clock
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

    def fill(self, budget: Budget) -> int:
        """How many runs fill a block, with what comes before each."""
        runs = 1
        while True:
            start = time.perf_counter()
            self.block(runs, budget)
            taken = time.perf_counter() - start
            if taken > budget.seconds / 4:
                return max(1, int(runs * budget.seconds / taken))
            runs *= 4


@dataclass
class Measurement:
    """The result of a row: our time and PyTorch's, the quartiles of the ratio (both None without PyTorch), or the
    reason why there is none."""

    ours: float = 0.0
    theirs: float | None = None
    quartiles: tuple[float, float, float] | None = None
    unit: str = "s"
    note: str = ""
    problem: str = ""

    @property
    def ratio(self) -> float | None:
        return None if self.problem or self.quartiles is None else self.quartiles[1]


def alternate(things: Sequence[Timed], budget: Budget) -> list[list[float]]:
    """Their times, block by block, A B B A A B …: what drifts meets all alike."""
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


def summary(ours: list[float], theirs: list[float] | None, per: int = 1, **more: Any) -> Measurement:
    """Medians of the times, and quartiles of the ratios of blocks of the same round."""
    mine = statistics.median(ours) / per
    if theirs is None:
        return Measurement(mine, **more)
    return Measurement(mine, statistics.median(theirs) / per, quartiles([a / b for a, b in zip(ours, theirs)]), **more)


def quartiles(values: list[float]) -> tuple[float, float, float]:
    first, middle, third = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return first, middle, third
