"""torch.cpu: the CPU as one of the devices. https://pytorch.org/docs/stable/cpu.html"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import amp

__all__ = ["Event", "Stream", "amp", "current_device", "current_stream", "device_count", "is_available",
           "is_initialized", "set_device", "stream", "synchronize"]


class Stream:
    """A queue of work. On the CPU, work is done at once, so the only queue is empty.

    https://pytorch.org/docs → torch.cpu.Stream
    """

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Do nothing: there is no work to wait for."""

    record_event = wait_event = wait_stream


class Event:
    """A point in a stream: it has always passed."""

    def query(self) -> bool:
        """Return True: the event has always passed."""
        return True

    def record(self, stream: Any = None) -> None:
        """Mark the point."""

    synchronize = wait = record


_stream = Stream()


def is_available() -> bool:
    """Return True: there is a CPU."""
    return True


is_initialized = is_available


def device_count() -> int:
    """Return 1: the CPU is one device."""
    return 1


def current_device() -> str:
    """Return the device's name, "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Do nothing: there is only one CPU device."""


def synchronize(device: Any = None) -> None:
    """Do nothing: all work is done."""


def current_stream(device: Any = None) -> Stream:
    """The stream."""
    return _stream


@contextmanager
def stream(stream: Any) -> Iterator[None]:
    """A `with` block; it changes nothing."""
    yield
