"""A group of one rank: every collective is a copy at most, and ends at once."""
from __future__ import annotations

from datetime import timedelta
from typing import Any

from ..operations import ReduceOp
from ..work import Work
from .base import Call, Transport

__all__ = ["Alone"]


class Alone(Transport):
    """The transport of a group of one rank, under the name of the backend that was asked for."""

    def __init__(self, name: str, device: str, timeout: timedelta) -> None:
        super().__init__(0, 1, timeout)
        self.name, self.device = name, device

    def allreduce(self, call: Call, array: Any, op: ReduceOp) -> Work:
        return Work.done()

    def reduce(self, call: Call, array: Any, root: int, op: ReduceOp) -> Work:
        return Work.done()

    def broadcast(self, call: Call, array: Any, root: int) -> Work:
        return Work.done()

    def allgather(self, call: Call, out: Any, array: Any) -> Work:
        out[...] = array
        return Work.done()

    def gather(self, call: Call, out: Any, array: Any, root: int) -> Work:
        return self.allgather(call, out, array)

    def scatter(self, call: Call, array: Any, parts: Any, root: int) -> Work:
        return self.allgather(call, array, parts)

    def reduce_scatter(self, call: Call, out: Any, array: Any, op: ReduceOp) -> Work:
        return self.allgather(call, out, array)

    def alltoall(self, call: Call, out: Any, array: Any, out_counts: list[int], counts: list[int]) -> Work:
        return self.allgather(call, out, array)

    def barrier(self, call: Call) -> Work:
        return Work.done()

    def send(self, array: Any, to: int, tag: int, later: bool) -> Work:
        raise ValueError("Invalid destination rank: destination rank should not be the same as the rank of the current "
                         "process.")

    def receive(self, array: Any, source: int | None, tag: int, later: bool) -> Work:
        raise ValueError("Invalid source rank: source rank should not be the same as the rank of the current process.")

    def split(self, ranks: list[int], name: str) -> Transport:
        return Alone(self.name, self.device, self.timeout)

    def close(self) -> None:
        pass

    def abort(self, reason: str) -> None:
        pass
