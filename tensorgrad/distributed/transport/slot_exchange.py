"""Rounds of all ranks of one machine: each rank writes a chunk to a slot of its own, rings, waits for the others'
rings, and reads their slots.

A rank is `AHEAD` chunks ahead: it rings for chunk n as soon as it has read chunk n − AHEAD − 1, and then reads chunk n
    − AHEAD. So who hears the ring for n
knows what has been read, and which slots may be written again, within a collective and from one to the next. The first
ring of a collective carries its fingerprint. Small arrays ride in it, and no slot is needed.
"""
from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import flight_recorder
from ..errors import DistBackendError
from .base import Call
from .doorbells import HEAD, HEADER, RING, Doorbells, Peer
from .segments import AHEAD, SLOTS, Segments

__all__ = ["INLINE", "LARGE", "Rounds"]

INLINE = 16 << 10               # bytes of an array that rides in a ring
LARGE = 2 << 20                 # bytes of an array from which on it pays to ask whether all ranks see it
PLACE = struct.Struct("<q")


class Rounds:
    """The rounds of one rank of a group. All ranks go through as many, in one order."""

    def __init__(self, rank: int, size: int, bells: Doorbells, segments: Segments) -> None:
        self.rank, self.size, self.bells, self.segments, self.peers = rank, size, bells, segments, bells.peers
        self.others = [other for other in range(size) if other != rank]
        self.views = segments.views
        self.call: Call | None = None
        self.head = b""                 # the fingerprint of the collective under way
        self.round = 0                  # of all collectives, which tells the slot
        bells.doing = self.doing

    def begin(self, call: Call) -> None:
        """Begin a collective."""
        self.call = call
        head = flight_recorder.fingerprint(call)
        self.head = head + bytes(-(HEADER.size + len(head)) % 16)           # arrays behind it are aligned

    def doing(self) -> str:
        call = self.call
        return "no collective" if call is None else f"{call.kind} number {call.sequence}"

    # ── the first round ───────────────────────────────────────────────────────────────────────────────────────────────

    def tell(self, payload: bytes = b"", to: Peer | None = None) -> None:
        """Begin the first round: with all, or with one."""
        head = self.head
        message = HEADER.pack(len(head) + len(payload), len(head), HEAD, 0) + head + payload
        if to is None:
            self.bells.tell(message)
        else:
            self.bells.send(to, message)

    def hear(self, peer: Peer) -> Any:
        """Return what a peer sent along in the first round.

        Errors: DistBackendError if the peer does something else.
        """
        body = self.bells.hear(peer, HEAD)
        mark = peer.mark
        if mark != len(self.head) or not peer.buffer.startswith(self.head, peer.at):
            others = {peer.rank: bytes(body[:mark]).rstrip(b"\0")}
            raise flight_recorder.compare(self.rank, self.head.rstrip(b"\0"),
                                          others) or DistBackendError(f"{peer.member} sent a damaged message")
        return body[mark:]

    def parts(self, array: Any) -> list[Any]:
        """Exchange small arrays: those of all ranks, in their order."""
        self.tell(array.tobytes())
        found = [array] * self.size
        for peer in self.peers:
            body = self.hear(peer)
            self.fits(peer, len(body), array.nbytes)
            found[peer.rank] = np.frombuffer(body, array.dtype)
        return found

    def fits(self, peer: Peer, size: int, expected: int) -> None:
        """Errors: DistBackendError if a peer sent more or less than is expected."""
        if size != expected:
            raise DistBackendError(f"Detected mismatch between collectives on ranks. {peer.member} sent {size} bytes "
                                   f"in {self.doing()}, rank {self.rank} expected {expected}.")

    def seen(self, array: Any) -> list[Any] | None:
        """Return the arrays of all ranks if these are in memory that all see; None if one is not.

        No rank may write to them before all have rung again.
        """
        self.tell(PLACE.pack(self.segments.place(array)))
        places = [self.segments.place(array)] * self.size
        for peer in self.peers:
            body = self.hear(peer)
            self.fits(peer, len(body), PLACE.size)
            places[peer.rank], = PLACE.unpack(body)
        return None if min(places) < 0 else self.segments.at(places, array)

    def end(self) -> None:
        """Wait until all ranks have done their part of a collective without chunks."""
        self._ring(False)
        self._wait(False)

    # ── chunks ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def run(self, count: int, write: Callable[[int, int], tuple[Any, ...]], read: Callable[[int, int], Any],
            begun: bool = False) -> None:
        """Do so many rounds: `write(chunk, slot)` before a ring, `read(chunk, slot)` after the others'.

        Both give what they have written.

        The data that `read(n)` writes are announced by the ring for n + 1 + AHEAD. `begun`: the collective has had a
        round before.
        """
        base, results = self.round, ()              # type: int, tuple[Any, ...]
        self.round += count
        for step in range(count + AHEAD):
            if step < count:
                self._ring(step == 0 and not begun, *write(step, (base + step) % SLOTS), *results)
            chunk = step - AHEAD
            if chunk >= 0:
                self._wait(chunk == 0 and not begun)
                results = read(chunk, (base + chunk) % SLOTS) or ()

    def _ring(self, first: bool, *written: Any) -> None:
        """Tell all that a chunk has been written. `written`: the arrays, to send along where memory is not shared."""
        payload = b"" if self.segments.shared else self.segments.packed(written)
        if first:
            self.tell(payload)
        else:
            self.bells.tell(HEADER.pack(len(payload), 0, RING, 0) + payload)

    def _wait(self, first: bool) -> None:
        """Wait until all have rung."""
        for peer in self.peers:
            body = self.hear(peer) if first else self.bells.hear(peer, RING)
            if not self.segments.shared:
                self.segments.unpack(peer.rank, body)

    def of_equal_arrays(self, array: Any, writes: bool, read: Callable[[Any, int], None], begun: bool = False) -> None:
        """Rounds in which some ranks write their arrays, of equal sizes, chunk by chunk, and all read with `read(chunk
        of the own array, slot)`.
        """
        own = self.views(array.dtype)[self.rank]
        length = len(own[0])

        def write(chunk: int, slot: int) -> tuple[Any, ...]:
            return (copied(array[chunk * length:(chunk + 1) * length], own[slot]),) if writes else ()
        self.run(-(-len(array) // length), write,
                 lambda chunk, slot: read(array[chunk * length:(chunk + 1) * length], slot), begun)


def copied(part: Any, slot: Any) -> Any:
    """Write an array to the beginning of a slot."""
    target = slot[:part.size]
    target.reshape(part.shape)[...] = part
    return target
