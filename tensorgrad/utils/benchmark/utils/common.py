"""Measurements: timed statements and their times."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import ceil, floor, log10
from statistics import mean, median, pstdev, quantiles
from typing import Any, NamedTuple

from ....runtime.threads import get_num_threads, set_num_threads

__all__ = ["Measurement", "TaskSpec", "ordered_unique", "select_unit", "set_torch_threads", "trim_sigfig",
           "unit_to_english"]
UNITS = {"ns": ("nanosecond", 1e-9), "us": ("microsecond", 1e-6), "ms": ("millisecond", 1e-3), "s": ("second", 1.0)}
MOST_DIGITS, LEAST_ERROR = 4, 25e-9         # limits on the precision: digits, and relative error of the clock
CONFIDENCE = 1.645                          # standard errors: 90 %


class TaskSpec(NamedTuple):
    """A statement and its labels. https://pytorch.org/docs → torch.utils.benchmark"""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement, and the sub-label."""
        name = (self.label if self.label is not None else self.stmt if "\n" not in self.stmt
                else f"stmt:\n{_indented(self.stmt)}")
        return name + (f": {self.sub_label}" if self.sub_label else "")

    def setup_str(self) -> str:
        """The setup, if there is one."""
        if self.setup in ("pass", "") or not self.setup:
            return ""
        return f"setup:\n{_indented(self.setup)}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Return the title, the setup and the statement as text."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(part + "\n" * ("\n" in part) for part in parts if part)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


class Measurement:
    """Times of a statement: `raw_times` seconds for `number_per_run` runs each.

    https://pytorch.org/docs → torch.utils.benchmark.Measurement
    """

    def __init__(self, number_per_run: int, raw_times: list[float], task_spec: TaskSpec,
                 metadata: dict[Any, Any] | None = None) -> None:
        self.number_per_run, self.raw_times, self.task_spec, self.metadata = (number_per_run, raw_times, task_spec,
                                                                              metadata)

    times = property(lambda self: [t / self.number_per_run for t in self.raw_times], doc="Seconds of one run.")
    mean = property(lambda self: mean(self.times), doc="Their mean.")
    median = property(lambda self: median(self.times), doc="Their median.")
    iqr = property(lambda self: self._quartiles[1] - self._quartiles[0], doc="The range of their middle half.")
    title = property(lambda self: self.task_spec.title, doc="What was timed.")
    env = property(lambda self: self.task_spec.env or "", doc="Where.")
    as_row_name = property(lambda self: self.sub_label or self.stmt or "[Unknown]", doc="What it is called in a table.")
    stmt, label, sub_label, description, num_threads = (
        property(lambda self, name=name: getattr(self.task_spec, name), doc="Of the task.")
        for name in ("stmt", "label", "sub_label", "description", "num_threads"))

    @property
    def _quartiles(self) -> tuple[float, float]:
        if len(self.raw_times) < 2:
            return self.median, self.median
        first, _, third = quantiles(self.times, n=4, method="inclusive")
        return first, third

    @property
    def significant_figures(self) -> int:
        """The number of significant digits of the median, from the spread of the middle half of the times."""
        times = sorted(self.times)
        middle = times[len(times) // 4:ceil(3 * len(times) / 4)]
        error = max(CONFIDENCE * pstdev(middle) / len(middle) ** 0.5, LEAST_ERROR)
        return min(max(floor(log10(self.median / error)), 1), MOST_DIGITS)

    @property
    def has_warnings(self) -> bool:
        """True if the spread of the times is too large."""
        return bool(self._warning())

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        """Return True if the interquartile range is below `threshold` times the median."""
        return self.iqr / self.median < threshold

    def _warning(self) -> str:
        share = self.iqr / self.median
        if share < 0.1:
            return ""
        cause = ("This suggests significant environmental influence." if share >= 0.25
                 else "This could indicate system fluctuation.")
        return f"  WARNING: Interquartile range is {share:.1%} of the median measurement.\n           {cause}"

    def __repr__(self) -> str:
        unit, size = select_unit(self.median)
        count, many = len(self.raw_times), len(self.raw_times) > 1
        lines = [object.__repr__(self), self.task_spec.summarize(),
                 f"  {'Median: ' * many}{self.median / size:.2f} {unit}"]
        if count >= 4:
            first, third = self._quartiles
            lines.append(f"  IQR:    {self.iqr / size:.2f} {unit} ({first / size:.2f} to {third / size:.2f})")
        lines.append(f"  {count} measurement{'s' * many}, {self.number_per_run} runs {'per measurement' * many}, "
                     f"{self.num_threads} thread{'s' * (self.num_threads > 1)}")
        return "\n".join([*lines, self._warning()]).rstrip()

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Merge the measurements of each task."""
        found: dict[TaskSpec, list[Measurement]] = {}
        for measurement in measurements:
            found.setdefault(measurement.task_spec, []).append(measurement)
        return [Measurement(1, [t for part in parts for t in part.times], spec) for spec, parts in found.items()]


def select_unit(t: float) -> tuple[str, float]:
    """Return the unit that suits a time, and its length in seconds."""
    return next(((unit, size) for unit, (_, size) in reversed(UNITS.items()) if t >= size), ("s", 1))


def unit_to_english(u: str) -> str:
    """Return the name of a unit."""
    return UNITS[u][0]


def trim_sigfig(x: float, n: int) -> float:
    """Round a number to n significant digits."""
    return round(x, n - 1 - floor(log10(abs(x)))) if x else x


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Return the distinct elements in order."""
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Set the number of threads until the block ends."""
    before = get_num_threads()
    set_num_threads(n)
    try:
        yield
    finally:
        set_num_threads(before)
