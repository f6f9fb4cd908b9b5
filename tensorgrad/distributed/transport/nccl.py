"""NCCL: arrays between GPUs, over cupy.cuda.nccl. https://pytorch.org/docs → torch.distributed, "nccl"

This module has not run on hardware yet: its tests run it over a stand-in for CuPy, whose functions are those of CuPy's
    source.

Calls go to the device and return. A `Work` ends by an event: `wait` lets the current stream wait for it, as in PyTorch,
    and the host goes on. Asynchronous
collectives have a stream of their own, beside which the device computes; the others take the current stream.
"""
from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

from ...dtype import FROM_NUMPY
from ...storage.cuda import import_cupy
from ..errors import DistBackendError, DistError, TimedOut
from ..operations import ReduceOp
from ..work import Work
from .base import Call, Transport

__all__ = ["NCCLTransport", "create"]


def create(store: Any, rank: int, size: int, timeout: timedelta, name: str,
           ranks: Sequence[int] | None = None) -> Transport:
    """The transport among the ranks that share the store, or MPI where there is none. They meet at the first
    collective, whose array says which device is this rank's. Errors: ImportError without CuPy; RuntimeError if CuPy has
    no NCCL.
    """
    cupy = import_cupy()
    if not cupy.cuda.nccl.available:
        raise RuntimeError("The backend 'nccl' needs NCCL, which CuPy does not find: pip install nvidia-nccl-cu12 (or "
                           "-cu13, to match CuPy), or python -m cupyx.tools.install_library --library nccl --cuda 12.x")
    return NCCLTransport(cupy, store, rank, size, timeout, name, ranks)


# ── types ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

TYPES = {"int8": "INT8", "uint8": "UINT8", "bool": "UINT8", "int32": "INT32", "uint32": "UINT32", "int64": "INT64",
         "uint64": "UINT64", "float16": "FLOAT16", "float32": "FLOAT32", "float64": "FLOAT64", "bfloat16": "BFLOAT16",
         "complex64": "FLOAT32",
         "complex128": "FLOAT64"}
NAMES = {ReduceOp.SUM: "SUM", ReduceOp.PRODUCT: "PROD", ReduceOp.MAX: "MAX", ReduceOp.MIN: "MIN", ReduceOp.AVG: "AVG"}
OF_BOOLEANS = {**NAMES, ReduceOp.SUM: "MAX", ReduceOp.PRODUCT: "MIN"}


def numbers(nccl: Any, dtype: Any) -> tuple[int, int]:
    """NCCL's type of the numbers of an array that are to be reduced, and how many of them an element has.

    Errors: TypeError for a dtype without such a type.
    """
    found = TYPES.get(FROM_NUMPY[dtype].name)
    if found is None or not hasattr(nccl, f"NCCL_{found}"):
        raise TypeError(f"Input tensor data type is not supported for NCCL process group: {FROM_NUMPY[dtype].name}")
    return getattr(nccl, f"NCCL_{found}"), 2 if dtype.kind == "c" else 1


def operation(nccl: Any, dtype: Any, op: ReduceOp) -> int:
    """NCCL's name of a reduction. Errors: PyTorch's, for one that NCCL or the dtype lacks."""
    if op not in NAMES:
        raise ValueError(f"Cannot use ReduceOp.{op.name} with NCCL")
    if dtype.kind == "b" and op is ReduceOp.AVG:
        raise TypeError("Cannot use ReduceOp.AVG with Boolean inputs")
    if dtype.kind == "c" and op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise ValueError(f"all_reduce does not support {op} on complex tensors")
    name = "NCCL_" + (OF_BOOLEANS if dtype.kind == "b" else NAMES)[op]
    if not hasattr(nccl, name):
        raise RuntimeError(f"{op} needs {name}, which this version of CuPy does not have")
    return int(getattr(nccl, name))


