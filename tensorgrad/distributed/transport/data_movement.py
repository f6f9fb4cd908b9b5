"""Collectives of the ranks of one machine that move arrays and compute nothing."""
from __future__ import annotations

import struct
from typing import Any

import numpy as np

from ..errors import DistBackendError
from .slot_exchange import INLINE, Rounds, copied

__all__ = ["alltoall", "barrier", "broadcast", "gather", "scatter"]

COUNTS = struct.Struct("<qqq")          # elements for the other, elements expected of it, rounds that bring something


def barrier(rounds: Rounds) -> None:
    """Wait until all ranks are here."""
    rounds.tell()
    for peer in rounds.peers:
        rounds.hear(peer)


def broadcast(rounds: Rounds, array: Any, root: int) -> None:
    """Replace the array of each rank by that of the root."""
    own = rounds.rank == root
    if array.nbytes <= INLINE:
        rounds.tell(array.tobytes() if own else b"")
        for peer in rounds.peers:
            body = rounds.hear(peer)
            if peer.rank == root:
                rounds.fits(peer, len(body), array.nbytes)
                array[...] = np.frombuffer(body, array.dtype)
        return
    slots = rounds.views(array.dtype)[root]

    def read(part: Any, slot: int) -> None:
        if not own:
            part[...] = slots[slot][:len(part)]
    rounds.of_equal_arrays(array, own, read)


def gather(rounds: Rounds, out: Any, array: Any, root: int | None) -> None:
    """Fill `out` with all ranks' arrays, at the root or, without one, at all ranks."""
    rows = out.reshape(rounds.size, -1) if root in (None, rounds.rank) else None
    if array.nbytes <= INLINE:
        parts = rounds.parts(array)
        for row, part in zip(rows if rows is not None else (), parts):
            row[...] = part
        return
    views, at = rounds.views(array.dtype), 0

    def read(part: Any, slot: int) -> None:
        nonlocal at
        if rows is not None:
            for other in rounds.others:
                rows[other, at:at + len(part)] = views[other][slot][:len(part)]
        at += len(part)
    rounds.of_equal_arrays(array, root != rounds.rank, read)
    if rows is not None:
        rows[rounds.rank] = array


def scatter(rounds: Rounds, array: Any, parts: Any, root: int) -> None:
    """Fill `array` with this rank's part of the root's `parts`."""
    rows = parts.reshape(rounds.size, -1) if rounds.rank == root else None
    slots, rank = rounds.views(array.dtype)[root], rounds.rank
    length = len(slots[0]) // rounds.size

    def write(chunk: int, slot: int) -> tuple[Any, ...]:
        return (copied(rows[:, chunk * length:(chunk + 1) * length], slots[slot]),) if rows is not None else ()

    def read(chunk: int, slot: int) -> None:
        if rank != root:
            part = array[chunk * length:(chunk + 1) * length]
            part[...] = slots[slot][rank * len(part):(rank + 1) * len(part)]
    rounds.run(max(1, -(-len(array) // length)), write, read)
    if rows is not None:
        array[...] = rows[rank]


def alltoall(rounds: Rounds, out: Any, array: Any, out_counts: list[int], counts: list[int]) -> None:
    """Exchange parts of any sizes.

    A rank whose parts are all small sends them in the first round; how many follow is known after it.
    """
    views, rank = rounds.views(array.dtype), rounds.rank
    length = len(views[rank][0]) // rounds.size
    sent, got = np.split(array, np.cumsum(counts)[:-1]), np.split(out, np.cumsum(out_counts)[:-1])
    rides = max(counts) * array.itemsize <= INLINE
    own = 0 if rides else -(-max(counts) // length)
    for peer in rounds.peers:
        other = peer.rank
        rounds.tell(COUNTS.pack(counts[other], out_counts[other], own) + (sent[other].tobytes() if rides else b""),
                    peer)
    brings = {}                         # how many rounds of each rank bring something
    for peer in rounds.peers:
        body = rounds.hear(peer)
        count, expected, brings[peer.rank] = COUNTS.unpack_from(body)
        rounds.fits(peer, count * array.itemsize, out_counts[peer.rank] * array.itemsize)
        if expected != counts[peer.rank]:
            raise DistBackendError(f"Detected mismatch between collectives on ranks. {peer.member} expected "
                                   f"{expected * array.itemsize} bytes in {rounds.doing()}, rank {rank} sent "
                                   f"{counts[peer.rank] * array.itemsize}.")
        if not brings[peer.rank]:
            got[peer.rank][...] = np.frombuffer(body[COUNTS.size:], array.dtype)
    got[rank][...] = sent[rank]

    def write(chunk: int, slot: int) -> tuple[Any, ...]:
        if chunk >= own:
            return ()
        for other in rounds.others:
            copied(sent[other][chunk * length:(chunk + 1) * length], views[rank][slot][other * length:])
        return (views[rank][slot],)

    def read(chunk: int, slot: int) -> None:
        for other in rounds.others:
            if chunk < brings[other]:
                part = got[other][chunk * length:(chunk + 1) * length]
                part[...] = views[other][slot][rank * length:rank * length + len(part)]
    if most := max(own, *brings.values()):
        rounds.run(most, write, read, begun=True)
