"""Trackers for training loops: averages, timers, and periodic work."""
from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

__all__ = ["AverageDictionary", "AverageValue", "MovingAverageRecorder", "PeriodicWakeUpWorker", "SimpleTimer",
           "ThreadSafeMovingAverageRecorder",
           "TimeRecorder", "TimedTracker"]


# ── averages ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class MovingAverageRecorder:
    """An average in which old values count less and less: a ← decay·a + (1 − decay)·v, over the sum of the weights.

    >>> recorder = MovingAverageRecorder(decay=0.5)
    >>> recorder.add_value(1.0), recorder.add_value(4.0)
    (1.0, 3.0)
    """

    def __init__(self, decay: float = 0.95) -> None:
        if not 0 <= decay < 1:
            raise ValueError(f"decay must be in [0, 1), got {decay}")
        self.decay, self._sum, self._weight = decay, 0.0, 0.0

    def add_value(self, value: float) -> float:
        """Add a value, and return the new average."""
        self._sum = self.decay * self._sum + (1 - self.decay) * value
        self._weight = self.decay * self._weight + (1 - self.decay)
        return self.cur_value()

    def cur_value(self) -> float:
        """The average; 0 before the first value."""
        return self._sum / self._weight if self._weight else 0.0


class ThreadSafeMovingAverageRecorder(MovingAverageRecorder):
    """A `MovingAverageRecorder` that several threads may share."""

    def __init__(self, decay: float = 0.95) -> None:
        super().__init__(decay)
        self._lock = threading.RLock()

    def add_value(self, value: float) -> float:
        with self._lock:
            return super().add_value(value)

    def cur_value(self) -> float:
        with self._lock:
            return super().cur_value()


class AverageValue:
    """The plain average of values since it was last cleared.

    >>> value = AverageValue(1.0)
    >>> value.add(3.0); value.avg(), value.avg()
    (2.0, 0.0)
    """

    def __init__(self, *initial: float) -> None:
        self._sum, self._count = float(sum(initial)), len(initial)

    def add(self, value: float) -> None:
        """Add a value."""
        self._sum, self._count = self._sum + value, self._count + 1

    def avg(self, clear: bool = True) -> float:
        """Return the average, 0 without values; `clear` starts anew."""
        found = self._sum / self._count if self._count else 0.0
        if clear:
            self._sum, self._count = 0.0, 0
        return found


class AverageDictionary:
    """Averages by name.

    >>> losses = AverageDictionary()
    >>> losses.add_scalars({"a": 1.0}); losses.add_scalars({"a": 2.0, "b": 5.0}); losses.get_values()
    {'a': 1.5, 'b': 5.0}
    """

    def __init__(self) -> None:
        self._values: dict[str, AverageValue] = {}

    def add_scalars(self, scalars: Mapping[str, float]) -> None:
        """Add a value to the average of each name."""
        for name, value in scalars.items():
            self._values.setdefault(name, AverageValue()).add(value)

    def get_values(self, clear: bool = True) -> dict[str, float]:
        """Return the averages; `clear` starts anew."""
        found = {name: value.avg(clear=False) for name, value in self._values.items()}
        if clear:
            self._values.clear()
        return found


# ── times ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class SimpleTimer:
    """Prints how long a `with` block took; `elapsed` has the seconds."""

    def __init__(self, name: str = "elapsed") -> None:
        self.name, self.elapsed = name, 0.0

    def __enter__(self) -> SimpleTimer:
        self._start = time.perf_counter()
        return self

    def __exit__(self, *exception: object) -> None:
        self.elapsed = time.perf_counter() - self._start
        print(f"{self.name}: {self.elapsed:.6g} s", flush=True)


class TimeRecorder:
    """The moving average `avg` of how long something takes, in seconds; a time above `max_seconds` counts as that much.

    Time a block with `time()`, or from `start()` to `stop()`, or from one `lap()` to the next.
    Errors: RuntimeError for a start while the clock runs, and for a lap or stop while it does not.
    """

    def __init__(self, decay: float = 0.9995, max_seconds: float = 10) -> None:
        self.max_seconds, self._average = max_seconds, MovingAverageRecorder(decay)
        self._started: float | None = None

    @property
    def avg(self) -> float:
        return self._average.cur_value()

    def start(self) -> None:
        """Start the clock."""
        if self._started is not None:
            raise RuntimeError("the clock of this TimeRecorder runs already: stop() comes before the next start()")
        self._started = time.perf_counter()

    def lap(self) -> float:
        """Count the seconds since the start or the last lap, which are returned, and go on."""
        if self._started is None:
            raise RuntimeError("the clock of this TimeRecorder does not run: start() comes first")
        now = time.perf_counter()
        seconds, self._started = now - self._started, now
        self._average.add_value(min(seconds, self.max_seconds))
        return seconds

    def stop(self) -> float:
        """Count the seconds since the start or the last lap, and stop the clock."""
        seconds = self.lap()
        self._started = None
        return seconds

    @contextmanager
    def time(self) -> Iterator[None]:
        """Time a `with` block: start at its beginning, and stop at its end."""
        self.start()
        try:
            yield
        finally:
            self.stop()


class TimedTracker:
    """Counts events, and tells at most once in `interval` seconds that it is time for a line in a log.

    >>> tracker = TimedTracker(interval=3600)
    >>> tracker.track_increment(), tracker.count
    (False, 1)
    """

    def __init__(self, interval: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.interval, self.clock, self.count, self._last = interval, clock, 0, clock()

    def track_increment(self, increment: int = 1) -> bool:
        """Add events to the count; return True if an interval has passed since the last True."""
        self.count += increment
        now = self.clock()
        if now - self._last < self.interval:
            return False
        self._last = now
        return True


class PeriodicWakeUpWorker(threading.Thread):
    """A daemon thread that calls `target(*args, **kwargs)`, again `interval` seconds after it returned, until `stop()`.

    An error of the target ends the thread, and `stop` raises that error.
    """

    def __init__(self, target: Callable[..., Any], interval: float = 1, args: Any = (),
                 kwargs: Mapping[str, Any] | None = None) -> None:
        super().__init__(daemon=True)
        self.target, self.interval, self.args, self.kwargs = target, interval, tuple(args), dict(kwargs or {})
        self.error: BaseException | None = None
        self._stopped = threading.Event()

    def run(self) -> None:
        try:
            while not self._stopped.is_set():
                self.target(*self.args, **self.kwargs)
                self._stopped.wait(self.interval)
        except Exception as error:
            self.error = error

    def stop(self, timeout: float | None = None) -> None:
        """Stop calling the target, and wait for a running call."""
        self._stopped.set()
        if self.is_alive() and threading.current_thread() is not self:
            self.join(timeout)
        if self.error is not None:
            raise self.error
