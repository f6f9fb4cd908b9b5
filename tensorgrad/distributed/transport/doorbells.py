"""Rounds of small messages between all ranks of a group: the doorbells that tell what has been written to shared
memory.

In a round each rank tells something to each other rank and hears something from each. The first round of a collective
carries its fingerprint, so no rank goes on beside one that does something else. Whoever waits watches all ranks: one
that dies is an end of file, and an error at once.
"""
from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from ..errors import DistBackendError, TimedOut
from ..stores import seconds
from .mesh import Member
from .polling import HUNG_UP, IN, OUT, watcher

__all__ = ["HEAD", "HEADER", "RING", "Doorbells", "Peer"]

# bytes of the body, of these the fingerprint's, kind, whether it is about a time-out
HEADER = struct.Struct("<IHBB")
HEAD, RING, ABORT, BYE = range(1, 5)
BUFFER = 128 << 10                              # bytes of a peer's messages that are read at once
LONGEST = 96 << 10                              # bytes of a body


class Peer:
    """Another rank, and what has arrived from it."""

    __slots__ = ("at", "buffer", "end", "gone", "left", "mark", "member", "poll", "rank", "socket", "start", "view")

    def __init__(self, member: Member, link: socket.socket) -> None:
        self.member, self.rank, self.socket = member, member.rank, link
        self.buffer = bytearray(BUFFER)
        self.view = memoryview(self.buffer)
        self.start = self.end = 0               # of what has arrived and was not taken
        # where the body of the last message begins, and how much of it is the fingerprint
        self.at = self.mark = 0
        self.gone = False                       # whether its connection has ended,
        self.left = False                       # and whether it said goodbye before
        self.poll: Any = None


