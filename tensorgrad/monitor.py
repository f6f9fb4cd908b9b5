"""torch.monitor: counters and events of a running program. https://pytorch.org/docs/stable/monitor.html

>>> from datetime import timedelta
>>> from tensorgrad import monitor
>>> events = []
>>> handle = monitor.register_event_handler(events.append)
>>> kinds = [monitor.Aggregation.MEAN, monitor.Aggregation.COUNT]
>>> stat = monitor.Stat("loss", kinds, timedelta(hours=1), max_samples=2)
>>> stat.add(1.0); stat.add(2.0)
>>> events[0].data
{'loss.mean': 1.5, 'loss.count': 2.0}
>>> monitor.unregister_event_handler(handle)
"""
from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

__all__ = ["Aggregation", "Event", "EventHandlerHandle", "Stat", "TensorboardEventHandler", "data_value_t",
           "log_event", "register_event_handler", "unregister_event_handler"]

data_value_t = str | int | float | bool
STAT_EVENT = "torch.monitor.Stat"


class Aggregation(Enum):
    """The values that a Stat computes. https://pytorch.org/docs → torch.monitor.Aggregation"""

    VALUE, MEAN, COUNT, SUM, MAX, MIN = range(1, 7)


AGGREGATED: dict[Aggregation, Callable[[list[float]], float]] = {
    Aggregation.VALUE: lambda values: values[-1], Aggregation.MEAN: lambda values: sum(values) / len(values),
    Aggregation.COUNT: lambda values: float(len(values)), Aggregation.SUM: sum, Aggregation.MAX: max,
    Aggregation.MIN: min}


class Event:
    """Something that happened: a name, a time, and data. https://pytorch.org/docs → torch.monitor.Event"""

    def __init__(self, name: str, timestamp: datetime, data: dict[str, data_value_t]) -> None:
        if not isinstance(timestamp, datetime):
            raise TypeError(f"__init__(): timestamp must be a datetime, not {type(timestamp).__name__}")
        for key, value in data.items():
            if not isinstance(value, data_value_t):
                raise TypeError(f"__init__(): the value of {key!r} must be a str, int, float or bool, not "
                                f"{type(value).__name__}")
        self.name, self.timestamp, self.data = name, timestamp, dict(data)


class EventHandlerHandle:
    """A registration by `register_event_handler`. https://pytorch.org/docs → torch.monitor.EventHandlerHandle"""

    def __init__(self, handler: Callable[[Event], None]) -> None:
        self._handler = handler


_handles: list[EventHandlerHandle] = []


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """Call a function with each event from now on. https://pytorch.org/docs → torch.monitor.register_event_handler"""
    handle = EventHandlerHandle(callback)
    _handles.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Call the function no longer. ValueError if it is not registered.
    https://pytorch.org/docs → torch.monitor.unregister_event_handler
    """
    if handler not in _handles:
        raise ValueError("the event handler is not registered")
    _handles.remove(handler)


def log_event(event: Event) -> None:
    """Call all registered functions with an event. https://pytorch.org/docs → torch.monitor.log_event"""
    for handle in list(_handles):
        handle._handler(event)


class Stat:
    """Aggregates the values that are added, and logs an event for each window of time.

    aggregations: the statistics to compute. window_size: the length of a window, whose event is logged with the first
    value, or question, after it. max_samples: with so many values the event is logged at once, and further ones are
    dropped until the window ends. https://pytorch.org/docs → torch.monitor.Stat
    """

    def __init__(self, name: str, aggregations: Sequence[Aggregation], window_size: timedelta,
                 max_samples: int = (1 << 63) - 1) -> None:
        if not isinstance(window_size, timedelta):
            raise TypeError(f"__init__(): window_size must be a timedelta, not {type(window_size).__name__}")
        if window_size <= timedelta(0) or max_samples < 1:
            raise ValueError("window_size and max_samples must be positive")
        self._name, self._aggregations = name, dict.fromkeys(map(Aggregation, aggregations))
        self._seconds, self._most = window_size.total_seconds(), max_samples
        self._values: list[float] = []
        self._full = False          # the window has all its values
        self._last: dict[Aggregation, float] = dict.fromkeys(self._aggregations, 0.0)
        self._window, self._lock = self._now(), threading.Lock()

    name = property(lambda self: self._name)

    @property
    def count(self) -> int:
        """The number of values in the present window."""
        return len(self._values)

    def _now(self) -> int:
        return int(time.monotonic() // self._seconds)

    def add(self, v: float) -> None:
        """Add a value."""
        if not hasattr(v, "__float__") and not hasattr(v, "__index__"):
            raise TypeError(f"add(): the value must be a number, not {type(v).__name__}")
        value = float(v)
        with self._lock:
            events = self._ended()
            if not self._full:
                self._values.append(value)
                self._full = len(self._values) >= self._most
                events += [self._end()] if self._full else []
        for event in events:
            log_event(event)

    def get(self) -> dict[Aggregation, float]:
        """Return the aggregated values of the last window that ended."""
        with self._lock:
            events = self._ended()
            found = dict(self._last)
        for event in events:
            log_event(event)
        return found

    def _ended(self) -> list[Event]:
        """Return the event of the window if its time is over."""
        window, self._window = self._window, self._now()
        if window == self._window:
            return []
        self._full = False
        return [self._end()] if self._values else []

    def _end(self) -> Event:
        values, self._values = self._values, []
        self._last = {aggregation: AGGREGATED[aggregation](values) for aggregation in self._aggregations}
        data: dict[str, data_value_t] = {f"{self._name}.{aggregation.name.lower()}": value
                                         for aggregation, value in self._last.items()}
        return Event(STAT_EVENT, datetime.now(), data)

    def __del__(self) -> None:
        if getattr(self, "_values", None):
            log_event(self._end())


class TensorboardEventHandler:
    """An event handler that writes what a Stat logs as scalars.
    https://pytorch.org/docs → torch.monitor.TensorboardEventHandler
    """

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())


class _WaitCounter:
    """A counter of waits by its name, which nothing reads."""

    def __init__(self, key: str) -> None:
        self.key = key

    def guard(self) -> AbstractContextManager[None]:
        """Return a context manager around a wait."""
        return nullcontext()
