"""torch.profiler: measure the time of a training loop. https://pytorch.org/docs/stable/profiler.html

>>> import tensorgrad as torch
>>> from tensorgrad.profiler import ProfilerActivity, profile
>>> with profile(activities=[ProfilerActivity.CPU]) as prof:
...     y = torch.ones(2).exp()
>>> "aten::exp" in prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=5)
True
"""
from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable
from enum import Enum
from typing import Any

from ..autograd import profiler as _profiler
from ..autograd.profiler import DeviceType, kineto_available, record_function
from . import itt

__all__ = ["DeviceType", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function",
           "schedule", "supported_activities",
           "tensorboard_trace_handler"]


class ProfilerActivity(Enum):
    """The devices to measure: calls are measured on any device, as the CPU sees them."""

    CPU, XPU, MTIA, CUDA, HPU, PrivateUse1 = range(6)


class ProfilerAction(Enum):
    """The purpose of a step of the loop."""

    NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)


def supported_activities() -> set[ProfilerActivity]:
    """Return the activities that can be measured."""
    return {ProfilerActivity.CPU}


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
             skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:
    """Cycles of steps: some are waited for, some warm up, some are measured.

    https://pytorch.org/docs → torch.profiler.schedule

    >>> from tensorgrad.profiler import schedule
    >>> [schedule(wait=1, warmup=1, active=2)(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        least = ", ".join(f"{name}={value} (need {bound})" for name, value, bound in (
            ("wait", wait, ">= 0"), ("warmup", warmup, ">= 0"), ("active", active, "> 0"), ("repeat", repeat, ">= 0"),
            ("skip_first", skip_first, ">= 0")))
        raise AssertionError(f"Invalid profiler schedule arguments. Got {least}.")
    if not warmup:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        step += wait if skip_first_wait else 0
        cycle, place = divmod(step, wait + warmup + active)
        if place < wait or repeat and cycle >= repeat:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == wait + warmup + active - 1 else ProfilerAction.RECORD
    return action


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False) -> Callable[[Any],
                                                                                                                 None]:
    """Return a function that writes each trace to a directory, as JSON.

    https://pytorch.org/docs → torch.profiler.tensorboard_trace_handler
    """
    def handle(prof: profile) -> None:
        from socket import gethostname
        os.makedirs(dir_name, exist_ok=True)
        prof.export_chrome_trace(os.path.join(dir_name,
                                              f"{worker_name or f'{gethostname()}_{os.getpid()}'}."
                                              f"{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"))
    return handle


class profile:
    """A block whose calls are measured, step by step if there is a schedule.

    https://pytorch.org/docs → torch.profiler.profile
    """

    def __init__(self, *, activities: Any = None, schedule: Callable[[int], ProfilerAction] | None = None,
                 on_trace_ready: Callable[..., Any] | None = None, record_shapes: bool = False,
                 profile_memory: bool = False, with_stack: bool = False,
                 acc_events: bool = False, **unused: Any) -> None:
        self.acc_events = acc_events        # True if calls of earlier cycles are kept
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.on_trace_ready, self.step_num = on_trace_ready, 0
        self._options: dict[str, Any] = {"record_shapes": record_shapes, "profile_memory": profile_memory,
                                         "with_stack": with_stack}
        self.current_action = ProfilerAction.NONE
        self.profiler: Any = None
        self.metadata: dict[str, Any] = {}
        self.record_steps = schedule is not None
        self._recording = False
        self._step_block: Any = None        # the event of the present step

    def start(self) -> None:
        """Begin."""
        self.current_action = self.schedule(0)
        self._follow()

    def stop(self) -> None:
        """End."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before stopping trace")
        if self._recording:
            self._end()

    def step(self) -> None:
        """The next step of the loop begins."""
        before = self.current_action
        self._end_step()
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE and self._recording:
            self._end()
        self._follow()

    def _follow(self) -> None:
        if self.profiler is None or self.current_action is not ProfilerAction.NONE and not self._recording:
            before, self.profiler = self.profiler, _profiler.profile(**self._options)
            if before is not None and self.acc_events:
                self.profiler.function_events.extend(before.function_events)
        if self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE) and not self._recording:
            self.profiler.__enter__()
            self._recording = True
        if self._recording and self.record_steps:
            self._step_block = record_function(f"ProfilerStep#{self.step_num}").__enter__()

    def _end_step(self) -> None:
        block, self._step_block = self._step_block, None
        if block is not None:
            block.__exit__()

    def _end(self) -> None:
        self._end_step()
        self.profiler.__exit__(None, None, None)
        self._recording = False
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.stop()

    def _measured(self, for_what: str) -> Any:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {for_what}")
        return self.profiler

    def events(self) -> Any:
        """The calls."""
        return self._measured("accessing events").function_events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, **unused: Any) -> Any:
        """Return the measurements, an entry per function."""
        return self._measured("getting key averages").key_averages(group_by_input_shape)

    def export_chrome_trace(self, path: str) -> None:
        """Write the calls as JSON for a browser's trace viewer."""
        self._measured("exporting chrome trace").function_events.export_chrome_trace(path, self.metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks, for flame graphs."""
        if not self._options["with_stack"]:
            raise AssertionError("export_stacks() requires with_stack=True")
        self._measured("exporting stacks").function_events.export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Write a text into the trace, under this key."""
        self.metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Write a value into the trace, which is given as JSON. ValueError if it is no JSON."""
        self.metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def toggle_collection_dynamic(self, enable: bool, activities: Any) -> None:
        """Start or stop measuring within the block, whichever activities are named."""
        if self._recording and enable != (_profiler._state.events is not None):
            (self.profiler.__enter__ if enable else lambda: self.profiler.__exit__(None, None, None))()
