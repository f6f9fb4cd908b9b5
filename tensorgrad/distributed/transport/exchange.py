"""Collectives over a store: each rank posts what others need of it, and takes what it needs of them."""
from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import numpy as np

from ..errors import TimedOut
from ..operations import ReduceOp, combine
from ..stores import DistStoreError, PrefixStore, Store
from ..work import Work
from .base import Call, Transport

__all__ = ["Exchange", "create"]


def create(store: Store, rank: int, size: int, timeout: timedelta, name: str, ranks: Any = None) -> Transport:
    """Return the transport of a new group over a store."""
    return Exchange(store, rank, size, timeout)


class Exchange(Transport):
    """Posts and takes arrays as bytes."""

    name = "gloo"

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size, timeout)
        self.store, self.step, self.letters = store, 0, {}  # type: ignore[var-annotated]

    def _parts(self, parts: dict[int, Any], sources: Iterable[int]) -> Any:
        self.step += 1
        for rank, part in parts.items():
            self.store.post(f"{self.step}/{self.rank}/{rank}", part.tobytes(), 1)
        step, sources = self.step, list(sources)

        def taken(dtype: Any) -> list[Any]:
            return [np.frombuffer(self._take(f"{step}/{rank}/{self.rank}"), dtype) for rank in sources]
        return taken

    def _take(self, key: str) -> bytes:
        try:
            return self.store.take(key)
        except DistStoreError as error:
            raise TimedOut(f"Timed out waiting {round(1000 * self.timeout.total_seconds())}ms for recv operation to complete") from error

    def _everyone(self, array: Any) -> Any:
        return self._parts(dict.fromkeys(range(self.size), array), range(self.size))

    def _fold(self, parts: list[Any], op: ReduceOp, out: Any) -> None:
        total = parts[0].copy()
        for part in parts[1:]:
            combine(op)(total, part, out=total)
        out[...] = total / self.size if op is ReduceOp.AVG else total

    def allreduce(self, call: Call, array: Any, op: ReduceOp) -> Work:
        taken = self._everyone(array)
        return Work(lambda _: self._fold(taken(array.dtype), op, array))

    def reduce(self, call: Call, array: Any, root: int, op: ReduceOp) -> Work:
        taken = self._parts({root: array}, range(self.size) if self.rank == root else [])
        return Work(lambda _: self._fold(taken(array.dtype), op, array) if self.rank == root else None)

    def broadcast(self, call: Call, array: Any, root: int) -> Work:
        parts = {rank: array for rank in range(self.size) if rank != root} if self.rank == root else {}
        taken = self._parts(parts, [] if self.rank == root else [root])
        return Work(lambda _: _fill(array, taken(array.dtype)))

    def allgather(self, call: Call, out: Any, array: Any) -> Work:
        taken = self._everyone(array)
        return Work(lambda _: _fill(out, taken(array.dtype)))

    def gather(self, call: Call, out: Any, array: Any, root: int) -> Work:
        taken = self._parts({root: array}, range(self.size) if self.rank == root else [])
        return Work(lambda _: _fill(out, taken(array.dtype)))

    def scatter(self, call: Call, array: Any, parts: Any, root: int) -> Work:
        taken = self._parts(dict(enumerate(parts.reshape(self.size, -1))) if self.rank == root else {}, [root])
        return Work(lambda _: _fill(array, taken(array.dtype)))

    def reduce_scatter(self, call: Call, out: Any, array: Any, op: ReduceOp) -> Work:
        taken = self._parts(dict(enumerate(array.reshape(self.size, -1))), range(self.size))
        return Work(lambda _: self._fold(taken(array.dtype), op, out))

    def alltoall(self, call: Call, out: Any, array: Any, out_counts: list[int], counts: list[int]) -> Work:
        taken = self._parts(dict(enumerate(np.split(array, np.cumsum(counts)[:-1]))), range(self.size))
        return Work(lambda _: _fill(out, taken(array.dtype)))

    def barrier(self, call: Call) -> Work:
        taken = self._everyone(np.zeros(0))
        return Work(lambda _: taken(float))

    def _letter(self, source: int, to: int, tag: int) -> str:
        way = source, to, tag
        self.letters[way] = self.letters.get(way, 0) + 1
        return f"letter/{source}/{to}/{tag}/{self.letters[way]}"

    def send(self, array: Any, to: int, tag: int, later: bool) -> Work:
        self.store.post(self._letter(self.rank, to, tag), array.tobytes(), 1)
        return Work.done()

    def receive(self, array: Any, source: int | None, tag: int, later: bool) -> Work:
        if source is None:
            raise NotImplementedError("the store does not receive from any rank")
        key = self._letter(source, self.rank, tag)
        return Work(lambda _: _fill(array, [np.frombuffer(self._take(key), array.dtype)]), source=source)

    def split(self, ranks: list[int], name: str) -> Transport:
        return Exchange(PrefixStore(name, self.store), ranks.index(self.rank), len(ranks), self.timeout)

    def close(self) -> None:
        pass

    def abort(self, reason: str) -> None:
        pass


def _fill(out: Any, parts: list[Any]) -> None:
    if out is not None and parts:
        np.concatenate(parts, out=out)