# ── works ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Recorded(Work):
    """Something that a stream does, and the event after it."""

    def __init__(self, transport: NCCLTransport, what: str, event: Any, arrays: tuple[Any, ...], blocks: bool,
                 source: int) -> None:
        super().__init__(source=source)
        self.transport, self.what, self.event, self.blocks = transport, what, event, blocks
        self.arrays = arrays                # whose memory is in use until then
        self.began = time.monotonic()

    def _failed(self) -> bool:
        """Take over the error of the transport: a communicator that was aborted lets all events happen."""
        if self._error is None and self.transport.error is not None:
            self.fail(self.transport.error)
        return self._error is not None

    def is_completed(self) -> bool:
        done = self.event.done
        if self._failed():
            return True
        if done and not super().is_completed():
            self.complete(self._source)
        return bool(done)

    def wait(self, timeout: timedelta | None = None) -> bool:
        with self.transport.device_of_rank():
            if timeout is not None:
                self._poll(timeout.total_seconds())
            elif self.blocks:
                self.event.synchronize()
            if not self._failed():
                self.transport.cupy.cuda.get_current_stream().wait_event(self.event)
                if not super().is_completed():
                    self.complete(self._source)
        if self._error is not None:
            raise self._error
        return True

    synchronize = wait

    def _poll(self, seconds: float) -> None:
        end, pause = time.monotonic() + seconds, 1e-5
        while not self.event.done and not self._failed():
            if time.monotonic() > end:
                raise TimedOut(f"Timed out waiting {round(1000 * seconds)}ms for {self.what} operation to complete")
            time.sleep(pause)
            pause = min(2 * pause, 1e-3)


# ── the transport ─────────────────────────────────────────────────────────────────────────────────────────────────────