class Doorbells:
    """The connections of one rank to all others of its group, and all waiting for them."""

    def __init__(self, rank: int, members: list[Member], links: dict[int, socket.socket],
                 time_limit: Callable[[], timedelta]) -> None:
        self.rank, self.members, self._time_limit = rank, members, time_limit
        self.peers = [Peer(members[other], links[other]) for other in sorted(links)]
        self.doing: Callable[[], str] = str     # describes what is under way, for errors
        self.reason: tuple[str, bool] | None = None     # why there is no going on, and whether that was a time-out
        self.spins = 3 if len(members) <= (os.cpu_count() or 1) else 0
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        for peer in self.peers:
            peer.socket.setblocking(False)
            if peer.socket.family == socket.AF_INET:
                for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                    peer.socket.setsockopt(socket.SOL_SOCKET, option, 1 << 20)

    # ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def tell(self, message: bytes) -> None:
        """Send a whole message to each peer."""
        for peer in self.peers:
            self.send(peer, message)

    def send(self, peer: Peer, message: bytes) -> None:
        """Send a whole message to one peer."""
        try:
            sent = peer.socket.send(message)
        except BlockingIOError:
            sent = 0
        except OSError:
            sent = -1
        if sent < len(message):
            if sent < 0:
                self._lost(peer)
            self._send_rest(peer, memoryview(message)[sent:])

    def hear(self, peer: Peer, kind: int) -> memoryview:
        """Return the body of the next message of a peer, valid until the next one is heard.

        Errors: DistBackendError if it says something else.
        """
        start = peer.start
        if peer.end - start < 8:
            self._fill(peer, 8)
            start = peer.start
        size, mark, found, late = HEADER.unpack_from(peer.buffer, start)
        if size > LONGEST:
            raise DistBackendError(f"{peer.member} claims to send {size} bytes")
        if peer.end - start < 8 + size:
            self._fill(peer, 8 + size)
            start = peer.start
        at = start + 8
        if at + size == peer.end:
            peer.start = peer.end = 0
        else:
            peer.start = at + size
        peer.at, peer.mark = at, mark
        body = peer.view[at:at + size]
        if found != kind:
            self._refuse(peer, found, bytes(body), bool(late))
        return body

    def _refuse(self, peer: Peer, kind: int, body: bytes, late: bool) -> None:
        if kind == ABORT:
            raise self._given_up(body.decode(errors="replace"), late)
        if kind == BYE:
            peer.gone = peer.left = True
            self._lost(peer)
        raise DistBackendError(f"Detected mismatch between collectives on ranks. {peer.member} is at another place of "
                               f"its program than rank {self.rank}, which runs {self.doing()}.")

    # ── waiting ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _fill(self, peer: Peer, size: int) -> None:
        """Read until so many bytes of a peer are there."""
        if peer.start + size > len(peer.buffer):
            rest = bytes(peer.view[peer.start:peer.end])
            peer.start, peer.end = 0, len(rest)
            peer.view[:len(rest)] = rest
        tries = self.spins
        while peer.end - peer.start < size:
            if peer.gone:
                self._lost(peer)
            try:
                got = peer.socket.recv_into(peer.view[peer.end:])
            except BlockingIOError:
                got = -1
            except OSError:
                got = 0
            if got > 0:
                peer.end += got
            elif got == 0:
                peer.gone = True
            elif tries > 0:
                tries -= 1
            else:
                self._pause(peer, IN)

    def _send_rest(self, peer: Peer, rest: memoryview) -> None:
        while rest:
            try:
                sent = peer.socket.send(rest)
            except BlockingIOError:
                sent = 0
            except OSError:
                sent = -1
            if sent < 0:
                self._lost(peer)
            if sent == 0:
                self._pause(peer, OUT)
            rest = rest[sent:]

    def _pause(self, peer: Peer, events: int) -> None:
        """Wait until a peer can be read from or written to. Errors: if any rank dies meanwhile, if time is up."""
        if self.reason is not None:
            raise self.error()
        poll = self._poll(peer)
        poll.modify(peer.socket, events)
        limit = 1000 * seconds(self._time_limit())
        ready = poll.poll(limit)
        if not ready:
            raise TimedOut(f"Timed out waiting {round(limit)}ms for recv operation to complete: rank {self.rank} "
                           f"waited in {self.doing()} for {peer.member}, which did not come.")
        own = peer.socket.fileno()
        if any(descriptor == own for descriptor, _ in ready):
            return
        for descriptor, _ in ready:
            if descriptor == self._woken.fileno():
                raise self.error()
            self._hung_up(next(other for other in self.peers if other.socket.fileno() == descriptor))

    def _poll(self, peer: Peer) -> Any:
        """Return what watches one peer's messages, and whether others hang up."""
        if peer.poll is None:
            peer.poll = watcher()
            peer.poll.register(self._woken, IN)
            for other in self.peers:
                if not other.gone:
                    peer.poll.register(other.socket, HUNG_UP)
        return peer.poll

    def _hung_up(self, peer: Peer) -> None:
        """Read all that a peer nobody waits for has said before its connection ended.

        Errors: if it died, or has given up.
        """
        rest = bytearray(peer.view[peer.start:peer.end])
        while True:
            try:
                got = peer.socket.recv(1 << 18)
            except BlockingIOError:                 # it can still be heard
                break
            except OSError:
                got = b""
            if not got:
                peer.gone = True
                break
            rest += got
        peer.start, peer.end, peer.buffer = 0, len(rest), rest + bytearray(BUFFER)
        peer.view = memoryview(peer.buffer)
        for other in self.peers:
            other.poll = None
        if peer.gone:
            self._last_words(peer)
            if not peer.left:
                self._lost(peer)

    def _last_words(self, peer: Peer) -> None:
        """Look whether a peer whose connection has ended said goodbye.

        Errors: DistBackendError if it said that it has given up.
        """
        at = peer.start
        while peer.end - at >= 8:
            size, _, kind, late = HEADER.unpack_from(peer.buffer, at)
            peer.left = peer.left or kind == BYE
            if kind == ABORT and peer.end - at >= 8 + size:
                raise self._given_up(bytes(peer.view[at + 8:at + 8 + size]).decode(errors="replace"), bool(late))
            at += 8 + size

    def peek(self, rank: int) -> DistBackendError | None:
        """Return the error that a rank said it has given up with, if it did, and leave its words there to be heard."""
        peer = next(peer for peer in self.peers if peer.rank == rank)
        try:
            data, at = bytes(peer.view[peer.start:peer.end]) + peer.socket.recv(1 << 18, socket.MSG_PEEK), 0
        except OSError:
            return None
        while len(data) - at >= 8:
            size, _, kind, late = HEADER.unpack_from(data, at)
            if kind == ABORT:
                return self._given_up(data[at + 8:at + 8 + size].decode(errors="replace"), bool(late))
            at += 8 + size
        return None

    # ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def error(self) -> DistBackendError:
        """Return the error of a group that cannot go on."""
        text, late = self.reason or ("", False)
        return TimedOut(text) if late else DistBackendError(text)

    def _given_up(self, text: str, late: bool) -> DistBackendError:
        return TimedOut(text) if late else DistBackendError(text)

    def _lost(self, peer: Peer) -> None:
        """Errors: DistBackendError that says why a peer cannot be reached."""
        if not peer.gone:                           # sending failed: it may have said something before
            self._hung_up(peer)
        self._last_words(peer)
        raise DistBackendError(f"Connection closed by peer: {peer.member} {peer.member.fate(peer.left)} while rank "
                               f"{self.rank} needed it in {self.doing()}.")

    def give_up(self, error: BaseException) -> bool:
        """Say why there is no going on, to this rank and to the others, once; False if that was said before."""
        if self.reason is not None:
            return False
        text = str(error) or type(error).__name__
        if not isinstance(error, DistBackendError):
            text = f"Rank {self.rank} has given up in {self.doing()}: {type(error).__name__}: {error}".rstrip(": ")
        self.reason = text, isinstance(error, TimedOut)
        body = text.encode()[:LONGEST // 2]
        message = HEADER.pack(len(body), 0, ABORT, isinstance(error, TimedOut)) + body
        for peer in self.peers:
            self._last_message(peer, message)
            with suppress(OSError):
                peer.socket.shutdown(socket.SHUT_RDWR)          # who waits for others sees only that a connection ends
        self.wake()
        return True

    def _last_message(self, peer: Peer, message: bytes) -> None:
        """Send without waiting; a message that does not fit is left out."""
        if not peer.gone:
            with suppress(OSError):
                peer.socket.send(message)

    def wake(self) -> None:
        """Let a thread that waits look at `reason`."""
        with suppress(OSError):
            self._waker.send(b"x")

    def say_goodbye(self, reason: str) -> None:
        """Tell the others that this rank leaves, and its own threads why there is no going on."""
        self.reason = reason, False
        for peer in self.peers:
            self._last_message(peer, HEADER.pack(0, 0, BYE, 0))
        self.wake()

    def close(self) -> None:
        """End all connections."""
        for peer in self.peers:
            peer.gone = True
        for held in self.sockets():
            held.close()

    def sockets(self) -> list[socket.socket]:
        """Return all sockets that `close` closes."""
        return [self._woken, self._waker, *(peer.socket for peer in self.peers)]
