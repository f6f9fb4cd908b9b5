"""Reductions of the ranks of one machine.

All of them fold in the order of the ranks, so that all ranks and all runs get equal bits.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...runtime import small_floats
from ..operations import ReduceOp, combine
from .segments import AHEAD, SLOTS
from .slot_exchange import INLINE, LARGE, Rounds, copied

__all__ = ["allreduce", "reduce", "reduce_scatter"]

PIECE = 128 << 10               # bytes that are reduced at once: they stay in a core's cache
SLOW = "eV"                     # float16 and bfloat16, which take longer to add: two ranks share the work


def allreduce(rounds: Rounds, array: Any, op: ReduceOp) -> None:
    """Replace the array of each rank by the reduction of all."""
    _check(op, array)
    asked = array.nbytes >= LARGE and rounds.segments.shared
    arrays = rounds.seen(array) if asked else None
    if array.nbytes <= INLINE:
        _fold(combine(op), rounds.parts(array), array, rounds.rank)
    elif arrays is not None:
        _in_place(rounds, arrays, op)
    elif rounds.size == 2 and array.dtype.char not in SLOW:
        _exchange(rounds, array, op, asked)
    else:
        _share_out(rounds, array, op, asked)
    if op is ReduceOp.AVG:
        _divide(array, rounds.size)


def _in_place(rounds: Rounds, arrays: list[Any], op: ReduceOp) -> None:
    """Each rank reduces its part of arrays that all see, and writes the result to all of them."""
    join, size, rank = combine(op), rounds.size, rounds.rank
    own, length = arrays[rank], PIECE // arrays[0].itemsize
    first, last = len(own) * rank // size, len(own) * (rank + 1) // size
    for start in range(first, last, length):
        piece = slice(start, min(start + length, last))
        result = own[piece]
        _fold(join, [array[piece] for array in arrays], result, rank)
        for other in rounds.others:
            arrays[other][piece] = result
    rounds.end()


def _exchange(rounds: Rounds, array: Any, op: ReduceOp, begun: bool) -> None:
    """Two ranks: each reads all of the other's array."""
    others, join, first = rounds.views(array.dtype)[1 - rounds.rank], combine(op), rounds.rank == 0

    def read(part: Any, slot: int) -> None:
        theirs = others[slot][:len(part)]
        if first:
            join(part, theirs, out=part)
        else:
            join(theirs, part, out=part)
    rounds.of_equal_arrays(array, True, read, begun)


def _share_out(rounds: Rounds, array: Any, op: ReduceOp, begun: bool) -> None:
    """Each rank reduces its part of each chunk, and reads the other parts as soon as a ring has announced them."""
    views, join, size, rank = rounds.views(array.dtype), combine(op), rounds.size, rounds.rank
    own, lag = views[rank], 1 + AHEAD
    length = len(own[0])

    def bounds(part: Any, other: int) -> slice:
        return slice(len(part) * other // size, len(part) * (other + 1) // size)

    def write(chunk: int, slot: int) -> tuple[Any, ...]:
        part = array[chunk * length:(chunk + 1) * length]       # of no length in the last rounds
        mine, target = bounds(part, rank), own[slot]
        target[:mine.start] = part[:mine.start]
        target[mine.stop:len(part)] = part[mine.stop:]
        return (target[:len(part)],)

    def read(chunk: int, slot: int) -> tuple[Any, ...]:
        part, written = array[chunk * length:(chunk + 1) * length], ()      # type: Any, tuple[Any, ...]
        if len(part):
            mine = bounds(part, rank)
            result = own[SLOTS + slot][mine]
            _fold(join, [part[mine] if other == rank else views[other][slot][mine] for other in range(size)], result)
            part[mine] = result
            written = (result,)
        before = chunk - lag
        if before >= 0:
            part = array[before * length:(before + 1) * length]
            for other in rounds.others:
                theirs = bounds(part, other)
                part[theirs] = views[other][SLOTS + (slot - lag) % SLOTS][theirs]
        return written
    rounds.run(-(-len(array) // length) + lag, write, read, begun)


def reduce(rounds: Rounds, array: Any, root: int, op: ReduceOp) -> None:
    """Replace the root's array by the reduction of all."""
    _check(op, array)
    views, join, size, rank = rounds.views(array.dtype), combine(op), rounds.size, rounds.rank
    if array.nbytes <= INLINE:
        parts = rounds.parts(array)
        if rank == root:
            _fold(join, parts, array, rank)
    else:
        def read(part: Any, slot: int) -> None:
            if rank == root:
                parts = [part if other == rank else views[other][slot][:len(part)] for other in range(size)]
                _fold(join, parts, part, rank, views[rank][SLOTS + slot][:len(part)])
        rounds.of_equal_arrays(array, rank != root, read)
    if op is ReduceOp.AVG and rank == root:
        _divide(array, size)


def reduce_scatter(rounds: Rounds, out: Any, array: Any, op: ReduceOp) -> None:
    """Fill `out` with this rank's part of the reduction of all arrays."""
    _check(op, array)
    rows, views, join, size, rank = (array.reshape(rounds.size, -1), rounds.views(array.dtype), combine(op),
                                     rounds.size, rounds.rank)
    length = len(views[rank][0]) // size

    def write(chunk: int, slot: int) -> tuple[Any, ...]:
        return (copied(rows[:, chunk * length:(chunk + 1) * length], views[rank][slot]),)

    def read(chunk: int, slot: int) -> None:
        part = out[chunk * length:(chunk + 1) * length]
        mine = slice(rank * len(part), (rank + 1) * len(part))
        _fold(join, [views[other][slot][mine] for other in range(size)], part)
    rounds.run(max(1, -(-len(out) // length)), write, read)
    if op is ReduceOp.AVG:
        _divide(out, size)


def _check(op: ReduceOp, array: Any) -> None:
    if op is ReduceOp.AVG and array.dtype.kind == "b":
        raise TypeError("Cannot use ReduceOp.AVG with Boolean inputs")


def _fold(join: Callable[..., Any], parts: list[Any], out: Any, own: int = -1, scratch: Any = None) -> None:
    """Join the ranks' parts in their order, into `out`, which may be the memory of the part `own`."""
    if len(parts) == 2:
        join(parts[0], parts[1], out=out)
        return
    total = out if own < 2 else np.empty_like(out) if scratch is None else scratch
    join(parts[0], parts[1], out=total)
    for part in parts[2:-1]:
        join(total, part, out=total)
    join(total, parts[-1], out=out)


def _divide(array: Any, size: int) -> None:
    """Divide a sum by the number of ranks; integers towards zero."""
    if array.dtype.kind in "iu":
        array[...] = np.trunc(array / size)
    else:
        small_floats.combine(np.divide, array, size, out=array)
