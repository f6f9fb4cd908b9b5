"""MPI: the backend of clusters, over mpi4py. https://pytorch.org/docs → torch.distributed, "mpi"

All collectives are MPI's non-blocking ones, on the memory of the arrays: MPI does not match blocking with non-blocking
calls, and ranks need not agree on who waits at once. Asynchronous works move on whenever this process is in MPI.
"""
from __future__ import annotations

import os
import socket
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import islice
from pathlib import Path
from threading import get_ident, main_thread
from time import monotonic, sleep
from typing import Any

import numpy as np

from .. import flight_recorder
from ..errors import DistBackendError
from ..operations import ReduceOp
from ..work import Work
from . import mpi_types
from .base import Call, Transport
from .mpi_guard import TAG, guard, place, print_now
from .mpi_library import load
from .mpi_types import average, fold, free_types, message, native
from .mpi_work import Order, Requests, Stages
from .single_rank import Alone

__all__ = ["MPITransport", "create"]


def create(store: Any, rank: int, size: int, timeout: timedelta, name: str,
           ranks: Sequence[int] | None = None) -> Transport:
    """The transport among all ranks of MPI, or among some of them, all of which call this. MPI needs no store.

    Errors: ImportError without mpi4py or an MPI library; RuntimeError if MPI counts other ranks than the caller.
    """
    MPI = load()
    world = MPI.COMM_WORLD
    if ranks is not None:
        return _over(MPI, _subset(world, ranks, name), timeout, name)
    if rank not in (-1, world.rank) or size not in (-1, world.size):
        raise RuntimeError(f"This process was to be rank {rank} of {size}, but it is rank {world.rank} of {world.size} "
                           f"for MPI: the backend 'mpi' takes the ranks that mpiexec or srun give. Start the program "
                           f"with `mpiexec -n {max(size, 1)} python …`, without RANK and WORLD_SIZE.")
    if world.size > 1:
        guard.share_cores(world)
        _say_who_is_who(world)
    return _over(MPI, world.Dup() if world.size > 1 else world, timeout, name)


def _say_who_is_who(world: Any) -> None:
    """With TORCH_DISTRIBUTED_DEBUG, print the process of each rank: where one is killed, the message of some launchers
    names the process alone.
    """
    if flight_recorder.get_debug_level():
        found = world.gather(f"pid {os.getpid()} on {socket.gethostname()}")
        for rank, where in enumerate(found or ()):
            print_now(f"rank {rank} of {world.size} is {where}")


def told(ranks: Sequence[int] | None, name: str, value: bytes | None) -> bytes:
    """Broadcast `value` of the first of some ranks of MPI, or of all: the rendezvous of a backend without a store.

    All of these ranks call it.
    """
    world = load().COMM_WORLD
    comm = world if ranks is None else _subset(world, ranks, name)
    found: bytes = comm.bcast(value, 0)
    if ranks is not None:
        comm.Free()
    return found


def _over(MPI: Any, comm: Any, timeout: timedelta, name: str) -> Transport:
    """A transport over a communicator of its own, which it frees in the end."""
    if comm.size > 1:
        return MPITransport(MPI, comm, timeout, name)
    if comm != MPI.COMM_WORLD:
        comm.Free()
    return Alone("mpi", "cpu", timeout)


def _subset(comm: Any, ranks: Sequence[int], name: str) -> Any:
    """A communicator among some ranks of another.

    Only those call this; groups that are made at one time differ in their tags.
    """
    whole = comm.Get_group()
    some = whole.Incl(list(ranks))
    made = comm.Create_group(some, zlib.crc32(name.encode()) % 32767)       # the largest tag that every MPI has
    some.Free()
    whole.Free()
    return made


class _Waiting:
    """Tells the guard what this thread waits for, inside a `with` block."""

    __slots__ = ("transport", "what")

    def __init__(self, transport: MPITransport, what: str) -> None:
        self.transport, self.what = transport, what

    def __enter__(self) -> None:
        guard.calls[get_ident()] = monotonic(), self.transport, self.what

    def __exit__(self, *error: object) -> None:
        guard.calls.pop(get_ident(), None)


