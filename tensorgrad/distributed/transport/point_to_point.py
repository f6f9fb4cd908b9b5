"""Messages from one rank to another, with tags: a socket between each two ranks of a group, beside that of the
doorbells.

Whoever waits for a message serves all sockets meanwhile: it reads what arrives, for whomever, and writes what others
    left unfinished. A thread does that while
messages are under way that nobody waits for (`isend`, `irecv`); it starts with the first of them. Messages that nobody
has asked for yet are kept.
"""
from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import numpy as np

from ...dtype import FROM_NUMPY
from ..errors import DistBackendError, TimedOut
from ..stores import seconds
from ..work import Work
from .mesh import Member
from .polling import IN, OUT, watcher

__all__ = ["Letters"]

HEADER = struct.Struct("<Qqb15s")               # bytes, tag, kind, name of the dtype
LETTER, ABORT, BYE = range(3)


class _Names(dict[Any, str]):
    """dtype → its name, which NumPy puts together each time."""

    def __missing__(self, dtype: Any) -> str:
        self[dtype] = name = FROM_NUMPY[dtype].name
        return name


NAMES = _Names()


class Letter(Work):
    """A message that is sent or received. Only while somebody waits, or the thread runs, does it move."""

    __slots__ = ("_letters", "dtype", "later", "source", "tag", "view")

    def __init__(self, letters: Letters, view: memoryview, dtype: str, peer: int | None, tag: int, later: bool) -> None:
        super().__init__()
        self._letters, self.view, self.dtype, self.source, self.tag, self.later = letters, view, dtype, peer, tag, later

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it has ended; True.

        Errors: those of the communication, TimedOut after the time limit, by default the group's.
        """
        if not self.is_completed():
            self._letters.until(self, timeout)
        return super().wait()

    @property
    def said(self) -> str:
        return f"{self.view.nbytes} bytes of {self.dtype} with tag {self.tag}"


class _Arrival:
    """A message that is arriving, or that nobody has asked for yet."""

    __slots__ = ("dtype", "have", "source", "tag", "view", "wanted")

    def __init__(self, source: int, tag: int, dtype: str, view: memoryview) -> None:
        self.source, self.tag, self.dtype, self.view, self.have = source, tag, dtype, view, 0
        self.wanted: Letter | None = None           # the one that asked for it

    @property
    def said(self) -> str:
        return f"{self.view.nbytes} bytes of {self.dtype} with tag {self.tag}"


class _Line:
    """The connection to one other rank."""

    def __init__(self, member: Member, link: socket.socket) -> None:
        self.member, self.rank, self.socket = member, member.rank, link
        self.outbox: deque[tuple[list[memoryview], Letter]] = deque()
        self.head, self.have = bytearray(HEADER.size), 0
        self.arrival: _Arrival | None = None
        self.gone = self.left = self.started = False        # `started`: the first of the outbox has been sent in part


class Letters:
    """The messages of one rank of a group."""

    def __init__(self, rank: int, members: list[Member], links: dict[int, socket.socket],
                 time_limit: Callable[[], timedelta],
                 give_up: Callable[[BaseException], None], peek: Callable[[int], DistBackendError | None]) -> None:
        self.rank, self._time_limit, self._give_up, self._peek = rank, time_limit, give_up, peek
        self._lines = {other: _Line(members[other], link) for other, link in links.items()}
        self._by_descriptor = {line.socket.fileno(): line for line in self._lines.values()}
        self._wanted: list[Letter] = []
        self._kept: list[_Arrival] = []
        self._ends: list[Callable[[], None]] = []           # to call once the lock is free
        self._state = threading.Condition()
        self._served = False                                # whether a thread serves the sockets
        self._later = 0                                     # messages under way that nobody need be waiting for
        self._thread: threading.Thread | None = None
        self._closed = ""
        self._poll = watcher()
        self._woken, self._waker = socket.socketpair()
        for end in self.sockets():
            end.setblocking(False)
        self._poll.register(self._woken, IN)
        for line in self._lines.values():
            self._poll.register(line.socket, IN)

    # ── what a rank asks for ──────────────────────────────────────────────────────────────────────────────────────────

    def send(self, array: Any, to: int, tag: int, later: bool) -> Work:
        """Begin to send an array."""
        view, dtype = memoryview(array.view(np.uint8)), NAMES[array.dtype]
        pieces = [memoryview(HEADER.pack(view.nbytes, tag, LETTER, dtype.encode())), *([view] if view.nbytes else [])]
        with self._state:
            line = self._lines[to]
            self._check(line)
            if not line.outbox and self._put(line, pieces):
                return Work.done()
            self._check(line)
            letter = Letter(self, view, dtype, to, tag, later)
            line.outbox.append((pieces, letter))
            self._later += later
            self._poll.modify(line.socket, IN | OUT)
            if later:
                self._start()
        self._wake()
        if not later:
            letter.wait()
        return letter

    def receive(self, array: Any, source: int | None, tag: int, later: bool) -> Work:
        """Begin to receive an array."""
        letter = Letter(self, memoryview(array.view(np.uint8)), NAMES[array.dtype], source, tag, later)
        with self._state:
            self._check(None)
            self._later += later
            kept = next((a for a in self._kept if a.wanted is None and _fits(letter, a)), None)
            if kept is None:
                line = self._lines.get(source) if source is not None else None
                if line is not None and line.gone:
                    self._later -= later
                    raise self._lost(line)
                self._wanted.append(letter)
            elif kept.have < kept.view.nbytes:
                kept.wanted = letter
            else:
                self._kept.remove(kept)
                self._deliver(kept, letter)
            if later and not letter.is_completed():
                self._start()
        self._end_some()
        if not later:
            letter.wait()
        return letter

    def until(self, letter: Letter, timeout: timedelta | None) -> None:
        """Serve the sockets, or wait for the thread that does, until a message has ended."""
        limit = seconds(self._time_limit() if timeout is None else timeout)
        end = time.monotonic() + limit
        while True:
            with self._state:
                while self._served and not letter.is_completed() and time.monotonic() < end:
                    self._state.wait(max(0.0, end - time.monotonic()))
                if letter.is_completed():
                    return
                late = time.monotonic() >= end
                self._served = self._served or not late
            if late:
                self._late(letter, limit, timeout is None)
            try:
                if not self._is_there(letter):
                    self._turn(max(0.0, end - time.monotonic()))
            finally:
                self._free()

    def _is_there(self, letter: Letter) -> bool:
        """Look whether a message has arrived that can come from one rank only."""
        line = self._lines.get(letter.source) if letter.source is not None else None
        if line is None or line.outbox:
            return False
        with self._state:
            self._read(line, once=True)
        self._end_some(serving=True)
        return letter.is_completed()

    def _late(self, letter: Letter, limit: float, fatal: bool) -> None:
        receives = any(letter is wanted for wanted in self._wanted) or any(letter is kept.wanted for kept in self._kept)
        who = "any rank" if letter.source is None else str(self._lines[letter.source].member)
        error = TimedOut(f"Timed out waiting {round(1000 * limit)}ms for {'recv' if receives else 'send'} operation to "
                         f"complete: rank {self.rank} waited for {who}, {letter.said}.")
        if fatal:
            self._give_up(error)
        raise error

    # ── sockets ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _start(self) -> None:
        """Let the thread know that there is something that nobody may be waiting for."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="tensorgrad letters", daemon=True)
            self._thread.start()
        self._state.notify_all()
        self._wake()

    def _serve(self) -> None:
        """The thread."""
        while True:
            with self._state:
                while not self._closed and (self._served or not self._later):
                    self._state.wait()
                if self._closed:
                    return
                self._served = True
            try:
                self._turn(3600.0)
            finally:
                self._free()

    def _free(self) -> None:
        with self._state:
            self._served = False
            self._state.notify_all()

    def _turn(self, seconds: float) -> None:
        """Wait until sockets are ready, and serve these."""
        ready = self._poll.poll(1000 * seconds)
        with self._state:
            for descriptor, events in ready:
                if descriptor == self._woken.fileno():
                    with suppress(OSError):
                        self._woken.recv(4096)
                elif descriptor in self._by_descriptor:
                    line = self._by_descriptor[descriptor]
                    if events & OUT:
                        self._write(line)
                    if events & ~OUT and not line.gone:
                        self._read(line)
        self._end_some(serving=True)

    def _wake(self) -> None:
        with suppress(OSError):
            self._waker.send(b"x")

    def _end_some(self, serving: bool = False) -> None:
        """Call what waits for messages that have ended.

        Another thread that serves the sockets may wait for one of them.
        """
        if not self._ends:
            return
        with self._state:
            ends, self._ends = self._ends, []
        for end in ends:
            end()
        with self._state:
            self._state.notify_all()
            if self._served and not serving:
                self._wake()

    def _put(self, line: _Line, pieces: list[memoryview]) -> bool:
        """Send what goes without waiting of a message; True if that was all of it."""
        while pieces and not line.gone:
            try:
                sent = line.socket.sendmsg(pieces) if hasattr(line.socket, "sendmsg") else line.socket.send(pieces[0])
            except BlockingIOError:
                return False
            except OSError:
                sent = -1
            if sent < 0:
                self._read(line)                # it may have said why
                if not line.gone:
                    self._gone(line)
                return False
            line.started = True
            while pieces and sent >= len(pieces[0]):
                sent -= len(pieces.pop(0))
            if pieces:
                pieces[0] = pieces[0][sent:]
        line.started = bool(pieces)
        return not pieces

    def _write(self, line: _Line) -> None:
        """Send what goes without waiting of all messages to a rank."""
        while line.outbox and self._put(line, line.outbox[0][0]):
            letter = line.outbox.popleft()[1]
            self._ended(letter, letter.complete)
        if not line.gone:
            self._poll.modify(line.socket, IN | OUT if line.outbox else IN)

    def _read(self, line: _Line, once: bool = False) -> None:
        """Read what is there; with `once`, no more than one message."""
        while not line.gone:
            arrival = line.arrival
            try:
                if arrival is None:
                    got = line.socket.recv_into(memoryview(line.head)[line.have:])
                else:
                    got = line.socket.recv_into(arrival.view[arrival.have:])
            except BlockingIOError:
                return
            except OSError:
                got = 0
            if not got:
                self._gone(line)
            elif arrival is None:
                line.have += got
                if line.have == HEADER.size:
                    self._begin(line)
                    if once and line.arrival is None:
                        return
            else:
                arrival.have += got
                if arrival.have == arrival.view.nbytes:
                    self._arrived(line, arrival)
                    if once:
                        return

    def _begin(self, line: _Line) -> None:
        """A header has arrived: find who asked for the message."""
        size, tag, kind, name = HEADER.unpack(line.head)
        line.have = 0
        if kind == BYE:
            line.left = True
            return
        dtype = name.rstrip(b"\0").decode(errors="replace")
        arrival = line.arrival = _Arrival(line.rank, tag, dtype if kind == LETTER else "", memoryview(b""))
        wanted = next((letter for letter in self._wanted if _fits(letter, arrival)), None) if kind == LETTER else None
        if wanted is not None:
            self._wanted.remove(wanted)
            arrival.wanted = wanted
        if wanted is not None and wanted.view.nbytes == size and wanted.dtype == dtype:
            arrival.view = wanted.view
        else:
            arrival.view = memoryview(bytearray(size))
            if kind == LETTER:
                self._kept.append(arrival)
        if not size:
            self._arrived(line, arrival)

    def _arrived(self, line: _Line, arrival: _Arrival) -> None:
        line.arrival = None
        if not arrival.dtype:                           # it has given up
            line.left = True
            text = bytes(arrival.view).decode(errors="replace")
            self._doom(TimedOut(text) if arrival.tag else DistBackendError(text))
        elif arrival.wanted is not None:
            if arrival in self._kept:
                self._kept.remove(arrival)
            self._deliver(arrival, arrival.wanted)

    def _deliver(self, arrival: _Arrival, letter: Letter) -> None:
        if arrival.view.nbytes != letter.view.nbytes or arrival.dtype != letter.dtype:
            error = DistBackendError(f"Detected mismatch between messages. {self._lines[arrival.source].member} sent "
                                     f"{arrival.said}, rank {self.rank} expected {letter.said}.")
            self._ended(letter, lambda: letter.fail(error))
            return
        if arrival.view.obj is not letter.view.obj:
            letter.view[:] = arrival.view
        self._ended(letter, lambda: letter.complete(arrival.source))

    def _ended(self, letter: Letter, end: Callable[[], None]) -> None:
        self._later -= letter.later
        self._ends.append(end)

    # ── errors and the end ────────────────────────────────────────────────────────────────────────────────────────────

    def _check(self, line: _Line | None) -> None:
        if self._closed:
            raise DistBackendError(f"The group cannot be used any more, an error has ended it: {self._closed}")
        if line is not None and line.gone:
            raise self._lost(line)

    def _lost(self, line: _Line) -> DistBackendError:
        return DistBackendError(f"Connection closed by peer: {line.member} {line.member.fate(line.left)} while rank "
                                f"{self.rank} needed it for a message.")

    def _gone(self, line: _Line) -> None:
        """The connection has ended: what is under way with this rank ends, and if it did not say that it leaves,
        everything.
        """
        line.gone, error = True, self._lost(line)
        self._poll.unregister(line.socket)
        self._by_descriptor.pop(line.socket.fileno(), None)
        if not line.left:
            self._doom(self._peek(line.rank) or error)          # it may have said why elsewhere
            return
        alone = all(other.gone for other in self._lines.values())
        for letter in [letter for letter in self._wanted if letter.source == line.rank or letter.source is None
                       and alone]:
            self._wanted.remove(letter)
            self._fail(letter, error)
        self._fail_line(line, error)

    def _fail(self, letter: Letter, error: BaseException) -> None:
        self._ended(letter, lambda: letter.fail(error))

    def _fail_line(self, line: _Line, error: BaseException) -> None:
        for _, letter in line.outbox:
            self._fail(letter, error)
        line.outbox.clear()
        if line.arrival is not None and line.arrival.wanted is not None:
            self._fail(line.arrival.wanted, error)
        line.arrival = None

    def _fail_all(self, error: BaseException) -> None:
        """End all messages with an error."""
        for letter in self._wanted:
            self._fail(letter, error)
        self._wanted.clear()
        for line in self._lines.values():
            self._fail_line(line, error)

    def _doom(self, error: BaseException) -> None:
        """There is no going on: tell the others, end all messages; the group's other work follows."""
        if not self._closed:
            self._closed = str(error)
            body = self._closed.encode()[:32 << 10]
            self._say(HEADER.pack(len(body), isinstance(error, TimedOut), ABORT, b"") + body)
            self._fail_all(error)
            self._ends.append(lambda: self._give_up(error))

    def give_up(self, text: str, late: bool) -> None:
        """End all messages with an error, and tell the others."""
        with self._state:
            self._doom(TimedOut(text) if late else DistBackendError(text))
            self._state.notify_all()
        self._wake()
        self._end_some()

    def _say(self, message: bytes) -> None:
        """Send to all without waiting; where that cannot be, or a message is half sent, end the connection."""
        for line in self._lines.values():
            if not line.gone:
                with suppress(OSError):
                    if line.started or line.socket.send(message) < len(message):
                        line.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Say goodbye, end the thread, close the connections."""
        with self._state:
            if not self._closed:
                self._say(HEADER.pack(0, 0, BYE, b""))
                self._closed = "it has been closed"
            self._fail_all(DistBackendError("The group was closed while a message was under way."))
            self._state.notify_all()
        self._wake()
        self._end_some()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self.drop()

    def drop(self) -> None:
        """Close the connections, and say nothing."""
        self._closed = self._closed or f"it belongs to another process than {os.getpid()}"
        for held in self.sockets():
            held.close()

    def sockets(self) -> list[socket.socket]:
        """Return all sockets that `drop` closes."""
        return [self._woken, self._waker, *(line.socket for line in self._lines.values())]


def _fits(letter: Letter, arrival: _Arrival) -> bool:
    """Return True if a message is the one that was asked for."""
    return arrival.tag == letter.tag and letter.source in (None, arrival.source)
