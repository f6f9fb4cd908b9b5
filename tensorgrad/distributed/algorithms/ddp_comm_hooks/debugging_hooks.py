"""A hook to measure with. https://pytorch.org/docs → ddp_comm_hooks"""
from __future__ import annotations

from typing import Any

from ....futures import Future
from ....nn.parallel.buckets import GradBucket

__all__ = ["noop_hook"]


def noop_hook(_: Any, bucket: GradBucket) -> Future[Any]:
    """Leave gradients as they are in each process: the time of a step without communication.

    https://pytorch.org/docs → noop_hook
    """
    future: Future[Any] = Future()
    future.set_result(bucket.buffer())
    return future
