"""torch.profiler: where the time of a training loop goes. https://pytorch.org/docs/stable/profiler.html

>>> import tensorgrad as torch
>>> from tensorgrad.profiler import ProfilerActivity, profile
>>> with profile(activities=[ProfilerActivity.CPU]) as prof:
...     y = torch.ones(2).exp()
>>> "torch.Tensor.exp" in prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=5)
True
"""
from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum
from typing import Any

from .autograd import profiler as _profiler
from .autograd.profiler import record_function

__all__ = ["ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function", "schedule", "supported_activities",
           "tensorboard_trace_handler"]


class ProfilerActivity(Enum):
    """What is measured: calls, on any device, as the CPU sees them."""

    CPU, XPU, MTIA, CUDA, HPU, PrivateUse1 = range(6)


class ProfilerAction(Enum):
    """What a step of the loop is for."""

    NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)


def supported_activities() -> set[ProfilerActivity]:
    """What can be measured."""
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """Whether PyTorch's tracing library is there: no."""
    return False


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:
    """Cycles of steps: some are waited for, some warm up, some are measured. https://pytorch.org/docs → torch.profiler.schedule

    >>> from tensorgrad.profiler import schedule
    >>> [schedule(wait=1, warmup=1, active=2)(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        least = ", ".join(f"{name}={value} (need {bound})" for name, value, bound in (
            ("wait", wait, ">= 0"), ("warmup", warmup, ">= 0"), ("active", active, "> 0"), ("repeat", repeat, ">= 0"), ("skip_first", skip_first, ">= 0")))
        raise AssertionError(f"Invalid profiler schedule arguments. Got {least}.")

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


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False) -> Callable[[Any], None]:
    """What writes each trace to a directory, as JSON. https://pytorch.org/docs → torch.profiler.tensorboard_trace_handler"""
    def handle(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        prof.export_chrome_trace(os.path.join(dir_name, f"{worker_name or os.getpid()}.{prof.step_num}.pt.trace.json"))
    return handle


class profile:
    """A block whose calls are measured, in steps if there is a schedule. https://pytorch.org/docs → torch.profiler.profile"""

    def __init__(self, *, activities: Any = None, schedule: Callable[[int], ProfilerAction] | None = None, on_trace_ready: Callable[..., Any] | None = None,
                 **unused: Any) -> None:
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.on_trace_ready, self.step_num = on_trace_ready, 0
        self._running: Any = None
        self._done = _profiler.profile()

    def start(self) -> None:
        """Begin."""
        self._follow(self.schedule(0))

    def stop(self) -> None:
        """End."""
        if self._running is not None:
            self._end()

    def step(self) -> None:
        """The next step of the loop begins."""
        if self.schedule(self.step_num) is ProfilerAction.RECORD_AND_SAVE:
            self._end()
        self.step_num += 1
        self._follow(self.schedule(self.step_num))

    def _follow(self, action: ProfilerAction) -> None:
        if action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE) and self._running is None:
            self._running = _profiler.profile()
            self._running.__enter__()

    def _end(self) -> None:
        self._running.__exit__(None, None, None)
        self._done, self._running = self._running, None
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.stop()

    def events(self) -> Any:
        """The calls."""
        return self._done.function_events

    def key_averages(self, *args: Any, **kwargs: Any) -> Any:
        """One entry for each function."""
        return self._done.key_averages()

    def export_chrome_trace(self, path: str) -> None:
        """Write the calls as JSON for a browser's trace viewer."""
        self._done.export_chrome_trace(path)
