"""Interface of transports, which move flat, contiguous arrays of one kind of device among the ranks of one group.

Transports know nothing of tensors, views or autograd: `group.ProcessGroup` flattens tensors, chooses the transport of
    their device, and copies results to
where they belong. All ranks call the same collectives in the same order; the `Call` of each is what they have to agree
on. A transport's module has a function `create(store, rank, size, timeout, name, ranks=None)` that gives the transport
of a new group; all its ranks call it, and no other.
"""
from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ..operations import ReduceOp
from ..work import Work

__all__ = ["Call", "Transport"]


@dataclass(slots=True, eq=False)
class Call:
    """A collective as its caller sees it; also its entry in the log. Ranks must agree on the first six fields."""

    kind: str                               # PyTorch's OpType: ALLREDUCE, BROADCAST, …
    sequence: int                           # number of the collective within the group
    shapes: tuple[tuple[int, ...], ...]     # of the tensors on which all ranks must agree
    dtypes: tuple[str, ...]                 # PyTorch's names: Float, BFloat16, …
    device: str                             # "cpu" or "cuda"
    detail: str = ""                        # "op=SUM", "root=0": further options on which ranks must agree
    later: bool = False                     # `async_op`: the caller goes on and waits later
    group: str = ""                         # the group's name
    started: float = 0.0                    # time.monotonic()
    place: Any = None                       # (code, instruction) of the caller's line
    state: int = 0                          # 0 started, 1 completed, 2 failed
    title: str = ""                         # the program's own name for it


class Transport:
    """Communication of a rank with the other ranks of its group.

    Arrays are one-dimensional and contiguous, of the transport's device; sizes and counts are numbers of elements.
    A method begins its work and returns its handle. Where `call.later` is False the caller waits at once, so a
    transport may do all of it before it returns. Arrays belong to the work until it has ended. Reductions fold in
    the order of the ranks where the transport can choose, so that all ranks and all runs get equal bits.
    """

    name = ""           # as PyTorch spells the backend
    device = "cpu"      # of the arrays that it moves
    checks = False      # True if it compares fingerprints of calls itself, see flight_recorder.py

    def __init__(self, rank: int, size: int, timeout: timedelta) -> None:
        self.rank, self.size, self.timeout = rank, size, timeout
        self.log: Callable[[], str] = str       # returns the last collectives as text; the group sets it

    def _undefined(self, method: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} does not define {method}")

    def allreduce(self, call: Call, array: Any, op: ReduceOp) -> Work:
        """Replace the array of each rank by the reduction of all."""
        raise self._undefined("allreduce")

    def reduce(self, call: Call, array: Any, root: int, op: ReduceOp) -> Work:
        """Replace the array of the root by the reduction of all; others keep theirs."""
        raise self._undefined("reduce")

    def broadcast(self, call: Call, array: Any, root: int) -> Work:
        """Replace the array of each rank by that of the root."""
        raise self._undefined("broadcast")

    def allgather(self, call: Call, out: Any, array: Any) -> Work:
        """Fill `out`, `size` times as long as `array`, with the arrays of all ranks, in their order."""
        raise self._undefined("allgather")

    def gather(self, call: Call, out: Any, array: Any, root: int) -> Work:
        """Like `allgather`, at the root only; elsewhere `out` is None."""
        raise self._undefined("gather")

    def scatter(self, call: Call, array: Any, parts: Any, root: int) -> Work:
        """Fill `array` with this rank's part of the root's `parts`, `size` times as long; elsewhere `parts` is None."""
        raise self._undefined("scatter")

    def reduce_scatter(self, call: Call, out: Any, array: Any, op: ReduceOp) -> Work:
        """Fill `out` with this rank's part of the reduction of all arrays, each `size` times as long as `out`."""
        raise self._undefined("reduce_scatter")

    def alltoall(self, call: Call, out: Any, array: Any, out_counts: list[int], counts: list[int]) -> Work:
        """Send `counts[i]` elements of `array`, one part after the other, to rank i, and receive `out_counts[i]` from
        it.
        """
        raise self._undefined("alltoall")

    def barrier(self, call: Call) -> Work:
        """Wait until all ranks are here."""
        raise self._undefined("barrier")

    def room(self, size: int) -> Any:
        """Return an array of bytes in memory that is reduced faster than other memory; None if none is left."""
        return None

    def send(self, array: Any, to: int, tag: int, later: bool) -> Work:
        """Send an array to one rank. Messages between two ranks with one tag arrive in order."""
        raise self._undefined("send")

    def receive(self, array: Any, source: int | None, tag: int, later: bool) -> Work:
        """Receive an array from one rank, or from whichever sends first; `Work.source_rank()` says which."""
        raise self._undefined("receive")

    def batching(self) -> AbstractContextManager[Any]:
        """Return a context manager whose messages begin together; only its exit may wait. NCCL requires it."""
        return nullcontext()

    def split(self, ranks: list[int], name: str) -> Transport:
        """Return a transport among some of the ranks. All of these call it, no others, with one new `name`."""
        raise self._undefined("split")

    def close(self) -> None:
        """Release threads, sockets and memory, without waiting for other ranks."""
        raise self._undefined("close")

    def abort(self, reason: str) -> None:
        """End all work under way, here and on the other ranks, which raise `reason`."""
        raise self._undefined("abort")
