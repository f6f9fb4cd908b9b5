"""Where the time goes: functions of tensors and marked blocks, by the wall clock. https://pytorch.org/docs/stable/autograd.html

What is measured is each call of a public function in a `profile` block, in the thread that opened it; backward passes are one entry.

>>> import tensorgrad as torch
>>> with torch.autograd.profiler.profile() as prof:
...     with torch.autograd.profiler.record_function("twice"):
...         y = torch.ones(2) + torch.ones(2)
>>> [(event.key, event.count) for event in prof.key_averages() if event.key == "twice"]
[('twice', 1)]
"""
from __future__ import annotations

import json
import os
import threading
import time
from functools import wraps
from typing import Any

from ..overrides import TorchFunctionMode, resolve_name

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "emit_itt", "emit_nvtx", "profile", "record_function"]


class _State(threading.local):
    """What is being measured in this thread."""

    events: EventList | None = None     # where events go
    inner: float = 0.0                  # µs spent in events inside the current one


_state = _State()


class FunctionEvent:
    """One call of a function, or one pass through a block. Times are in µs."""

    def __init__(self, name: str, start: float, end: float, self_time: float) -> None:
        self.name = self.key = name
        self.start, self.end, self.thread, self.count = start, end, threading.get_ident(), 1
        self.cpu_time_total, self.self_cpu_time_total = end - start, self_time

    cpu_time = property(lambda self: self.cpu_time_total / self.count, doc="The time of one call.")

    def __repr__(self) -> str:
        return (f"<{type(self).__name__} name={self.name} count={self.count} cpu_time={self.cpu_time:.3f}us "
                f"self_cpu_time_total={self.self_cpu_time_total:.3f}us>")


class FunctionEventAvg(FunctionEvent):
    """All calls of a function."""

    def __init__(self, name: str) -> None:
        super().__init__(name, 0.0, 0.0, 0.0)
        self.count = 0

    def add(self, other: FunctionEvent) -> None:
        """Add a call."""
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total


class EventList(list[Any]):
    """Events, in the order in which they ended."""

    def key_averages(self, **unused: Any) -> EventList:
        """One entry for each name."""
        found: dict[str, FunctionEventAvg] = {}
        for event in self:
            found.setdefault(event.name, FunctionEventAvg(event.name)).add(event)
        return EventList(found.values())

    def total_average(self) -> FunctionEventAvg:
        """One entry for all."""
        total = FunctionEventAvg("Total")
        for event in self:
            total.add(event)
        return total

    self_cpu_time_total = property(lambda self: sum(event.self_cpu_time_total for event in self), doc="The time of all, in µs.")

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_name_column_width: int = 55, header: str | None = None, **unused: Any) -> str:
        """The events as lines of text, by 'cpu_time', 'cpu_time_total', 'self_cpu_time_total' or 'count'."""
        total = self.self_cpu_time_total or 1.0
        events = sorted(self, key=lambda event: -getattr(event, sort_by)) if sort_by else list(self)
        rows = [("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls")]
        rows += [(event.name[:max_name_column_width], f"{event.self_cpu_time_total / total:.2%}", _shown(event.self_cpu_time_total),
                  f"{event.cpu_time_total / total:.2%}", _shown(event.cpu_time_total), _shown(event.cpu_time), str(event.count))
                 for event in events[:None if row_limit < 0 else row_limit]]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        line = "  ".join("-" * width for width in widths)
        shown = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        total_line = f"Self CPU time total: {_shown(self.self_cpu_time_total)}"
        return "\n".join([*([header] if header else []), line, shown[0], line, *shown[1:], line, total_line, ""])

    __str__ = table

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as JSON for a browser's trace viewer."""
        events = [{"name": e.name, "ph": "X", "ts": e.start, "dur": e.cpu_time_total, "pid": os.getpid(), "tid": e.thread, "args": {}} for e in self]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events}, file)


def _shown(microseconds: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3f}{unit}"
    return f"{microseconds:.3f}us"


class record_function:
    """A block, or a function, that has an entry of its own. https://pytorch.org/docs → torch.autograd.profiler.record_function"""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name

    def __enter__(self) -> record_function:
        self._outer, _state.inner = _state.inner, 0.0
        self._start = time.perf_counter_ns() / 1e3
        return self

    def __exit__(self, *exception: Any) -> None:
        end = time.perf_counter_ns() / 1e3
        if _state.events is not None:
            _state.events.append(FunctionEvent(self.name, self._start, end, end - self._start - _state.inner))
        _state.inner = self._outer + end - self._start

    def __call__(self, function: Any) -> Any:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.name):
                return function(*args, **kwargs)
        return call


class _Timing(TorchFunctionMode):
    """Measures each public function."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with record_function(resolve_name(func) or str(getattr(func, "__name__", "?"))):
            return func(*args, **(kwargs or {}))


class profile:
    """A block whose calls are measured. https://pytorch.org/docs → torch.autograd.profiler.profile"""

    def __init__(self, enabled: bool = True, **unused: Any) -> None:
        self.enabled, self.function_events = enabled, EventList()

    def __enter__(self) -> profile:
        if self.enabled:
            if _state.events is not None:
                raise RuntimeError("Profiler is already enabled on this thread")
            _state.events, self._mode = self.function_events, _Timing()
            self._mode.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self.enabled:
            self._mode.__exit__(*exception)
            _state.events = None

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, **unused: Any) -> EventList:
        """One entry for each function."""
        return self.function_events.key_averages()

    def total_average(self) -> FunctionEventAvg:
        """One entry for all."""
        return self.function_events.total_average()

    def table(self, *args: Any, **kwargs: Any) -> str:
        """The calls as lines of text."""
        return self.function_events.table(*args, **kwargs)

    def export_chrome_trace(self, path: str) -> None:
        """Write the calls as JSON for a browser's trace viewer."""
        self.function_events.export_chrome_trace(path)

    self_cpu_time_total = property(lambda self: self.function_events.self_cpu_time_total, doc="The time of all, in µs.")

    def __iter__(self) -> Any:
        return iter(self.function_events)

    def __str__(self) -> str:
        return str(self.function_events)


class emit_nvtx:
    """A `with` block; nothing is told to a CUDA profiler. https://pytorch.org/docs → torch.autograd.profiler.emit_nvtx"""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        pass

    def __enter__(self) -> emit_nvtx:
        return self

    def __exit__(self, *exception: Any) -> None:
        pass


emit_itt = emit_nvtx
