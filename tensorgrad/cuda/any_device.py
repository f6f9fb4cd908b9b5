"""Streams and events of any device: `torch.Stream`, `torch.Event`. streams.py has the classes of CUDA devices."""
from __future__ import annotations

from typing import Any, ClassVar

from ..device import CPU
from ..device import device as Device
from ..storage.cuda import device_count

__all__ = ["Event", "Stream"]


class Stream:
    """The order of work on a device; on the CPU there is but one. https://pytorch.org/docs → torch.Stream

    >>> import tensorgrad as torch
    >>> torch.Stream("cpu")
    torch.Stream device_type=cpu, device_index=-1, stream_id=0
    """

    device: Device = CPU
    device_index, device_type, stream_id = -1, 0, 0
    of: ClassVar[dict[str, Any]] = {}       # the classes for other types of device, which their modules register

    def __new__(cls, device: Any = None, *, priority: int = 0, **kwargs: Any) -> Any:
        where = Device("cuda" if device_count() else "cpu") if device is None else Device(device)
        if cls is Stream and where.type == "cuda":
            return cls.of["cuda"](where, priority)
        return super().__new__(cls)

    def query(self) -> bool:
        """Return True if all work so far is done."""
        return True

    def synchronize(self) -> None:
        """Wait until all work so far is done."""

    def record_event(self, event: Any = None) -> Any:
        """Record an event, which happens when all work so far is done."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Any) -> None:
        """Make later work wait for an event."""
        event.wait(self)

    def wait_stream(self, stream: Any) -> None:
        """Make later work wait for the work so far of another stream."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: object) -> None:
        """Do nothing."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device, self.stream_id) == (other.device, other.stream_id)

    def __hash__(self) -> int:
        return hash((self.stream_id, self.device))

    def __repr__(self) -> str:
        return (f"torch.Stream device_type={self.device.type}, device_index={self.device_index}, "
                f"stream_id={self.stream_id}")


class Event:
    """A point in a device's work; the CPU has none. https://pytorch.org/docs → torch.Event"""

    device: Device = CPU
    event_id = 0
    enable_timing = False
    of: ClassVar[dict[str, Any]] = {}       # the classes for other types of device, which their modules register

    def __new__(cls, device: Any = None, *, enable_timing: bool = False, blocking: bool = False,
                interprocess: bool = False) -> Any:
        where = Device("cuda" if device_count() else "cpu") if device is None else Device(device)
        if cls is Event and where.type == "cuda":
            return cls.of["cuda"](enable_timing, blocking, interprocess)
        self = super().__new__(cls)
        self.enable_timing = enable_timing
        return self

    def record(self, stream: Any = None) -> None:
        """Make the event happen when all work of the stream so far is done."""
        raise RuntimeError("cpu backend doesn't support events.")

    def query(self) -> bool:
        """Return True if the event has happened, or was never recorded."""
        return True

    def synchronize(self) -> None:
        """Wait until the event has happened."""

    def wait(self, stream: Any = None) -> None:
        """Make later work of the stream wait for the event."""

    def elapsed_time(self, end_event: Any) -> float:
        """Return the milliseconds from this event to a later one."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self.event_id and end_event.event_id):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return self._until(end_event)

    def _until(self, end_event: Any) -> float:
        raise RuntimeError("cpu backend doesn't support events.")

    def __repr__(self) -> str:
        return (f"torch.Event device_type={self.device.type}, "
                f"device_index={-1 if self.device.index is None else self.device.index}, "
                f"event_flag={int(self.enable_timing)}, event_id={self.event_id}")
