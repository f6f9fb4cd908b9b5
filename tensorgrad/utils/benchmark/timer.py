"""A statement, timed again and again with one thread."""
from __future__ import annotations

import timeit as _timeit
from collections.abc import Callable
from statistics import mean, median, quantiles
from time import perf_counter as timer
from typing import Any

from ...threads import get_num_threads, set_num_threads

__all__ = ["Measurement", "Timer", "timer"]


class Measurement:
    """Times of a statement: `raw_times` seconds for `number_per_run` runs each. https://pytorch.org/docs → torch.utils.benchmark.Measurement"""

    def __init__(self, number_per_run: int, raw_times: list[float], title: str, num_threads: int) -> None:
        self.number_per_run, self.raw_times, self.title, self.num_threads = number_per_run, raw_times, title, num_threads

    times = property(lambda self: [t / self.number_per_run for t in self.raw_times], doc="Seconds of one run.")
    mean = property(lambda self: mean(self.times), doc="Their mean.")
    median = property(lambda self: median(self.times), doc="Their median.")

    @property
    def iqr(self) -> float:
        """The range of their middle half."""
        first, _, third = quantiles(self.times, n=4, method="inclusive") if len(self.raw_times) > 1 else (0.0, 0.0, 0.0)
        return third - first

    def __repr__(self) -> str:
        unit, size = next(((unit, size) for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)) if self.median >= size), ("ns", 1e-9))
        many = f"{len(self.raw_times)} measurements, {self.number_per_run} runs per measurement" if len(self.raw_times) > 1 else f"{self.number_per_run} runs"
        return f"{self.title}\n  {self.median / size:.2f} {unit}\n  {many}, {self.num_threads} thread{'s' * (self.num_threads > 1)}"


class Timer:
    """A statement to be timed. https://pytorch.org/docs → torch.utils.benchmark.Timer

    >>> import tensorgrad as torch
    >>> from tensorgrad.utils.benchmark import Timer
    >>> Timer("x + 1", globals={"x": torch.ones(2)}).timeit(10).number_per_run
    10
    """

    def __init__(self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Callable[[], float] = timer, globals: Any = None,  # noqa: A002
                 label: str | None = None, sub_label: str | None = None, description: str | None = None, env: str | None = None, num_threads: int = 1,
                 **unused: Any) -> None:
        self._timer = _timeit.Timer(stmt, setup, timer, dict(globals or {}))
        self._title = "\n".join(part for part in (label or stmt, sub_label, description) if part)
        self._threads = num_threads

    def _times(self, repeat: Callable[[], tuple[int, list[float]]]) -> Measurement:
        before = get_num_threads()
        set_num_threads(self._threads)
        try:
            number, times = repeat()
        finally:
            set_num_threads(before)
        return Measurement(number, times, self._title, self._threads)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """The time of so many runs."""
        def repeat() -> tuple[int, list[float]]:
            self._timer.timeit(max(number // 100, 2))
            return number, [self._timer.timeit(number)]
        return self._times(repeat)

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """The times of blocks of runs, for so many seconds."""
        def repeat() -> tuple[int, list[float]]:
            number = 1
            while (spent := self._timer.timeit(number)) < min_run_time / 1000 and number < 10**9:
                number *= 10
            times = []
            while not times or sum(times) < min_run_time:
                times.append(spent := self._timer.timeit(number))
                if callback is not None:
                    callback(number, spent)
            return number, times
        return self._times(repeat)

    adaptive_autorange = blocked_autorange
