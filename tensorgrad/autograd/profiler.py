"""Measure the time of functions of tensors and of marked blocks, by the wall clock.

https://pytorch.org/docs/stable/autograd.html

A `profile` block measures each call of a public function in the thread that opened it, under the name of PyTorch's
operator, each step of a backward, and marked blocks; optimizers and loaders of data mark theirs. Steps of a backward
are called one by one meanwhile, from Python.

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
import sys
import threading
import time
from enum import Enum
from functools import wraps
from typing import Any

from ..core.mode import mode
from ..core.tape import Leaf, Output, TensorBase
from ..messages import tables
from ..overrides import TorchFunctionMode
from .profiler_names import name_of
from .profiler_trace import FORWARD_BACKWARD, Arguments, trace_of

__all__ = ["DeviceType", "EventList", "FunctionEvent", "FunctionEventAvg", "Interval", "emit_itt", "emit_nvtx",
           "profile", "record_function"]


class _State(threading.local):
    """The measurement in progress in this thread."""

    events: EventList | None = None     # the list that receives events
    settings: profile | None = None     # the options of the profile
    inner: float = 0.0                  # µs spent in events inside the current one
    children: list[FunctionEvent] = []  # noqa: RUF012  those events


_state = _State()


def kineto_available() -> bool:
    """Return True: calls can be traced."""
    return True


class Interval:
    """The start and end of an event, in µs."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """Return the duration in µs."""
        return self.end - self.start


class DeviceType(Enum):
    """The device of an event."""

    CPU, CUDA = range(2)


class FunctionEvent:
    """A call of a function, or an execution of a block. Times are in µs, memory is in bytes."""

    device_type, device_index, node_id, is_async, is_remote, is_legacy, overload_name = (DeviceType.CPU, 0, -1, False,
                                                                                         False, False, "")
    is_user_annotation, cpu_memory_usage, self_cpu_memory_usage, flops = False, 0, 0, 0
    is_backward, sequence_nr, fwd_thread = False, -1, None      # the number of a step: forward and backward share it
    arguments: Arguments | None = None
    cpu_parent: FunctionEvent | None = None
    # work on other devices is not measured
    device_time = device_time_total = self_device_time_total = device_memory_usage = self_device_memory_usage = 0
    cuda_time = cuda_time_total = self_cuda_time_total = cuda_memory_usage = self_cuda_memory_usage = 0

    def __init__(self, name: str, start: float, end: float, self_time: float) -> None:
        self.name = self.key = name
        self.time_range, self.thread, self.count, self.id = Interval(start, end), threading.get_ident(), 1, id(self)
        self.cpu_time_total, self.self_cpu_time_total = end - start, self_time
        self.input_shapes: list[Any] = []
        self.concrete_inputs: list[Any] = []
        self.input_dtypes: list[str] = []
        self.kwinputs: dict[str, Any] = {}
        self.cpu_children: list[FunctionEvent] = []
        self.kernels: list[Any] = []
        self.stack: list[str] = []

    start = property(lambda self: self.time_range.start, doc="When it began.")
    end = property(lambda self: self.time_range.end, doc="When it ended.")
    cpu_time = property(lambda self: self.cpu_time_total / self.count if self.count else 0.0,
                        doc="The time of one call.")
    cpu_time_str = property(lambda self: _shown(self.cpu_time), doc="The time of one call, with a unit.")
    cpu_time_total_str = property(lambda self: _shown(self.cpu_time_total), doc="The time of all calls, with a unit.")
    self_cpu_time_total_str = property(lambda self: _shown(self.self_cpu_time_total),
                                       doc="The time outside of events inside, with a unit.")

    def __repr__(self) -> str:
        return (f"<{type(self).__name__} name={self.name} count={self.count} cpu_time={self.cpu_time:.3f}us "
                f"self_cpu_time_total={self.self_cpu_time_total:.3f}us>")


class FunctionEventAvg(FunctionEvent):
    """The calls of a function, added up."""

    def __init__(self, name: str) -> None:
        super().__init__(name, 0.0, 0.0, 0.0)
        self.count = 0

    def add(self, other: FunctionEvent) -> None:
        """Add a call."""
        for amount in ("count", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage",
                       "flops"):
            setattr(self, amount, getattr(self, amount) + getattr(other, amount))
        self.is_user_annotation, self.input_shapes, self.stack = (other.is_user_annotation, other.input_shapes,
                                                                  other.stack)


class EventList(list[Any]):
    """Events, in the order in which they began."""

    shows_memory = shows_shapes = False
    window = (float("inf"), -float("inf"))      # when the profile began and ended, in µs

    def key_averages(self, group_by_input_shapes: bool = False, **unused: Any) -> EventList:
        """Add up the events of each name, or of each name and shapes of inputs."""
        found: dict[Any, FunctionEventAvg] = {}
        for event in self:
            name = "ProfilerStep*" if event.name.startswith("ProfilerStep#") else event.name
            key = (name, str(event.input_shapes)) if group_by_input_shapes else name
            found.setdefault(key, FunctionEventAvg(name)).add(event)
        averages = EventList(found.values())
        averages.shows_memory, averages.shows_shapes = self.shows_memory, group_by_input_shapes
        return averages

    def total_average(self) -> FunctionEventAvg:
        """Add up all events."""
        total = FunctionEventAvg("Total")
        for event in self:
            total.add(event)
        return total

    self_cpu_time_total = property(lambda self: sum(event.self_cpu_time_total for event in self),
                                   doc="The time of all, in µs.")

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
              max_name_column_width: int = 55, max_shapes_column_width: int = 80, header: str | None = None,
              top_level_events_only: bool = False,
              **unused: Any) -> str:
        """The events as lines of text, by 'cpu_time', 'cpu_time_total', 'self_cpu_time_total', 'count', …"""
        total = self.self_cpu_time_total or 1.0
        events = sorted(self, key=lambda event: -getattr(event, sort_by)) if sort_by else list(self)
        events = [event for event in events if not (top_level_events_only and event.cpu_parent)][:None if row_limit < 0
                                                                                                 else row_limit]
        rows = [("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg",
                 *(("CPU Mem", "Self CPU Mem") if self.shows_memory else ()), "# of Calls",
                 *(("Input Shapes",) if self.shows_shapes else ()))]
        rows += [(_cut(event.key, max_name_column_width), f"{event.self_cpu_time_total / total:.2%}",
                  event.self_cpu_time_total_str, f"{event.cpu_time_total / total:.2%}", event.cpu_time_total_str,
                  event.cpu_time_str,
                  *((_bytes(event.cpu_memory_usage), _bytes(event.self_cpu_memory_usage)) if self.shows_memory else ()),
                  str(event.count),
                  *((_cut(str(event.input_shapes), max_shapes_column_width),) if self.shows_shapes else ()))
                 for event in events]
        first, *others = tables.widths_of(rows)
        head, line, *shown = tables.table(rows, ">", widths=[first + 4, *(max(width, 12) for width in others)],
                                          rule="-", end="  ")
        title = ["=" * len(line), header] if header else []
        return "\n".join([*title, line, head, line, *shown, line,
                          f"Self CPU time total: {_shown(self.self_cpu_time_total)}", ""])

    __str__ = table

    def export_chrome_trace(self, path: str, metadata: dict[str, Any] | None = None) -> None:
        """Write the events and the metadata as JSON for a browser's trace viewer."""
        text = json.dumps(trace_of(self, self.window, os.fspath(path)) | (metadata or {}), default=str).encode()
        if path.endswith(".gz"):
            import gzip
            text = gzip.compress(text)
        with open(path, "wb") as file:
            file.write(text)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write a line per stack, outermost function first, with the time spent there: the input of flame graphs."""
        if metric not in ("self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total"):
            raise ValueError(f"metric should be one of: "
                             f"{['self_cpu_time_total', 'self_cuda_time_total', 'self_xpu_time_total']!s}")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                if event.stack and int(getattr(event, metric, 0)):
                    file.write(";".join(reversed(event.stack)).replace(" ", "_") + f" {int(getattr(event, metric))}\n")


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[:width - 3] + "..."


def _bytes(count: int) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(count) >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} B"


def _shown(microseconds: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3f}{unit}"
    return f"{microseconds:.3f}us"


_format_time = _shown


def __getattr__(name: str) -> Any:
    if name == "_is_profiler_enabled":      # True inside of a profile of this thread
        return _state.events is not None
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class record_function:
    """A block, or a function, with a separate entry in profiles. args: a text about it, for traces.

    https://pytorch.org/docs → torch.autograd.profiler.record_function
    """

    _marked, _backward, _sequence = True, False, -1
    _given: tuple[Any, ...] = ()
    _named: dict[str, Any] = {}         # noqa: RUF012

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        if args is not None:
            self._given = (args,)

    def __enter__(self) -> record_function:
        self._outer, _state.inner = _state.inner, 0.0
        self._siblings, _state.children = _state.children, []
        self._start = time.perf_counter_ns() / 1e3
        return self

    def __exit__(self, *exception: Any) -> None:
        end = time.perf_counter_ns() / 1e3
        event = self.event = FunctionEvent(self.name, self._start, end, end - self._start - _state.inner)
        event.is_user_annotation, event.cpu_children = self._marked, _state.children
        event.is_backward, event.sequence_nr = self._backward, self._sequence
        for child in _state.children:
            child.cpu_parent = event
            event.cpu_memory_usage += child.cpu_memory_usage
        _state.children = self._siblings
        if _state.events is not None:
            _state.events.append(event)
            _state.children.append(event)
            if _state.settings is not None and _state.settings.record_shapes and (self._given or self._named):
                event.arguments = found = Arguments(self._given)
                event.input_shapes = [shape if isinstance(arg, TensorBase) else []
                                      for shape, arg in zip(found.shapes, self._given)]
                event.concrete_inputs, event.input_dtypes = found.values, found.types
                event.kwinputs = dict(self._named)
        _state.inner = self._outer + end - self._start

    def __call__(self, function: Any) -> Any:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.name):
                return function(*args, **kwargs)
        return call


def _record_function_with_args_enter(name: str, *args: Any) -> record_function:
    """Begin a block with arguments, for `_record_function_with_args_exit`."""
    block = record_function(name)
    block._given = args
    return block.__enter__()


def _record_function_with_args_exit(block: record_function) -> None:
    """End a block."""
    block.__exit__()


class _RecordFunctionFast(record_function):
    """A block with arguments and named values, which a profile that records shapes notes."""

    _marked = False

    def __init__(self, name: str, input_values: Any = None, keyword_values: Any = None) -> None:
        super().__init__(name)
        self._given, self._named = tuple(input_values or ()), dict(keyword_values or {})


class _ExperimentalConfig:
    """Options of PyTorch's tracer, which profiles take and keep: stacks are always complete, as with `verbose`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.options = args, options


