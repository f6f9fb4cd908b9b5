"""Timer: measure the run time of a statement."""
from __future__ import annotations

import timeit as _timeit
from collections.abc import Callable
from enum import Enum
from textwrap import dedent
from time import perf_counter as timer
from typing import Any

from .common import Measurement, TaskSpec, set_torch_threads

__all__ = ["Language", "Timer", "timer"]


class Language(Enum):
    """The language of a statement."""

    PYTHON = 0
    CPP = 1


class Timer:
    """A statement to be timed, with a single thread by default. https://pytorch.org/docs → torch.utils.benchmark.Timer

    >>> import tensorgrad as torch
    >>> from tensorgrad.utils.benchmark import Timer
    >>> Timer("x + 1", globals={"x": torch.ones(2)}).timeit(10).number_per_run
    10
    """

    def __init__(self, stmt: str = "pass", setup: str = "pass", global_setup: str = "",
                 timer: Callable[[], float] = timer, globals: Any = None, label: str | None = None,
                 sub_label: str | None = None, description: str | None = None,
                 env: str | None = None, num_threads: int = 1,
                 language: Language | str = Language.PYTHON) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError("tensorgrad times statements of Python: C++ would need PyTorch's own library")
        if global_setup:
            raise ValueError("global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be "
                             "moved to `setup`.")
        stmt, setup = dedent(stmt).strip(), dedent(setup).strip()
        self._timer = _timeit.Timer(stmt, setup, timer, dict(globals or {}))
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _measurement(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """Time `number` runs."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timer.timeit(max(number // 100, 2))
            return self._measurement(number, [self._timer.timeit(number)])

    def _block(self, min_run_time: float) -> int:
        """Return the number of runs in a block that is long enough for the clock."""
        number = 1
        while self._timer.timeit(number) < min_run_time / 1000 and number < 10**9:
            number *= 10
        return number

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Time blocks of runs for at least `min_run_time` seconds."""
        with set_torch_threads(self._task_spec.num_threads):
            number, times = self._block(min_run_time), list[float]()
            while not times or sum(times) < min_run_time:
                times.append(spent := self._timer.timeit(number))
                if callback is not None:
                    callback(number, spent)
            return self._measurement(number, times)

    def adaptive_autorange(self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
                           callback: Any = None) -> Measurement:
        """Time blocks of runs until the times agree, see `meets_confidence`, or `max_run_time` seconds have passed."""
        with set_torch_threads(self._task_spec.num_threads):
            number, times = self._block(0.05), list[float]()
            while len(times) < 4 or sum(times) < max_run_time and (
                    sum(times) < min_run_time or not self._measurement(number, times).meets_confidence(threshold)):
                times.append(spent := self._timer.timeit(number))
                if callback is not None:
                    callback(number, spent)
            return self._measurement(number, times)

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> Any:
        """Unsupported: instructions are not counted."""
        raise NotImplementedError("tensorgrad has no Timer.collect_callgrind: Valgrind is not called")
