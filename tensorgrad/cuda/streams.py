"""Streams and events: the order of a device's work, and points in it.

https://pytorch.org/docs/stable/cuda.html#streams-and-events

A simulated device finishes its work before a call returns: streams have nothing to wait for, and events read the host's
clock.
"""
from __future__ import annotations

import threading
import time
from itertools import count
from typing import Any

from ..device import defaults
from ..device import device as Device
from ..storage.cuda import device_count, import_cupy, simulated_count
from . import any_device, devices

__all__ = ["Event", "ExternalStream", "Stream", "StreamContext", "current_stream", "default_stream",
           "get_stream_from_external", "set_stream", "stream"]

_numbers = count(1)        # of the streams and events of simulated devices


class _Current(threading.local):
    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}


_current = _Current()


# ── of CUDA devices ───────────────────────────────────────────────────────────────────────────────────────────────────


class Stream(any_device.Stream):
    """The order of work on a CUDA device.

    As a context manager, where work goes. https://pytorch.org/docs → torch.cuda.Stream

    The priority is kept, but CuPy has streams of one priority only.
    """

    device_type = 1
    native: Any = None         # CuPy's stream; None on a simulated device
    priority = 0

    def __new__(cls, device: Any = None, priority: int = 0, **kwargs: Any) -> Any:
        if not device_count():
            raise RuntimeError("torch.cuda.Stream requires CUDA support: see tensorgrad.cuda.init(), which says what "
                               "is missing")
        index = devices.backend_at(device).index
        self = object.__new__(cls)
        self.priority = priority
        if simulated_count():
            return self._on(index, next(_numbers))
        cupy = import_cupy()
        with cupy.cuda.Device(index):
            self.native = cupy.cuda.Stream(non_blocking=True)
        return self._on(index, self.native.ptr)

    def _on(self, index: int, handle: int) -> Any:
        self.device, self.device_index, self.stream_id, self.cuda_stream = Device("cuda", index), index, handle, handle
        self._before: list[StreamContext] = []
        return self

    def query(self) -> bool:
        return self.native is None or bool(self.native.done)

    def synchronize(self) -> None:
        if self.native is not None:
            self.native.synchronize()

    def record_event(self, event: Any = None) -> Any:
        return super().record_event(Event() if event is None else event)

    def __enter__(self) -> Any:
        self._before.append(StreamContext(self))
        self._before[-1].__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._before.pop().__exit__(*exception)

    __hash__ = any_device.Stream.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and super().__eq__(other)

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"

    def __cuda_stream__(self) -> tuple[int, int]:
        """The stream for other libraries: the version of the protocol, and the stream's address."""
        return 0, self.cuda_stream


class ExternalStream(Stream):
    """A stream of another library, by its address. https://pytorch.org/docs → torch.cuda.ExternalStream"""

    def __new__(cls, stream_ptr: int, device: Any = None, **kwargs: Any) -> Any:
        return _at_address(cls, stream_ptr, devices.backend_at(device).index)


def _at_address(cls: Any, address: int, index: int) -> Any:
    """A stream that there is already; that at address 0 is the device's default."""
    self = object.__new__(cls)
    if not simulated_count():
        self.native = import_cupy().cuda.ExternalStream(address, index) if address else import_cupy().cuda.Stream.null
    return self._on(index, address)


class Event(any_device.Event):
    """A moment in the work of a CUDA device. https://pytorch.org/docs → torch.cuda.Event"""

    native: Any = None         # CuPy's event, from the first time it is recorded
    moment = 0.0               # on a simulated device
    cuda_event = 0
    _flags: dict[str, bool]

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False,
                external: bool = False) -> Any:
        if not device_count():
            raise RuntimeError("torch.cuda.Event requires CUDA support: see tensorgrad.cuda.init(), which says what is "
                               "missing")
        self = object.__new__(cls)
        self.enable_timing, self._flags = (enable_timing,
                                           {"block": blocking, "disable_timing": not enable_timing,
                                            "interprocess": interprocess})
        return self

    def record(self, stream: Any = None) -> None:
        stream = current_stream() if stream is None else stream
        if not self.cuda_event:
            self.device = stream.device
            if not simulated_count():
                with import_cupy().cuda.Device(stream.device_index):
                    self.native = import_cupy().cuda.Event(**self._flags)
            self.event_id = self.cuda_event = next(_numbers) if self.native is None else self.native.ptr
        elif self.device != stream.device:
            raise RuntimeError(f"Event device {self.device.index} does not match recording stream's device "
                               f"{stream.device_index}.")
        if self.native is None:
            self.moment = time.perf_counter()
        else:
            with import_cupy().cuda.Device(stream.device_index):
                self.native.record(stream.native)

    def query(self) -> bool:
        return self.native is None or bool(self.native.done)

    def synchronize(self) -> None:
        if self.native is not None:
            self.native.synchronize()

    def wait(self, stream: Any = None) -> None:
        stream = current_stream() if stream is None else stream
        if self.native is not None:
            stream.native.wait_event(self.native)

    def _until(self, end_event: Any) -> float:
        if self.native is None:
            return float(end_event.moment - self.moment) * 1000
        if not (self.query() and end_event.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        return float(import_cupy().cuda.get_elapsed_time(self.native, end_event.native))

    def __repr__(self) -> str:
        return f"<torch.cuda.Event {self.cuda_event:#x}>" if self.cuda_event else "<torch.cuda.Event uninitialized>"


# ── the current stream ────────────────────────────────────────────────────────────────────────────────────────────────


def default_stream(device: Any = None) -> Any:
    """The stream that a device works in if no other is chosen. https://pytorch.org/docs → torch.cuda.default_stream"""
    return _at_address(Stream, 0, devices.backend_at(device).index)


def current_stream(device: Any = None) -> Any:
    """The stream that a device works in. https://pytorch.org/docs → torch.cuda.current_stream"""
    index = devices.backend_at(device).index
    return _current.streams.get(index) or default_stream(index)


def set_stream(stream: Any) -> None:
    """Choose the stream, and its device, that this thread works in; None changes nothing.

    https://pytorch.org/docs → torch.cuda.set_stream
    """
    if stream is None:
        return
    devices.set_device(stream.device_index)
    _current.streams[stream.device_index] = stream
    if stream.native is not None:
        with import_cupy().cuda.Device(stream.device_index):
            stream.native.use()


class StreamContext:
    """Send work to a stream inside a `with` block, and make 'cuda' mean its device; None changes nothing.

    https://pytorch.org/docs → torch.cuda.StreamContext
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.device_before, self.stream_before = defaults.current_cuda, current_stream(self.stream.device_index)
            set_stream(self.stream)

    def __exit__(self, *exception: object) -> None:
        if self.stream is not None:
            set_stream(self.stream_before)
            devices.set_device(self.device_before)


def stream(stream: Any) -> StreamContext:
    """Return `StreamContext(stream)`. https://pytorch.org/docs → torch.cuda.stream"""
    return StreamContext(stream)


def get_stream_from_external(data_ptr: int, device: Any = None) -> Any:
    """A stream of another library, by its address. https://pytorch.org/docs → torch.cuda.get_stream_from_external"""
    return ExternalStream(data_ptr, device)


any_device.Stream.of["cuda"], any_device.Event.of["cuda"] = Stream, Event
