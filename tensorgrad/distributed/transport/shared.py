"""The backend "gloo": the ranks of one machine, through shared memory.

All ranks take part in all rounds of a collective. In a round a rank writes a chunk to a slot of its own, rings (`doorbells.py`), waits for the others' rings,
and reads their slots. Whatever is written for a round has been read when its reader rings for the next one, so three slots in turn allow writing one chunk
ahead. Small arrays ride in the ring itself.

Synchronous collectives run on the caller's thread, unless asynchronous ones are under way: these run on a thread of the group's, which starts with the first.
"""
from __future__ import annotations

import os
import struct
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from multiprocessing import util
from typing import Any

import numpy as np

from ...guest import STATE, begin, end
from .. import flight
from ..errors import DistBackendError
from ..operations import ReduceOp, combine
from ..stores import PrefixStore, Store
from ..work import Work
from . import mesh
from .base import Call, Transport
from .doorbells import HEAD, HEADER, RING, Doorbells, Peer
from .letters import Letters
from .segments import SLOTS, Segments

__all__ = ["Shared", "create"]

INLINE = 8 << 10                # bytes of an array that rides in a ring
SLOW = "eE"                     # float16 and bfloat16, which NumPy adds slowly: two ranks share the work
MAXIMUM = 64                    # ranks


def create(store: Store, rank: int, size: int, timeout: timedelta, name: str, ranks: Any = None) -> Transport:
    """Return the transport of a new group. All its ranks call this. Errors: RuntimeError for a rank on another machine, TimedOut if ranks do not come."""
    if size > MAXIMUM:
        raise RuntimeError(f'the backend "gloo" has at most {MAXIMUM} ranks, not {size}: use "mpi"')
    return Shared(store, rank, size, timeout)