def _set_fwd_bwd_enabled_val(value: bool) -> None:
    """Set whether traces have arrows from forward calls to their backward."""
    FORWARD_BACKWARD[0] = bool(value)


class _Call(record_function):
    """A call of a public function."""

    _marked = False

    def __init__(self, name: str, given: tuple[Any, ...]) -> None:
        self.name, self._given = name, given


class _Step(record_function):
    """A step of a backward, in two entries as PyTorch has them: what the engine does, and the formula."""

    _marked, _backward = False, True

    def __init__(self, node: Any, inner: bool = False) -> None:
        name = node.name()
        self.name = name if inner else f"autograd::engine::evaluate_function: {name}"
        self._sequence = -1 if type(node) is Leaf else node.time
        self._backward = inner
        self._formula = None if inner else _Step(node, True)

    def __enter__(self) -> record_function:
        super().__enter__()
        if self._formula is not None:
            self._formula.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._formula is not None:
            self._formula.__exit__(*exception)
        super().__exit__(*exception)


def _timed(what: Any) -> record_function:
    """Return the block that times a step of a backward, or a name, for `core.mode.timed`."""
    return record_function(what) if isinstance(what, str) else _Step(what)


class _Timing(TorchFunctionMode):
    """Measures each public function."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        settings, name = _state.settings, name_of(func, args)
        if name is None:
            return func(*args, **(kwargs or {}))
        call = _Call(name, (*args, *(kwargs or {}).values()))
        with call:
            result = func(*args, **(kwargs or {}))
            step = getattr(result, "_node", None)
            if step is not None and type(step) is not Leaf:
                call._sequence = (step.node if type(step) is Output else step).time
        if settings is not None and _state.events is not None:
            settings.note(call.event, args, result)
        return result


class profile:
    """A block whose calls are measured. https://pytorch.org/docs → torch.autograd.profiler.profile"""

    def __init__(self, enabled: bool = True, *, record_shapes: bool = False, profile_memory: bool = False,
                 with_stack: bool = False, **unused: Any) -> None:
        self._began = 0.0
        self.enabled, self.function_events = enabled, EventList()
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.function_events.shows_memory = profile_memory

    def note(self, event: FunctionEvent, args: Any, result: Any) -> None:
        """Record memory and stack of a call, if they are wanted. A new result's memory counts as allocated."""
        if (self.profile_memory and isinstance(result, TensorBase) and result.origin is None
                and not any(result is a for a in args)):
            event.self_cpu_memory_usage = result.array.nbytes
            event.cpu_memory_usage += result.array.nbytes
        if self.with_stack:
            frame: Any = sys._getframe(2)
            while frame is not None:
                event.stack.append(f"{frame.f_code.co_filename}({frame.f_lineno}): {frame.f_code.co_name}")
                frame = frame.f_back

    def __enter__(self) -> profile:
        if self.enabled:
            if _state.events is not None:
                raise RuntimeError("Profiler is already enabled on this thread")
            _state.events, _state.settings, _state.children, self._mode = self.function_events, self, [], _Timing()
            mode.watching.timing, self._began = _timed, time.perf_counter_ns() / 1e3
            self._mode.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self.enabled:
            self._mode.__exit__(*exception)
            _state.events = _state.settings = mode.watching.timing = None
            begin, end = self.function_events.window
            self.function_events.window = min(begin, self._began), max(end, time.perf_counter_ns() / 1e3)
            self.function_events.sort(key=lambda event: (event.start, -event.end))

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, **unused: Any) -> EventList:
        """Add up the events of each function."""
        return self.function_events.key_averages(group_by_input_shape)

    def total_average(self) -> FunctionEventAvg:
        """Add up all events."""
        return self.function_events.total_average()

    def table(self, *args: Any, **kwargs: Any) -> str:
        """The calls as lines of text."""
        return self.function_events.table(*args, **kwargs)

    def export_chrome_trace(self, path: str) -> None:
        """Write the calls as JSON for a browser's trace viewer."""
        self.function_events.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks, for flame graphs."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    self_cpu_time_total = property(lambda self: self.function_events.self_cpu_time_total, doc="The time of all, in µs.")

    def __iter__(self) -> Any:
        return iter(self.function_events)

    def __str__(self) -> str:
        return str(self.function_events)


class emit_nvtx:
    """A `with` block that does nothing: no events are sent to CUDA's profilers.

    https://pytorch.org/docs → torch.autograd.profiler.emit_nvtx
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        pass

    def __enter__(self) -> emit_nvtx:
        return self

    def __exit__(self, *exception: Any) -> None:
        pass


emit_itt = emit_nvtx
