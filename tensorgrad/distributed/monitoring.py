"""A barrier that names who is missing. https://pytorch.org/docs → torch.distributed.monitored_barrier"""
from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import numpy

from .transport.base import Transport

__all__ = ["monitored_barrier"]

TAG = 32_000            # of its messages: the largest that every MPI has is 32,767


def monitored_barrier(transport: Transport, ranks: list[int], timeout: timedelta, wait_all_ranks: bool) -> None:
    """Wait until all ranks are here: each tells the first, which then tells each.

    Errors: RuntimeError on the first rank that names those that did not come in time, and on others that got no answer.
    """
    if transport.rank == 0:
        _first(transport, ranks, timeout, wait_all_ranks)
        return
    word = numpy.ones(1, numpy.uint8)
    try:
        transport.send(word, 0, TAG, later=True).wait(timeout)
        transport.receive(word, 0, TAG, later=True).wait(timeout)
    except RuntimeError as error:
        raise RuntimeError(f"Rank {ranks[transport.rank]} successfully reached monitoredBarrier, but received errors "
                           f"while waiting for send/recv from rank {ranks[0]}. Please check rank {ranks[0]} logs for "
                           f"faulty rank.\n Original exception: \n{error}") from error


def _first(transport: Transport, ranks: list[int], timeout: timedelta, wait_all_ranks: bool) -> None:
    end, late, limit = time.monotonic() + timeout.total_seconds(), [], round(1000 * timeout.total_seconds())  # type: float, list[int], int
    words = [numpy.ones(1, numpy.uint8) for _ in range(transport.size)]
    works: list[Any] = [None, *(transport.receive(words[other], other, TAG, later=True)
                                for other in range(1, transport.size))]
    for other in range(1, transport.size):
        try:
            works[other].wait(timedelta(seconds=max(end - time.monotonic(), 0.001)))
        except RuntimeError as error:
            if not wait_all_ranks:
                raise RuntimeError(f"[Rank 0]: Rank {ranks[other]} failed to pass monitoredBarrier in {limit} ms\n "
                                   f"Original exception: \n{error}") from error
            late.append(ranks[other])
    if late:
        raise RuntimeError(f"[Rank 0]: Ranks {', '.join(map(str, late))} failed to pass monitoredBarrier in {limit} ms")
    for answer in [transport.send(words[other], other, TAG, later=True) for other in range(1, transport.size)]:
        answer.wait(timeout)
