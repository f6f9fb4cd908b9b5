"""A debugger on one rank while the others wait, and names for collectives in the log.

https://pytorch.org/docs/stable/distributed.html#debugging-torch-distributed-applications
"""
from __future__ import annotations

import pdb
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from . import flight_recorder, world
from .collectives import barrier

__all__ = ["breakpoint", "record_comm"]

_passed: Counter[tuple[Any, int]] = Counter()       # how often a line has called `breakpoint`


class _Pdb(pdb.Pdb):
    """A debugger that talks to the terminal, even in a process whose standard input is closed, as `multiprocessing`
    leaves it.
    """

    def interaction(self, *args: Any, **kwargs: Any) -> None:
        before = sys.stdin
        try:
            with open("/dev/stdin", encoding="utf-8") as sys.stdin:
                super().interaction(*args, **kwargs)
        finally:
            sys.stdin = before


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: float | None = 3600) -> None:
    """Stop one rank in the debugger; the others wait for it. https://pytorch.org/docs → torch.distributed.breakpoint

    rank: which one stops. skip: how many calls on this line go on first. timeout_s: the time limit of all groups from
        now on, in seconds, so that none
    ends the session.
    """
    frame = sys._getframe(1)
    _passed[frame.f_code, frame.f_lineno] += 1
    if _passed[frame.f_code, frame.f_lineno] <= skip:
        return
    if timeout_s is not None:
        for group in world._world.groups.values():
            group.set_timeout(timedelta(seconds=timeout_s))
    if world.get_rank() == rank:
        debugger = _Pdb()
        debugger.message(f"\n!!! ATTENTION !!!\n\nType 'up' to get to the frame that called "
                         f"dist.breakpoint(rank={rank})\n")
        debugger.set_trace()
    barrier()


@contextmanager
def record_comm(name: str) -> Iterator[None]:
    """Name the collectives of a block in the log of the last ones.

    https://pytorch.org/docs → torch.distributed.record_comm
    """
    before, flight_recorder.naming.title = flight_recorder.naming.title, name
    flight_recorder.named += 1
    try:
        yield
    finally:
        flight_recorder.named -= 1
        flight_recorder.naming.title = before