class MPITransport(Transport):
    """The ranks of a communicator.

    There are two communicators: the second carries later stages of asynchronous works, and the messages of the guard's
        threads.
    """

    name, device = "mpi", "cpu"

    def __init__(self, MPI: Any, comm: Any, timeout: timedelta, label: str) -> None:
        super().__init__(comm.rank, comm.size, timeout)
        self.MPI, self.comm, self.aside, self.label, self.in_place = MPI, comm, comm.Dup(), label, MPI.IN_PLACE
        self.last_tag = int(comm.Get_attr(MPI.TAG_UB))          # of large messages; users have those below
        self.free_threads = MPI.Query_thread() == MPI.THREAD_MULTIPLE     # else the guard's thread does not call MPI
        self.pending: set[Requests] = set()
        self.order = Order()
        self.closed = False
        guard.add(self)

    # ── how calls run ─────────────────────────────────────────────────────────────────────────────────────────────────

    def waiting(self, what: str) -> _Waiting:
        """Tell the guard, inside the block, that this thread waits."""
        return _Waiting(self, what)

    def failure(self, what: str, error: Exception) -> Exception:
        """An error of MPI as one of ours; others as they are."""
        if isinstance(error, self.MPI.Exception):
            error = DistBackendError(f"MPI error in {what} on rank {self.rank} of {self.size} in the group "
                                     f"{self.label!r}: {error}")
        return error

    def _start(self, call: tuple[Any, ...], later: bool) -> Any:
        name, *args = call
        return getattr(self.aside if later else self.comm, "I" + name.lower())(*args)

    def _run(self, what: str, later: bool, stages: Stages, order: Order | None = None) -> Work:
        """Run stages of calls, now or as a work that goes on. There is an order where there are later stages."""
        self._check_open()
        try:
            if later or order is not None:
                self._forget_ended()
                work = Requests(what, stages, self._start, self, order)
                if later:
                    return work
                work.wait()
                return Work.done()
            with self.waiting(what):
                for stage in stages:
                    self._finish([self._start(call, False) for call in stage])
        except self.MPI.Exception as error:
            raise self.failure(what, error) from error
        return Work.done()

    def _finish(self, requests: list[Any], statuses: list[Any] | None = None) -> None:
        """Wait for requests, and meanwhile move on the works that other ranks may wait for."""
        while self.order.works:
            if self.MPI.Request.Testall(requests, statuses):
                return
            if not self.order.poll():
                sleep(0)                # to other ranks of the machine
        self.MPI.Request.Waitall(requests, statuses)

    def _check_open(self) -> None:
        if self.closed:
            raise DistBackendError(f"The group {self.label!r} has been destroyed, or this process is a fork of one of "
                                   f"its ranks")

    def _forget_ended(self) -> None:
        """Move some works on, and let go of those that have ended although nobody waited for them."""
        for work in list(islice(self.pending, 8)):
            work.is_completed()

    def _exchange(self, parts: dict[int, Any], places: dict[int, Any]) -> list[tuple[Any, ...]]:
        """Calls that send a part to each rank of `parts` and receive one from each rank of `places`: for what MPI's
        collectives cannot count.
        """
        return [*[("Recv", message(array), other, self.last_tag) for other, array in places.items()],
                *[("Send", message(array), other, self.last_tag) for other, array in parts.items()]]

    def _parts(self, array: Any) -> dict[int, Any]:
        return dict(enumerate(array.reshape(self.size, -1)))

    # ── reductions ────────────────────────────────────────────────────────────────────────────────────────────────────

    def allreduce(self, call: Call, array: Any, op: ReduceOp) -> Work:
        how = native(array.dtype, op)
        if (call.later or how is None or how[2] is not None or array.size > mpi_types.LIMIT or self.order.works
                or self.closed):
            if how is None:
                return self._run(call.kind, call.later, self._fold(array, op, None), self.order)
            return self._run(call.kind, call.later, self._reduce(array, op, how, None))
        thread = get_ident()
        guard.calls[thread] = monotonic(), self, call.kind
        try:
            self.comm.Iallreduce(self.in_place, (array, array.size, how[0]), how[1]).Wait()
        except self.MPI.Exception as error:
            raise self.failure(call.kind, error) from error
        finally:
            del guard.calls[thread]
        if op is ReduceOp.AVG:
            average(array, self.size)
        return Work.done()

    def reduce(self, call: Call, array: Any, root: int, op: ReduceOp) -> Work:
        how = native(array.dtype, op)
        if how is None:
            return self._run(call.kind, call.later, self._fold(array, op, root), self.order)
        return self._run(call.kind, call.later, self._reduce(array, op, how, root))

    def _reduce(self, array: Any, op: ReduceOp, how: Any, root: int | None) -> Stages:
        """Let MPI reduce an array, in pieces if it is very long, at all ranks or at the root."""
        unit, operation, view = how
        numbers = array if view is None else array.view(view)
        pieces = [numbers[start:start + mpi_types.LIMIT] for start in range(0, max(numbers.size, 1), mpi_types.LIMIT)]
        here = self.in_place
        if root is None:
            yield [("Allreduce", here, (piece, piece.size, unit), operation) for piece in pieces]
        elif root == self.rank:
            yield [("Reduce", here, (piece, piece.size, unit), operation, root) for piece in pieces]
        else:
            yield [("Reduce", (piece, piece.size, unit), None, operation, root) for piece in pieces]
        if op is ReduceOp.AVG and root in (None, self.rank):
            average(array, self.size)

    def _fold(self, array: Any, op: ReduceOp, root: int | None) -> Stages:
        """Reduce in the order of the ranks what MPI cannot: each rank a part of the array, which it then shows to the
        others or to the root.
        """
        each, more = divmod(array.size, self.size)
        counts = [each + (other < more) for other in range(self.size)]
        starts = [other * each + min(other, more) for other in range(self.size)]
        parts = np.empty((self.size, counts[self.rank]), array.dtype)
        yield self._alltoall(parts.reshape(-1), array, [counts[self.rank]] * self.size, counts)
        total = np.empty(counts[self.rank], array.dtype)
        fold(parts, op, total)
        others = range(self.size) if root is None else [root]
        places = {other: array[start:start + count] for other, (start, count) in enumerate(zip(starts, counts))}
        if array.size > mpi_types.LIMIT:
            yield self._exchange(dict.fromkeys(others, total), places if self.rank in others else {})
            return
        whole = message(array)[0], counts, starts, message(array)[2]
        if root is None:
            yield [("Allgatherv", message(total), whole)]
        else:
            yield [("Gatherv", message(total), whole if root == self.rank else None, root)]

    def reduce_scatter(self, call: Call, out: Any, array: Any, op: ReduceOp) -> Work:
        return self._run(call.kind, call.later, self._reduce_scatter(out, array, op, native(array.dtype, op)))

    def _reduce_scatter(self, out: Any, array: Any, op: ReduceOp, how: Any) -> Stages:
        if how is None or array.size > mpi_types.LIMIT:
            parts = np.empty_like(array)
            yield self._exchange(self._parts(array), self._parts(parts))
            fold(parts.reshape(self.size, -1), op, out)
            return
        unit, operation, view = how
        numbers, place = (array, out) if view is None else (array.view(view), out.view(view))
        yield [("Reduce_scatter_block", (numbers, place.size, unit), (place, place.size, unit), operation)]
        if op is ReduceOp.AVG:
            average(out, self.size)

    # ── copies ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def broadcast(self, call: Call, array: Any, root: int) -> Work:
        return self._run(call.kind, call.later, iter([[("Bcast", message(array), root)]]))

    def allgather(self, call: Call, out: Any, array: Any) -> Work:
        if out.size > mpi_types.LIMIT:
            stage = self._exchange(dict.fromkeys(range(self.size), array), self._parts(out))
        else:
            stage = [("Allgather", message(array), message(out, array.size))]
        return self._run(call.kind, call.later, iter([stage]))

    def gather(self, call: Call, out: Any, array: Any, root: int) -> Work:
        if array.size * self.size > mpi_types.LIMIT:
            stage = self._exchange({root: array}, self._parts(out) if out is not None else {})
        else:
            stage = [("Gather", message(array), None if out is None else message(out, array.size), root)]
        return self._run(call.kind, call.later, iter([stage]))

    def scatter(self, call: Call, array: Any, parts: Any, root: int) -> Work:
        if array.size * self.size > mpi_types.LIMIT:
            stage = self._exchange(self._parts(parts) if parts is not None else {}, {root: array})
        else:
            stage = [("Scatter", None if parts is None else message(parts, array.size), message(array), root)]
        return self._run(call.kind, call.later, iter([stage]))

    def alltoall(self, call: Call, out: Any, array: Any, out_counts: list[int], counts: list[int]) -> Work:
        return self._run(call.kind, call.later, iter([self._alltoall(out, array, out_counts, counts)]))

    def _alltoall(self, out: Any, array: Any, out_counts: list[int], counts: list[int]) -> list[tuple[Any, ...]]:
        """Messages, since ranks know the counts of others neither to be equal nor to be short enough for
        MPI_Alltoallv.
        """
        def parts(array: Any, counts: list[int]) -> dict[int, Any]:
            return dict(enumerate(np.split(array, np.cumsum(counts)[:-1])))
        return self._exchange(parts(array, counts), parts(out, out_counts))

    def barrier(self, call: Call) -> Work:
        return self._run(call.kind, call.later, iter([[("Barrier",)]]))

    # ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _check_tag(self, tag: int) -> None:
        if not 0 <= tag < self.last_tag:
            raise ValueError(f"Tag must be nonnegative and, for this MPI library, below {self.last_tag}, but got {tag}")

    def send(self, array: Any, to: int, tag: int, later: bool) -> Work:
        self._check_tag(tag)
        return self._run("SEND", later, iter([[("Send", message(array), to, tag)]]))

    def receive(self, array: Any, source: int | None, tag: int, later: bool) -> Work:
        self._check_tag(tag)
        self._check_open()
        place = message(array)
        sender = self.MPI.ANY_SOURCE if source is None else source

        def received(status: Any) -> int:
            count = status.Get_count(place[2])
            if count != place[1]:
                raise DistBackendError(f"Rank {self.rank} expected {array.size} elements of {array.dtype} from rank "
                                       f"{status.source} with tag {tag}, but {status.Get_count(self.MPI.BYTE)} bytes "
                                       f"came")
            return int(status.source)
        if later:
            self._forget_ended()
            return Requests("RECV", iter([[("Recv", place, sender, tag)]]), self._start, self, received=received)
        status = self.MPI.Status()
        try:
            with self.waiting("RECV"):
                self._finish([self.comm.Irecv(place, sender, tag)], [status])
        except self.MPI.Exception as error:
            raise self.failure("RECV", error) from error
        return Work.done(source=received(status))

    # ── groups ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def split(self, ranks: list[int], name: str) -> Transport:
        self._check_open()
        return _over(self.MPI, _subset(self.comm, ranks, name), self.timeout, name)

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        guard.remove(self)
        if not self.MPI.Is_finalized():
            if self.pending:
                self._give_up()
            self.comm.Free()
            self.aside.Free()
            if not guard.groups:
                free_types()

    def _give_up(self) -> None:
        """Cancel what waits for messages. Others end by themselves; their arrays live until then."""
        for work in list(self.pending):
            if not work.is_completed() and work.received is not None:
                for request in work.requests:
                    request.Cancel()
                    request.Wait()
                work.fail(DistBackendError(f"The group {self.label!r} was destroyed before a message came"))
                self.pending.discard(work)
        abandoned.extend(self.pending)

    def abort(self, reason: str) -> None:
        print_now(f"{place(self)}: {reason}: the job is aborted.")
        self.end_job()

    # ── for the guard ─────────────────────────────────────────────────────────────────────────────────────────────────

    def tell(self, news: int, ranks: Iterable[int]) -> None:
        """Tell the guards of other ranks something."""
        if not self.MPI.Is_finalized() and (self.free_threads or get_ident() == main_thread().ident):
            self.told = [self.aside.Isend((bytearray([news]), 1, self.MPI.BYTE), other, TAG) for other in ranks]

    def heard(self) -> tuple[int, int] | None:
        """Return the message that another rank's guard has sent, as (news, rank)."""
        if not self.free_threads or self.MPI.Is_finalized() or not self.aside.Iprobe(self.MPI.ANY_SOURCE, TAG):
            return None
        news, status = bytearray(1), self.MPI.Status()
        self.aside.Recv((news, 1, self.MPI.BYTE), self.MPI.ANY_SOURCE, TAG, status)
        return news[0], status.source

    def end_job(self) -> None:
        """End all ranks of the job, those outside the group, too."""
        remove_segments()
        if self.free_threads or get_ident() == main_thread().ident:
            self.MPI.COMM_WORLD.Abort(1)
        os._exit(1)                 # which the launcher notices


def remove_segments() -> None:
    """Remove the names of the shared memory that MPI has mapped here: MPI does so when it is finalized, and not when a
    job is aborted.
    """
    with suppress(OSError):
        for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
            file = Path(line.split(maxsplit=5)[-1])
            if (file.parent == Path("/dev/shm")
                    and file.name.startswith(("mpich_shm_", "sm_segment", "vader_segment", "Intel_MPI"))):
                file.unlink(missing_ok=True)


abandoned: list[Requests] = []      # what was under way when its group was destroyed
