"""Profiles as JSON for trace viewers, in the format of PyTorch's traces."""
from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

from ..core.tape import TensorBase
from ..dtype import C_NAMES

FORWARD_BACKWARD = [True]       # arrows lead from forward calls to their backward
EPOCH = time.time_ns() - time.perf_counter_ns()         # of the times in profiles


def trace_of(events: list[Any], window: tuple[float, float], name: str) -> dict[str, Any]:
    """Return the trace of events between two times, in µs."""
    process, thread = os.getpid(), events[0].thread if events else 0
    begin = min([window[0], *(event.start for event in events)])
    end = max([window[1], *(event.end for event in events)])
    span = {"pid": "Spans", "ts": begin}
    written = [
        {"ph": "M", "name": "process_name", "ts": begin, "pid": process, "tid": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "thread_name", "ts": begin, "pid": process, "tid": thread,
         "args": {"name": f"thread {thread} (python)"}},
        *(_event(event, process, place) for place, event in enumerate(events)),
        *(_arrows(events, process) if FORWARD_BACKWARD[0] else ()),
        {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "tid": "PyTorch Profiler", "dur": end - begin,
         "args": {"Op count": len(events)}, **span},
        {"ph": "M", "name": "process_sort_index", "tid": 0, "args": {"sort_index": 1 << 29}, **span},
        {"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces",
         "tid": "Trace PyTorch Profiler", "ts": begin},
        {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": end}]
    return {"schemaVersion": 1, "deviceProperties": [], "displayTimeUnit": "ms",
            "baseTimeNanoseconds": EPOCH, "traceEvents": written, "traceName": name}


def _event(event: Any, process: int, place: int) -> dict[str, Any]:
    details: dict[str, Any] = {"External id": place + 1, "Record function id": place, "Ev Idx": place}
    if event.sequence_nr >= 0:
        details["Sequence number"] = event.sequence_nr
    if event.arguments is not None:
        details |= event.arguments.written()
    return {"ph": "X", "cat": "user_annotation" if event.is_user_annotation else "cpu_op", "name": event.name,
            "pid": process, "tid": event.thread, "ts": event.start, "dur": event.end - event.start, "args": details}


def _arrows(events: list[Any], process: int) -> Iterator[dict[str, Any]]:
    """Yield an arrow from each forward call to its step of a backward, numbered in the backward's order."""
    forward = {event.sequence_nr: event for event in reversed(events)       # the first call that has the step
               if event.sequence_nr >= 0 and not event.name.startswith("autograd::") and not event.is_backward}
    number = 0
    for event in events:
        if event.is_backward and event.sequence_nr in forward:
            number += 1
            for kind, at in (("s", forward[event.sequence_nr]), ("f", event)):
                yield {"ph": kind, "id": number, "pid": process, "tid": at.thread, "ts": at.start, "cat": "fwdbwd",
                       "name": "fwdbwd", **({"bp": "e"} if kind == "f" else {})}


class Arguments:
    """Notes of a profile on the arguments of a call: lists with an entry for each, empty where it does not apply."""

    def __init__(self, args: Any) -> None:
        self.shapes: list[Any] = []
        self.strides: list[Any] = []
        self.types: list[str] = []
        self.values: list[Any] = []
        for arg in args:
            tensors = isinstance(arg, (list, tuple)) and bool(arg) and all(isinstance(t, TensorBase) for t in arg)
            plain = isinstance(arg, TensorBase) and arg._storage.dense is None
            given = arg if tensors else [arg] if plain else []
            shapes, strides = [list(t.array.shape) for t in given], [list(t.stride()) for t in given]
            self.shapes.append(shapes[0] if plain else shapes)
            self.strides.append(strides[0] if plain else strides)
            self.types.append(_kind(arg, tensors))
            self.values.append(None if isinstance(arg, (TensorBase, str)) or tensors else
                               list(arg) if isinstance(arg, tuple) else arg)

    def written(self) -> dict[str, Any]:
        """Return the arguments as a trace has them."""
        return {"Input Dims": self.shapes, "Input type": self.types, "Input Strides": self.strides,
                "Concrete Inputs": ["" if value is None else str(value) for value in self.values]}


def _kind(arg: Any, tensors: bool) -> str:
    if isinstance(arg, TensorBase):
        return str(C_NAMES[arg.dtype.name])     # type: ignore[attr-defined]
    if tensors:
        return "TensorList"
    if isinstance(arg, (list, tuple)):
        return "ScalarList"
    return "Scalar" if isinstance(arg, (bool, int, float, complex)) else ""
