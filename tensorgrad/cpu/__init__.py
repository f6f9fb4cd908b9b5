"""torch.cpu: the CPU as one of the devices. https://pytorch.org/docs/stable/cpu.html"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import amp

__all__ = ["Event", "Stream", "amp", "current_device", "current_stream", "device_count", "is_available", "is_initialized",
           "set_device", "stream", "synchronize"]


class Stream:
    """A queue of work: on the CPU, there is but one, and everything in it is done. https://pytorch.org/docs → torch.cpu.Stream"""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Nothing is left to wait for."""

    record_event = wait_event = wait_stream


class Event:
    """A point in a stream: it has always passed."""

    def query(self) -> bool:
        """Whether it has passed."""
        return True

    def record(self, stream: Any = None) -> None:
        """Mark the point."""

    synchronize = wait = record


_stream = Stream()


def is_available() -> bool:
    """Whether there is a CPU."""
    return True


is_initialized = is_available


def device_count() -> int:
    """How many there are: one."""
    return 1


def current_device() -> str:
    """Its name."""
    return "cpu"


def set_device(device: Any) -> None:
    """There is but one."""


def synchronize(device: Any = None) -> None:
    """Everything is done."""


def current_stream(device: Any = None) -> Stream:
    """The stream."""
    return _stream


@contextmanager
def stream(stream: Any) -> Iterator[None]:
    """A `with` block; it changes nothing."""
    yield