class NCCLTransport(Transport):
    """The ranks of one NCCL communicator, each with a device of its own.

    Messages between two ranks arrive in the order in which they are sent, whatever their tags. Each call waits on the
    device for the one before, so that all devices run the calls in one order.
    """

    name, device = "nccl", "cuda"

    def __init__(self, cupy: Any, store: Any, rank: int, size: int, timeout: timedelta, label: str,
                 ranks: Sequence[int] | None = None) -> None:
        super().__init__(rank, size, timeout)
        self.cupy, self.nccl, self.store, self.label, self.ranks = cupy, cupy.cuda.nccl, store, label, ranks
        self.communicator: Any = None
        self.index = -1                         # of the device, from the first array on
        self.side: Any = None                   # the stream of asynchronous calls
        self.last: Any = None                   # the event after the last call
        self.error: Exception | None = None     # from then on, every call raises it
        self.under_way: deque[Recorded] = deque()
        # messages that begin together, see `batching`
        self.batch: list[tuple[tuple[Any, ...], Recorded]] | None = None
        self.lock = threading.RLock()
        self.closed = threading.Event()

    def device_of_rank(self) -> Any:
        """A block in which CuPy works on the device of this rank."""
        return self.cupy.cuda.Device(self.index)

    def check(self) -> None:
        """Raise the error that has ended the communicator, if any."""
        if self.error is not None:
            raise self.error
        if self.closed.is_set():
            raise DistBackendError(f"The group {self.label!r} has been destroyed")

    # ── how calls run ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _meet(self, index: int) -> None:
        """At the first call, make the communicator: rank 0 leaves its name in the store."""
        if self.communicator is not None:
            if index != self.index:
                raise RuntimeError(f"The group {self.label!r} has used cuda:{self.index} as the device of rank "
                                   f"{self.rank}, and this tensor is on cuda:{index}: tensors of one group are on one "
                                   f"device of each rank")
            return
        as_bytes = int(self.cupy.__version__.split(".")[0]) >= 14           # before, signed numbers
        found = self.nccl.get_unique_id() if self.rank == 0 else b""
        name = found if as_bytes else bytes(number & 255 for number in found)
        if self.store is None:
            from . import mpi
            name = mpi.told(self.ranks, self.label, name)
        elif self.rank == 0:
            self.store.set("nccl", name)
        else:
            name = bytes(self.store.get("nccl"))
        self.index = index
        with self.device_of_rank():
            self.communicator = self.nccl.NcclCommunicator(self.size,
                                                           name if as_bytes
                                                           else tuple((byte ^ 128) - 128 for byte in name), self.rank)
            self.side = self.cupy.cuda.Stream(non_blocking=True)
        threading.Thread(target=self._watch, name="tensorgrad-nccl-watch", daemon=True).start()

    def _run(self, what: str, later: bool, begin: Callable[[int], None], arrays: tuple[Any, ...], blocks: bool = False,
             source: int = -1) -> Recorded:
        """Let `begin(stream)` put calls into a stream; the handle of what it does."""
        with self.lock:
            self._check_communicator(f"a call before {what}")
            self.check()
            self._meet(device_of(arrays[0]))
            with self.device_of_rank():
                current = self.cupy.cuda.get_current_stream()
                stream = self.side if later else current
                if later:
                    stream.wait_event(current.record(self._event()))
                if self.last is not None:
                    stream.wait_event(self.last)
                try:
                    begin(stream.ptr)
                except self.nccl.NcclError as error:
                    raise self._failure(what, error) from error
                self.last = stream.record(self._event())
            work = Recorded(self, what, self.last, arrays, blocks, source)
            self._forget_ended()
            self.under_way.append(work)
        return work

    def _forget_ended(self) -> None:
        """Let go of the arrays of calls that the device has done."""
        while self.under_way and self.under_way[0].event.done:
            self.under_way.popleft()

    def _failure(self, what: str, error: Exception) -> Exception:
        return DistBackendError(f"NCCL error in {what} on rank {self.rank} of {self.size} in the group {self.label!r}: "
                                f"{error}")

    def _event(self) -> Any:
        return self.cupy.cuda.Event(disable_timing=True)

    def _together(self, calls: list[tuple[Any, ...]]) -> Callable[[int], None]:
        """Sends and receives that run side by side; NCCL wants both ends of each, those to oneself, too, in one
        group.
        """
        def begin(stream: int) -> None:
            self.nccl.groupStart()
            try:
                for send, array, other in calls:
                    if array.size:
                        move = self.communicator.send if send else self.communicator.recv
                        move(pointer(array), array.size * array.dtype.itemsize, self.nccl.NCCL_UINT8, other, stream)
            finally:
                self.nccl.groupEnd()
        return begin

    # ── the thread that watches ───────────────────────────────────────────────────────────────────────────────────────

    def _watch(self) -> None:
        """Until the group is destroyed, look for errors of NCCL, for calls that take too long, and for a rank that has
        given up.
        """
        while not self.closed.wait(min(0.25, max(self.timeout.total_seconds() / 4, 0.02))) and self.error is None:
            with self.lock:
                self._forget_ended()
                oldest = self.under_way[0] if self.under_way else None
                self._check_communicator(oldest.what if oldest is not None else "a call")
            if oldest is None:
                continue
            with suppress(DistError):                   # the store ends with rank 0, perhaps before this rank
                if self.store is not None and self.store.check(["gave up"]):
                    self._end(DistBackendError(bytes(self.store.get("gave up")).decode()))
            limit = self.timeout.total_seconds()        # which `ProcessGroup.set_timeout` may change
            if time.monotonic() - oldest.began > limit and self.error is None:
                self._end(TimedOut(f"Timed out waiting {round(1000 * limit)}ms for {oldest.what} operation to "
                                   f"complete"))

    def _check_communicator(self, what: str) -> None:
        """Notice an error of NCCL: it may come long after the call."""
        try:
            if self.communicator is not None and self.error is None:
                self.communicator.check_async_error()
        except self.nccl.NcclError as error:
            self._end(self._failure(what, error))

    def _end(self, error: Exception) -> None:
        """Abort the communicator, which ends its kernels on the device: what they were to write is lost, and every call
        from now on raises.
        """
        with self.lock:
            if self.error is not None:
                return
            self.error = error
            if self.communicator is not None:
                with self.device_of_rank():
                    self.communicator.abort()
            self.under_way.clear()

    def close(self) -> None:
        if self.closed.is_set():
            return
        self.closed.set()
        with self.lock:
            if self.communicator is not None and self.error is None:
                self._forget_ended()
                with self.device_of_rank():
                    if self.under_way:
                        self.communicator.abort()
                        self.error = DistBackendError(f"The group {self.label!r} was destroyed before "
                                                      f"{self.under_way[0].what} had ended")
                    else:
                        self.communicator.destroy()
            self.communicator = None
            self.under_way.clear()

    def abort(self, reason: str) -> None:
        if self.store is not None:
            self.store.set("gave up", f"rank {self.rank} of {self.size} has aborted the group {self.label!r}: "
                                      f"{reason}".encode())
        self._end(DistBackendError(reason))

    def split(self, ranks: list[int], name: str) -> Transport:
        from ..stores import PrefixStore
        self.check()
        store = None if self.store is None else PrefixStore(name, self.store)
        members = ranks if self.ranks is None else [self.ranks[rank] for rank in ranks]
        return NCCLTransport(self.cupy, store, ranks.index(self.rank), len(ranks), self.timeout, name, members)

    # ── collectives ───────────────────────────────────────────────────────────────────────────────────────────────────

    def allreduce(self, call: Call, array: Any, op: ReduceOp) -> Work:
        (kind, each), how = numbers(self.nccl, array.dtype), operation(self.nccl, array.dtype, op)
        where = pointer(array)
        return self._run(call.kind, call.later,
                         lambda stream: self.communicator.allReduce(where, where, each * array.size, kind, how, stream),
                         (array,))

    def reduce(self, call: Call, array: Any, root: int, op: ReduceOp) -> Work:
        (kind, each), how = numbers(self.nccl, array.dtype), operation(self.nccl, array.dtype, op)
        where = pointer(array)
        return self._run(call.kind, call.later,
                         lambda stream: self.communicator.reduce(where, where, each * array.size, kind, how, root,
                                                                 stream), (array,))

    def reduce_scatter(self, call: Call, out: Any, array: Any, op: ReduceOp) -> Work:
        (kind, each), how = numbers(self.nccl, array.dtype), operation(self.nccl, array.dtype, op)
        start, place, count = pointer(array), pointer(out), each * out.size
        return self._run(call.kind, call.later,
                         lambda stream: self.communicator.reduceScatter(start, place, count, kind, how, stream),
                         (array, out))

    def broadcast(self, call: Call, array: Any, root: int) -> Work:
        where, size, kind = pointer(array), array.size * array.dtype.itemsize, self.nccl.NCCL_UINT8
        return self._run(call.kind, call.later,
                         lambda stream: self.communicator.broadcast(where, where, size, kind, root, stream), (array,))

    def allgather(self, call: Call, out: Any, array: Any) -> Work:
        start, place, size, kind = pointer(array), pointer(out), array.size * array.dtype.itemsize, self.nccl.NCCL_UINT8
        return self._run(call.kind, call.later,
                         lambda stream: self.communicator.allGather(start, place, size, kind, stream), (array, out))

    def gather(self, call: Call, out: Any, array: Any, root: int) -> Work:
        calls = [(True, array, root)]
        if out is not None:
            calls += [(False, part, other) for other, part in enumerate(self._parts(out, [array.size] * self.size))]
        return self._run(call.kind, call.later, self._together(calls), (array, out))

    def scatter(self, call: Call, array: Any, parts: Any, root: int) -> Work:
        calls = [(False, array, root)]
        if parts is not None:
            calls += [(True, part, other) for other, part in enumerate(self._parts(parts, [array.size] * self.size))]
        return self._run(call.kind, call.later, self._together(calls), (array, parts))

    def alltoall(self, call: Call, out: Any, array: Any, out_counts: list[int], counts: list[int]) -> Work:
        calls = [*[(True, part, other) for other, part in enumerate(self._parts(array, counts))],
                 *[(False, part, other) for other, part in enumerate(self._parts(out, out_counts))]]
        return self._run(call.kind, call.later, self._together(calls), (array, out))

    def _parts(self, array: Any, counts: list[int]) -> list[Any]:
        starts = [sum(counts[:other]) for other in range(self.size)]
        return [array[start:start + count] for start, count in zip(starts, counts)]

    def barrier(self, call: Call) -> Work:
        """Reduce one byte; the host waits for it, as in PyTorch."""
        with self.cupy.cuda.Device(None if self.index < 0 else self.index):
            byte = self.cupy.zeros(1, "uint8")
        kind, how = self.nccl.NCCL_UINT8, self.nccl.NCCL_SUM
        where = pointer(byte)
        return self._run(call.kind, call.later,
                         lambda stream: self.communicator.allReduce(where, where, 1, kind, how, stream), (byte,),
                         blocks=True)

    # ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def send(self, array: Any, to: int, tag: int, later: bool) -> Work:
        return self._message("SEND", later, (True, array, to))

    def receive(self, array: Any, source: int | None, tag: int, later: bool) -> Work:
        if source is None:
            raise RuntimeError("Backend nccl does not support recvAnysource: with NCCL, `src` says which rank to "
                               "receive from")
        return self._message("RECV", later, (False, array, source), source)

    def _message(self, what: str, later: bool, call: tuple[Any, ...], source: int = -1) -> Work:
        if self.batch is None:
            return self._run(what, later, self._together([call]), (call[1],), source=source)
        self.check()
        self.batch.append((call, Recorded(self, what, None, (call[1],), False, source)))
        return self.batch[-1][1]

    @contextmanager
    def batching(self) -> Iterator[None]:
        """A block whose messages begin together at its end, in whatever order their ranks have them."""
        self.batch = []
        try:
            yield
            batch = self.batch
        finally:
            self.batch = None
        if batch:
            calls = [call for call, _ in batch]
            whole = self._run("MESSAGES", True, self._together(calls), tuple(array for _, array, _ in calls))
            for _, work in batch:
                work.event = whole.event


def pointer(array: Any) -> int:
    """Where the numbers of an array are in the memory of its device."""
    return int(array.data.ptr)


def device_of(array: Any) -> int:
    """The number of the device that an array is on."""
    return int(array.device.id)
