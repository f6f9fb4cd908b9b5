"""Groups of processes, and what they do together, each step over a store: a process posts what others need of it, and takes what it needs of them."""
from __future__ import annotations

import pickle
from collections.abc import Callable
from enum import Enum
from functools import reduce as fold
from typing import Any

from .. import api as tg
from .stores import Store

__all__ = ["ProcessGroup", "ReduceOp", "Work"]


class ReduceOp(Enum):
    """How values of several processes become one. https://pytorch.org/docs → torch.distributed.ReduceOp"""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = range(8)

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"


ReduceOp.RedOpType = ReduceOp           # type: ignore[attr-defined]  annotations name it


JOINED: dict[ReduceOp, Callable[[Any, Any], Any]] = {
    ReduceOp.SUM: tg.add, ReduceOp.AVG: tg.add, ReduceOp.PRODUCT: tg.mul, ReduceOp.MIN: tg.minimum, ReduceOp.MAX: tg.maximum,
    ReduceOp.BAND: tg.bitwise_and, ReduceOp.BOR: tg.bitwise_or, ReduceOp.BXOR: tg.bitwise_xor}


class Work:
    """Something under way: `wait` ends it. https://pytorch.org/docs → torch.distributed.Work"""

    def __init__(self, finish: Callable[[], Any] | None = None) -> None:
        self._finish = finish

    def wait(self, timeout: Any = None) -> bool:
        """Until it is done."""
        finish, self._finish = self._finish, None
        if finish is not None:
            with tg.no_grad():
                finish()
        return True

    synchronize = wait

    def is_completed(self) -> bool:
        """Whether it is done."""
        return self._finish is None

    is_success = is_completed


def packed(tensor: Any) -> bytes:
    """The numbers of a tensor."""
    return tensor.detach().cpu().contiguous().reshape(-1).view(tg.uint8).numpy().tobytes()  # type: ignore[no-any-return]


def unpacked(data: bytes, like: Any) -> Any:
    """Numbers as a tensor like another."""
    return tg.frombuffer(bytearray(data), dtype=like.dtype).reshape(like.shape).to(like.device) if data else tg.zeros_like(like)


class ProcessGroup:
    """Processes that work together. https://pytorch.org/docs → torch.distributed.ProcessGroup"""

    def __init__(self, store: Store, rank: int, size: int, ranks: Any = None, backend: str = "gloo") -> None:
        self._store, self._rank, self._size, self._backend = store, rank, size, backend
        self.ranks, self._step, self._letters = list(range(size)) if ranks is None else list(ranks), 0, {}  # type: ignore[var-annotated]

    def rank(self) -> int:
        """The number of this process in the group."""
        return self._rank

    def size(self) -> int:
        """How many processes there are."""
        return self._size

    def name(self) -> str:
        """The name of the way to communicate."""
        return self._backend

    def exchanged(self, parts: dict[int, bytes], sources: Any) -> Callable[[], dict[int, bytes]]:
        """Hand `parts[rank]` to other processes now, and take what `sources` hand to this one when the result is called."""
        self._step += 1
        step, mine = self._step, self._rank
        for other, part in parts.items():
            if other != mine:
                self._store.post(f"{step}/{mine}/{other}", part, 1)
        return lambda: {other: parts[mine] if other == mine else self._store.take(f"{step}/{other}/{mine}") for other in sources}

    def to_all(self, part: bytes) -> Callable[[], dict[int, bytes]]:
        """Hand the same to all, and take what each of them hands over."""
        return self.exchanged(dict.fromkeys(range(self._size), part), range(self._size))

    def letter(self, source: int, target: int, tag: int) -> str:
        """The key of the next message from one process to another."""
        count = self._letters[source, target, tag] = self._letters.get((source, target, tag), 0) + 1
        return f"letter/{source}/{target}/{tag}/{count}"

    # ── what DistributedDataParallel asks for ─────────────────────────────────────────────────────────────────────────

    def allreduce(self, tensor: Any, op: ReduceOp = ReduceOp.SUM) -> Work:
        """The tensors of all processes, joined, in place."""
        if op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR) and (tensor.is_floating_point() or tensor.is_complex()):
            raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
        if self._size == 1:
            return Work()
        arrived = self.to_all(packed(tensor))
        return Work(lambda: tensor.copy_(self.joined(arrived(), tensor, op)))

    def joined(self, parts: dict[int, bytes], like: Any, op: ReduceOp) -> Any:
        """Tensors of several processes as one, in the order of the processes: the same bits everywhere."""
        total = fold(JOINED[op], (unpacked(parts[other], like) for other in sorted(parts)))
        return total / self._size if op is ReduceOp.AVG else total

    def broadcast(self, tensor: Any, root: int = 0) -> Work:
        """One process's tensor in all of them."""
        if not 0 <= root < self._size:
            raise RuntimeError(f"ProcessGroupGloo::broadcast: invalid root rank: {root}")
        own = self._rank == root
        arrived = self.exchanged(dict.fromkeys(range(self._size), packed(tensor)) if own else {}, [] if own else [root])
        return Work() if own else Work(lambda: tensor.copy_(unpacked(arrived()[root], tensor)))

    def barrier(self) -> Work:
        """Until all processes are here."""
        return Work(self.to_all(b""))


def to_bytes(value: Any) -> bytes:
    return pickle.dumps(value)


def from_bytes(data: bytes) -> Any:
    return pickle.loads(data)