class Shared(Transport):
    """The ranks of one machine. https://pytorch.org/docs → torch.distributed, Gloo"""

    name, checks = "gloo", True

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size, timeout)
        self._store, self._pid = store, os.getpid()
        deadline = time.monotonic() + timeout.total_seconds()
        self.members, links = mesh.meet(store, rank, size, timeout, ["bells", "letters"])
        self._segments = Segments(rank, size, links["bells"], deadline)
        self._bells = Doorbells(rank, self.members, links["bells"], lambda: self.timeout)
        self._bells.doing = self._doing
        self._peers = self._bells.peers
        self._letters = Letters(rank, self.members, links["letters"], lambda: self.timeout, self._give_up)
        self._others = [other for other in range(size) if other != rank]
        self._call: Call | None = None
        self._head = b""                # the fingerprint of the collective under way
        self._round = 0                 # of all collectives, which tells the slot
        self._busy = threading.Lock()
        self._queue: deque[tuple[Work, Call, Callable[..., None], tuple[Any, ...]]] = deque()
        self._pending = threading.Condition()
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
        self._call = call
        head = flight.fingerprint(call)
        self._head = head + bytes(-(HEADER.size + len(head)) % 16)
        token = begin(STATE)                # NumPy's: infinities and NaN come without a word
        try:
            job(*arguments)
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
        work = Work()
        with self._pending:
            self._queue.append((work, call, job, arguments))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="tensorgrad gloo", daemon=True)
                self._thread.start()
            self._pending.notify()
        return work

    def _work(self) -> None:
        """The thread: do what is pending, in order."""
        while True:
            with self._pending:
                while not self._queue:
                    if self._closed:
                        return
                    self._pending.wait()
                work, call, job, arguments = self._queue[0]
            try:
                if self._bells.reason is not None or self._closed:
                    self._unusable()
                with self._busy:
                    self._perform(call, job, arguments)
            except BaseException as error:
                self._done(work.fail, error)
            else:
                self._done(work.complete)
            del work, call, job, arguments

    def _done(self, tell: Callable[..., None], *arguments: Any) -> None:
        with self._pending:
            self._queue.popleft()
        tell(*arguments)

    def _doing(self) -> str:
        call = self._call
        return "no collective" if call is None else f"{call.kind} number {call.sequence}"

    def _unusable(self) -> None:
        if self._pid != os.getpid():
            raise DistBackendError(f"The group belongs to process {self._pid}: a process that was forked has to make its own.")
        if self._closed:
            raise DistBackendError("The group has been closed.")
        error = self._bells.error()
        first, _, rest = str(error).partition("\n")
        raise type(error)(f"The group cannot be used any more, an error has ended it: {first}")

    # ── rounds ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _heard(self, peer: Peer) -> Any:
        """Hear the first round of a collective from a peer; what rides in it. Errors: DistBackendError if the peer does something else."""
        body = self._bells.hear(peer, HEAD)
        mark = peer.mark
        if mark != len(self._head) or not peer.buffer.startswith(self._head, peer.at):
            others = {peer.rank: bytes(body[:mark]).rstrip(b"\0")}
            raise flight.compare(self.rank, self._head.rstrip(b"\0"), others) or DistBackendError(f"{peer.member} sent a damaged message")
        return body[mark:]

    def _tell(self, payload: bytes = b"") -> None:
        """Begin the first round."""
        head = self._head
        self._bells.tell(HEADER.pack(len(head) + len(payload), len(head), HEAD, 0) + head + payload)

    def _ring(self, first: bool, *written: Any) -> None:
        """Tell all that a chunk has been written. `written`: the arrays, to send along where memory is not shared."""
        payload = b"" if self._segments.shared else self._segments.packed(written)
        if first:
            self._tell(payload)
        else:
            self._bells.tell(HEADER.pack(len(payload), 0, RING, 0) + payload)

    def _wait(self, first: bool) -> None:
        """Wait until all have rung."""
        for peer in self._peers:
            body = self._heard(peer) if first else self._bells.hear(peer, RING)
            if not self._segments.shared:
                self._segments.unpack(peer.rank, body)

    def _rounds(self, count: int, write: Callable[[int, int], tuple[Any, ...]], read: Callable[[int, int], Any], begun: bool = False) -> None:
        """Do so many rounds: `write(chunk, slot)` before a ring, one chunk ahead, `read(chunk, slot)` after the others'. Both give what they have written.

        `begun`: the collective has had a round before.
        """
        base, read_written = self._round, ()        # type: int, tuple[Any, ...]
        self._round += count
        written = write(0, base % SLOTS)
        for chunk in range(count):
            first = chunk == 0 and not begun
            self._ring(first, *written, *read_written)
            if chunk + 1 < count:
                written = write(chunk + 1, (base + chunk + 1) % SLOTS)
            self._wait(first)
            read_written = read(chunk, (base + chunk) % SLOTS) or ()

    def _parts(self, array: Any, own: Any) -> list[Any]:
        """Exchange small arrays: those of all ranks, in their order."""
        self._tell(array.tobytes())
        parts = [own] * self.size
        for peer in self._peers:
            body = self._heard(peer)
            self._fits(peer, len(body), array.nbytes)
            parts[peer.rank] = np.frombuffer(body, array.dtype)
        return parts

    def _fits(self, peer: Peer, size: int, expected: int) -> None:
        if size != expected:
            raise DistBackendError(f"Detected mismatch between collectives on ranks. {peer.member} sent {size} bytes in {self._doing()}, "
                                   f"rank {self.rank} expected {expected}.")

    # ── collectives ───────────────────────────────────────────────────────────────────────────────────────────────────

    def allreduce(self, call: Call, array: Any, op: ReduceOp) -> Work:
        return self._run(call, self._allreduce, array, op)

    def _allreduce(self, array: Any, op: ReduceOp) -> None:
        _check(op, array)
        if array.nbytes <= INLINE:
            _fold(combine(op), self._parts(array, array), array, self.rank)
        elif self.size == 2 and array.dtype.char not in SLOW:
            self._exchange(array, op)
        else:
            self._share_out(array, op)
        if op is ReduceOp.AVG:
            _divide(array, self.size)

    def _exchange(self, array: Any, op: ReduceOp) -> None:
        """Two ranks: each reads all of the other's array."""
        views, join, first = self._segments.views(array.dtype), combine(op), self.rank == 0
        own, other = views[self.rank], views[1 - self.rank]
        length = len(own[0])

        def write(chunk: int, slot: int) -> tuple[Any, ...]:
            part = array[chunk * length:(chunk + 1) * length]
            target = own[slot][:len(part)]
            target[...] = part
            return (target,)

        def read(chunk: int, slot: int) -> None:
            part = array[chunk * length:(chunk + 1) * length]
            theirs = other[slot][:len(part)]
            if first:
                join(part, theirs, out=part)
            else:
                join(theirs, part, out=part)
        self._rounds(-(-len(array) // length), write, read)

    def _share_out(self, array: Any, op: ReduceOp) -> None:
        """Each rank reduces its part of each chunk, and reads the other parts a round later."""
        views, join, size, rank = self._segments.views(array.dtype), combine(op), self.size, self.rank
        own = views[rank]
        length = len(own[0])
        count = -(-len(array) // length)

        def bounds(part: Any, other: int) -> slice:
            return slice(len(part) * other // size, len(part) * (other + 1) // size)

        def write(chunk: int, slot: int) -> tuple[Any, ...]:
            part = array[chunk * length:(chunk + 1) * length]       # of no length in the last round
            mine, target = bounds(part, rank), own[slot]
            target[:mine.start] = part[:mine.start]
            target[mine.stop:len(part)] = part[mine.stop:]
            return (target[:len(part)],)

        def read(chunk: int, slot: int) -> tuple[Any, ...]:
            part, written = array[chunk * length:(chunk + 1) * length], ()      # type: Any, tuple[Any, ...]
            if len(part):
                mine = bounds(part, rank)
                result = own[SLOTS + slot][mine]
                _fold(join, [part[mine] if other == rank else views[other][slot][mine] for other in range(size)], result, -1)
                part[mine] = result
                written = (result,)
            if chunk:
                part = array[(chunk - 1) * length:chunk * length]
                for other in self._others:
                    theirs = bounds(part, other)
                    part[theirs] = views[other][SLOTS + (slot - 1) % SLOTS][theirs]
            return written
        self._rounds(count + 1, write, read)

    def reduce(self, call: Call, array: Any, root: int, op: ReduceOp) -> Work:
        return self._run(call, self._reduce, array, root, op)

    def _reduce(self, array: Any, root: int, op: ReduceOp) -> None:
        _check(op, array)
        views, join, size, rank = self._segments.views(array.dtype), combine(op), self.size, self.rank
        if array.nbytes <= INLINE:
            parts = self._parts(array, array)
            if rank == root:
                _fold(join, parts, array, rank)
        else:
            def read(part: Any, slot: int) -> None:
                if rank == root:
                    parts = [part if other == rank else views[other][slot][:len(part)] for other in range(size)]
                    _fold(join, parts, part, rank, views[rank][SLOTS + slot][:len(part)])
            self._chunks(array, range(size), read, root)
        if op is ReduceOp.AVG and rank == root:
            _divide(array, size)

    def _chunks(self, array: Any, writers: Any, read: Callable[[Any, int], None], unwritten: int = -1) -> None:
        """Rounds in which the writers write their arrays, of equal sizes, chunk by chunk, and all read with `read(chunk of the own array, slot)`."""
        own = self._segments.views(array.dtype)[self.rank]
        length, writes = len(own[0]), self.rank in writers and self.rank != unwritten

        def write(chunk: int, slot: int) -> tuple[Any, ...]:
            if not writes:
                return ()
            part = array[chunk * length:(chunk + 1) * length]
            target = own[slot][:len(part)]
            target[...] = part
            return (target,)
        self._rounds(-(-len(array) // length), write, lambda chunk, slot: read(array[chunk * length:(chunk + 1) * length], slot))

    def broadcast(self, call: Call, array: Any, root: int) -> Work:
        return self._run(call, self._broadcast, array, root)

    def _broadcast(self, array: Any, root: int) -> None:
        if array.nbytes <= INLINE:
            self._tell(array.tobytes() if self.rank == root else b"")
            for peer in self._peers:
                body = self._heard(peer)
                if peer.rank == root:
                    self._fits(peer, len(body), array.nbytes)
                    array[...] = np.frombuffer(body, array.dtype)
            return
        slots = self._segments.views(array.dtype)[root]

        def read(part: Any, slot: int) -> None:
            if self.rank != root:
                part[...] = slots[slot][:len(part)]
        self._chunks(array, (root,), read)

    def allgather(self, call: Call, out: Any, array: Any) -> Work:
        return self._run(call, self._gather, out, array, -1)

    def gather(self, call: Call, out: Any, array: Any, root: int) -> Work:
        return self._run(call, self._gather, out, array, root)

    def _gather(self, out: Any, array: Any, root: int) -> None:
        """Fill `out` with all ranks' arrays, at the root or, with root -1, at all ranks."""
        rows = out.reshape(self.size, -1) if root in (-1, self.rank) else None
        if array.nbytes <= INLINE:
            parts = self._parts(array, array)
            for row, part in zip(rows if rows is not None else (), parts):
                row[...] = part
            return
        views, at = self._segments.views(array.dtype), 0

        def read(part: Any, slot: int) -> None:
            nonlocal at
            if rows is not None:
                for other in self._others:
                    rows[other, at:at + len(part)] = views[other][slot][:len(part)]
            at += len(part)
        self._chunks(array, range(self.size), read, root)
        if rows is not None:
            rows[self.rank] = array

    def scatter(self, call: Call, array: Any, parts: Any, root: int) -> Work:
        return self._run(call, self._scatter, array, parts, root)

    def _scatter(self, array: Any, parts: Any, root: int) -> None:
        rows = parts.reshape(self.size, -1) if self.rank == root else None
        views, rank = self._segments.views(array.dtype)[root], self.rank
        length = len(views[0]) // self.size

        def write(chunk: int, slot: int) -> tuple[Any, ...]:
            return (_spread(rows[:, chunk * length:(chunk + 1) * length], views[slot]),) if rows is not None else ()

        def read(chunk: int, slot: int) -> None:
            if rank != root:
                part = array[chunk * length:(chunk + 1) * length]
                part[...] = views[slot][rank * len(part):(rank + 1) * len(part)]
        self._rounds(max(1, -(-len(array) // length)), write, read)
        if rows is not None:
            array[...] = rows[rank]

    def reduce_scatter(self, call: Call, out: Any, array: Any, op: ReduceOp) -> Work:
        return self._run(call, self._reduce_scatter, out, array, op)

    def _reduce_scatter(self, out: Any, array: Any, op: ReduceOp) -> None:
        _check(op, array)
        rows, views, join, size, rank = array.reshape(self.size, -1), self._segments.views(array.dtype), combine(op), self.size, self.rank
        own = views[rank]
        length = len(own[0]) // size

        def write(chunk: int, slot: int) -> tuple[Any, ...]:
            return (_spread(rows[:, chunk * length:(chunk + 1) * length], own[slot]),)

        def read(chunk: int, slot: int) -> None:
            part = out[chunk * length:(chunk + 1) * length]
            mine = slice(rank * len(part), (rank + 1) * len(part))
            _fold(join, [views[other][slot][mine] for other in range(size)], part, -1)
        self._rounds(max(1, -(-len(out) // length)), write, read)
        if op is ReduceOp.AVG:
            _divide(out, size)

    def alltoall(self, call: Call, out: Any, array: Any, out_counts: list[int], counts: list[int]) -> Work:
        return self._run(call, self._alltoall, out, array, out_counts, counts)

    def _alltoall(self, out: Any, array: Any, out_counts: list[int], counts: list[int]) -> None:
        views, size, rank = self._segments.views(array.dtype), self.size, self.rank
        length = len(views[0][0]) // size
        sent, got = np.split(array, np.cumsum(counts)[:-1]), np.split(out, np.cumsum(out_counts)[:-1])
        rides = max(counts) * array.itemsize <= INLINE
        rounds = 0 if rides else -(-max(counts) // length)
        for peer in self._peers:
            payload = COUNTS.pack(counts[peer.rank], out_counts[peer.rank], rounds) + (sent[peer.rank].tobytes() if rides else b"")
            self._bells.send(peer, HEADER.pack(len(self._head) + len(payload), len(self._head), HEAD, 0) + self._head + payload)
        written = [0] * size                # how many rounds of each rank bring something
        for peer in self._peers:
            body = self._heard(peer)
            count, expected, written[peer.rank] = COUNTS.unpack_from(body)
            self._fits(peer, count * array.itemsize, out_counts[peer.rank] * array.itemsize)
            if expected != counts[peer.rank]:
                raise DistBackendError(f"Detected mismatch between collectives on ranks. {peer.member} expected {expected * array.itemsize} bytes in "
                                       f"{self._doing()}, rank {self.rank} sent {counts[peer.rank] * array.itemsize}.")
            if not written[peer.rank]:
                got[peer.rank][...] = np.frombuffer(body[COUNTS.size:], array.dtype)
        got[rank][...] = sent[rank]

        def write(chunk: int, slot: int) -> tuple[Any, ...]:
            if chunk >= rounds:
                return ()
            for other in self._others:
                part = sent[other][chunk * length:(chunk + 1) * length]
                views[rank][slot][other * length:other * length + len(part)] = part
            return (views[rank][slot],)

        def read(chunk: int, slot: int) -> None:
            for other in self._others:
                if chunk < written[other]:
                    part = got[other][chunk * length:(chunk + 1) * length]
                    part[...] = views[other][slot][rank * length:rank * length + len(part)]
        if most := max(rounds, *written):
            self._rounds(most, write, read, begun=True)

    def barrier(self, call: Call) -> Work:
        return self._run(call, self._barrier)

    def _barrier(self) -> None:
        self._tell()
        for peer in self._peers:
            self._heard(peer)

    # ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def send(self, array: Any, to: int, tag: int, later: bool) -> Work:
        if to == self.rank:
            raise ValueError("Invalid destination rank: destination rank should not be the same as the rank of the current process.")
        if self._closed or self._bells.reason is not None:
            self._unusable()
        return self._letters.send(array, to, tag, later)

    def receive(self, array: Any, source: int | None, tag: int, later: bool) -> Work:
        if source == self.rank:
            raise ValueError("Invalid source rank: source rank should not be the same as the rank of the current process.")
        if self._closed or self._bells.reason is not None:
            self._unusable()
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
        """Close, in a child that was forked, what belongs to its parent: else others would not see that the parent dies."""
        self._closed = True
        self._bells.close()
        self._letters.drop()

    def __del__(self) -> None:
        if getattr(self, "_at_exit", None) is not None:
            self.close()


COUNTS = struct.Struct("<qqq")


def _check(op: ReduceOp, array: Any) -> None:
    if op is ReduceOp.AVG and array.dtype.kind == "b":
        raise TypeError("Cannot use ReduceOp.AVG with Boolean inputs")


def _fold(join: Callable[..., Any], parts: list[Any], out: Any, own: int, scratch: Any = None) -> None:
    """Join the ranks' parts in their order, into `out`, which is the memory of the part `own`."""
    if len(parts) == 2:
        join(parts[0], parts[1], out=out)
        return
    total = out if own < 2 else np.empty_like(out) if scratch is None else scratch
    join(parts[0], parts[1], out=total)
    for part in parts[2:-1]:
        join(total, part, out=total)
    join(total, parts[-1], out=out)


def _spread(rows: Any, slot: Any) -> Any:
    """Write one chunk of each rank's part to a slot, one after the other."""
    target = slot[:rows.size]
    target.reshape(rows.shape)[...] = rows
    return target


def _divide(array: Any, size: int) -> None:
    """Divide a sum by the number of ranks; integers towards zero."""
    if array.dtype.kind in "iu":
        array[...] = np.trunc(array / size)
    else:
        np.divide(array, array.dtype.type(size), out=array)


# ── processes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_open: weakref.WeakSet[Shared] = weakref.WeakSet()


def _leave(reference: Any) -> None:
    """At the end of a process: others learn that this rank has left."""
    transport = reference()
    if transport is not None:
        transport.close()


def _forked() -> None:
    for transport in list(_open):
        transport.forked()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
