"""How things are timed: in short blocks with the collector off, all libraries in turn (tensorgrad.benchmark.timing),
medians of the ratios of blocks of the same round.
"""
from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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
    reason why there is none. `runtime` are the quartiles of the ratio to onnxruntime, where that was timed, too."""

    ours: float = 0.0
    theirs: float | None = None
    quartiles: tuple[float, float, float] | None = None
    unit: str = "s"
    note: str = ""
    problem: str = ""
    runtime: tuple[float, float, float] | None = None

    @property
    def ratio(self) -> float | None:
        return None if self.problem or self.quartiles is None else self.quartiles[1]


def alternate(things: Sequence[Any], budget: Budget) -> list[list[float]]:
    """Their times, block by block, in turn."""
    from tensorgrad.benchmark import timing  # PyTorch's process imports this file, and no tensorgrad
    return timing.alternate(things, budget)


def summary(ours: list[float], theirs: list[float] | None, per: int = 1, **more: Any) -> Measurement:
    """Medians of the times, and quartiles of the ratios of blocks of the same round."""
    mine = statistics.median(ours) / per
    if theirs is None:
        return Measurement(mine, **more)
    return Measurement(mine, statistics.median(theirs) / per, ratios(ours, theirs), **more)


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """The quartiles of the ratios of blocks of the same round."""
    return quartiles([a / b for a, b in zip(ours, theirs)])


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    from tensorgrad.benchmark import timing
    return timing.quartiles(values)
