"""The backend "gloo": the ranks of one machine, through shared memory.

Collectives (`reductions.py`, `data_movement.py`) are rounds (`slot_exchange.py`) of writing to shared memory
(`segments.py`) and ringing (`doorbells.py`). Messages from one rank to another have separate sockets
(`point_to_point.py`); `mesh.py` connects the ranks.

Synchronous collectives run on the caller's thread, after asynchronous ones that are pending. These run on a thread of
the group's, which starts with the first, while the program goes on; where each rank has but one processor, a thread
would only take it away from the program, and whoever waits for them does them.
"""
from __future__ import annotations

import os
import socket
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from multiprocessing import util
from typing import Any

from ...runtime.numpy_state import STATE, begin, end
from ..errors import DistBackendError, TimedOut
from ..operations import ReduceOp
from ..stores import PrefixStore, Store, seconds
from ..work import Work
from . import data_movement, mesh, reductions
from .base import Call, Transport
from .doorbells import Doorbells
from .point_to_point import Letters
from .segments import Segments
from .slot_exchange import Rounds

__all__ = ["Shared", "create"]

MAXIMUM = 64                    # ranks
# seconds that an asynchronous collective waits for somebody to wait for it, where all processors are busy
PATIENCE = 0.5


class Queued(Work):
    """A collective that is to be done later: by whoever waits for it, or by the thread of its group."""

    __slots__ = ("arguments", "begun", "call", "job", "transport")

    def __init__(self, transport: Shared, call: Call, job: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        super().__init__()
        self.transport, self.call, self.job, self.arguments, self.begun = (transport, call, job, arguments,
                                                                           time.monotonic())

    def _wait(self, seconds: float | None) -> None:
        if seconds is None:
            while not self._ended and self.transport.do_next():
                pass
        else:
            self.transport.hurry()              # the thread: it can go on when this one has waited long enough
        super()._wait(seconds)

    def is_completed(self) -> bool:
        if not self._ended:
            self.transport.hurry()
        return super().is_completed()


def create(store: Store, rank: int, size: int, timeout: timedelta, name: str, ranks: Any = None) -> Transport:
    """Return the transport of a new group.

    All its ranks call this. Errors: RuntimeError for a rank on another machine, TimedOut if ranks do not come.
    """
    if size > MAXIMUM:
        raise RuntimeError(f'the backend "gloo" has at most {MAXIMUM} ranks, not {size}: use "mpi"')
    return Shared(store, rank, size, timeout)


class Shared(Transport):
    """The ranks of one machine. https://pytorch.org/docs → torch.distributed, Gloo"""

    name, checks = "gloo", True

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size, timeout)
        self._store, self._pid = store, os.getpid()
        deadline = time.monotonic() + seconds(timeout)
        self.members, links = mesh.meet(store, rank, size, timeout, ["bells", "letters"])
        try:
            self._segments = Segments(rank, size, links["bells"], deadline)
        except BaseException:
            for link in [*links["bells"].values(), *links["letters"].values()]:
                link.close()
            raise
        self._bells = Doorbells(rank, self.members, links["bells"], lambda: self.timeout)
        self._letters = Letters(rank, self.members, links["letters"], lambda: self.timeout, self._give_up,
                                self._bells.peek)
        _sockets[id(self)] = self._bells.sockets() + self._letters.sockets()
        self._rounds = Rounds(rank, size, self._bells, self._segments)
        self._busy = threading.Lock()
        self._queue: deque[Queued] = deque()
        self._pending = threading.Condition()
        self._patience = 0.0 if _has_processors_to_spare(size) else PATIENCE
        self._hurried = False           # whether the thread is not to be patient
        self._thread: threading.Thread | None = None
        self._closed = False
        _open.add(self)
        self._at_exit = util.Finalize(None, _leave, args=(weakref.ref(self),), exitpriority=20)

    # ── one collective after the other ────────────────────────────────────────────────────────────────────────────────

    def _run(self, call: Call, job: Callable[..., None], *arguments: Any) -> Work:
        """Do a collective now, or hand it to the thread if the caller does not wait or others are pending."""
        if self._closed or self._bells.reason is not None:
            self._unusable()
        if call.later or self._queue:
            return self._later(call, job, arguments)
        with self._busy:
            self._perform(call, job, arguments)
        return Work.done()

    def _perform(self, call: Call, job: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._rounds.begin(call)
        token = begin(STATE)                # NumPy's: infinities and NaN come without a word
        try:
            job(self._rounds, *arguments)
        except BaseException as error:
            self._give_up(error)
            raise
        finally:
            end(token)

    def _give_up(self, error: BaseException) -> None:
        """End everything: no rank can tell any more where the others are."""
        if self._bells.give_up(error):
            self._letters.give_up(*self._bells.reason)      # type: ignore[misc]

    def _later(self, call: Call, job: Callable[..., None], arguments: tuple[Any, ...]) -> Work:
        work = Queued(self, call, job, arguments)
        with self._pending:
            self._queue.append(work)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="tensorgrad gloo", daemon=True)
                self._thread.start()
            if len(self._queue) == 1:
                self._pending.notify()
        return work

    def _work(self) -> None:
        """The thread: do what is pending, in order, once nobody has begun to wait for it in time."""
        while True:
            with self._pending:
                while not self._queue:
                    if self._closed:
                        return
                    self._hurried = False
                    self._pending.wait()
                left = self._queue[0].begun + self._patience - time.monotonic()
                if left > 0 and not self._hurried and not self._closed:
                    self._pending.wait(left)
                    continue
            self.do_next()

    def do_next(self) -> bool:
        """Do the first of what is pending, on this thread; False if there is nothing."""
        error: BaseException | None = None
        with self._busy:
            if not self._queue:
                return False
            work = self._queue[0]
            try:
                if self._bells.reason is not None or self._closed:
                    self._unusable()
                self._perform(work.call, work.job, work.arguments)
            except BaseException as raised:
                error = raised
            with self._pending:
                self._queue.popleft()
        work.arguments = ()
        work.complete() if error is None else work.fail(error)
        return True

    def hurry(self) -> None:
        """Have the thread do what is pending at once: somebody looks whether it has ended, or waits for something
        else.
        """
        with self._pending:
            self._hurried = True
            self._pending.notify()

    def _unusable(self) -> None:
        if self._pid != os.getpid():
            raise DistBackendError(f"The group belongs to process {self._pid}: a process that was forked has to make "
                                   f"its own.")
        if self._closed:
            raise DistBackendError("The group has been closed.")
        error = self._bells.error()
        ended = type(error)(f"The group cannot be used any more, an error has ended it: "
                            f"{str(error).partition(chr(10))[0]}")
        if isinstance(ended, TimedOut):
            ended.logged = True             # the call that timed out has printed the log
        raise ended

    # ── collectives ───────────────────────────────────────────────────────────────────────────────────────────────────

    def allreduce(self, call: Call, array: Any, op: ReduceOp) -> Work:
        return self._run(call, reductions.allreduce, array, op)

    def reduce(self, call: Call, array: Any, root: int, op: ReduceOp) -> Work:
        return self._run(call, reductions.reduce, array, root, op)

    def reduce_scatter(self, call: Call, out: Any, array: Any, op: ReduceOp) -> Work:
        return self._run(call, reductions.reduce_scatter, out, array, op)

    def broadcast(self, call: Call, array: Any, root: int) -> Work:
        return self._run(call, data_movement.broadcast, array, root)

    def allgather(self, call: Call, out: Any, array: Any) -> Work:
        return self._run(call, data_movement.gather, out, array, None)

    def gather(self, call: Call, out: Any, array: Any, root: int) -> Work:
        return self._run(call, data_movement.gather, out, array, root)

    def scatter(self, call: Call, array: Any, parts: Any, root: int) -> Work:
        return self._run(call, data_movement.scatter, array, parts, root)

    def alltoall(self, call: Call, out: Any, array: Any, out_counts: list[int], counts: list[int]) -> Work:
        return self._run(call, data_movement.alltoall, out, array, out_counts, counts)

    def barrier(self, call: Call) -> Work:
        return self._run(call, data_movement.barrier)

    def room(self, size: int) -> Any:
        return self._segments.room(size) if self._bells.reason is None else None

    # ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def send(self, array: Any, to: int, tag: int, later: bool) -> Work:
        if to == self.rank:
            raise ValueError("Invalid destination rank: destination rank should not be the same as the rank of the "
                             "current process.")
        if self._closed or self._bells.reason is not None:
            self._unusable()
        if self._queue:
            self.hurry()
        return self._letters.send(array, to, tag, later)

    def receive(self, array: Any, source: int | None, tag: int, later: bool) -> Work:
        if source == self.rank:
            raise ValueError("Invalid source rank: source rank should not be the same as the rank of the current "
                             "process.")
        if self._closed or self._bells.reason is not None:
            self._unusable()
        if self._queue:
            self.hurry()
        return self._letters.receive(array, source, tag, later)

    # ── groups, and the end ───────────────────────────────────────────────────────────────────────────────────────────

    def split(self, ranks: list[int], name: str) -> Transport:
        return create(PrefixStore(f"split/{name}", self._store), ranks.index(self.rank), len(ranks), self.timeout, name)

    def close(self) -> None:
        if self._pid != os.getpid() or self._ended():
            return
        if self._bells.reason is None:
            self._bells.say_goodbye("The group was closed while it was at work.")
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        quiet = self._busy.acquire(timeout=5)           # a caller on another thread has been woken
        self._bells.close()
        self._letters.close()
        self._segments.close()
        _sockets.pop(id(self), None)
        if quiet:
            self._busy.release()

    def _ended(self) -> bool:
        """Say that it ends; whether it had ended before."""
        with self._pending:
            before, self._closed = self._closed, True
            self._pending.notify_all()
        self._at_exit.cancel()
        return before

    def abort(self, reason: str) -> None:
        if self._pid == os.getpid() and not self._closed:
            self._give_up(DistBackendError(reason))
            self.close()

    def forked(self) -> None:
        """Close, in a child that was forked, what belongs to its parent: else others would not see that the parent
        dies.
        """
        self._closed = True
        self._bells.close()
        self._letters.drop()

    def __del__(self) -> None:
        if getattr(self, "_at_exit", None) is not None:
            self.close()


# ── processes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_open: weakref.WeakSet[Shared] = weakref.WeakSet()
# The sockets of each open transport, by its id. The garbage collector would finalize them, with a ResourceWarning,
# before the transport that closes them.
_sockets: dict[int, list[socket.socket]] = {}


def _leave(reference: Any) -> None:
    """At the end of a process: others learn that this rank has left."""
    transport = reference()
    if transport is not None:
        transport.close()


def _forked() -> None:
    for transport in list(_open):
        transport.forked()
    _open.clear()
    _sockets.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _has_processors_to_spare(size: int) -> bool:
    """Return True if each rank of the machine has a processor for communication beside the one it computes on."""
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return mine >= 2 * size if mine == (os.cpu_count() or 1) else mine >= 2
