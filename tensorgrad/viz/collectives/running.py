"""Runs a collective among ranks of one process, on real tensors, and notes each message."""
from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from ...api.creation import tensor as tensor_from
from ...api.joining import cat
from ...core.tape import TensorBase
from ..text import MINUS, host, short
from .checking import check
from .collective import Collective
from .network import Network, network_of
from .schedules import COLLECTIVES, Message, Step
from .steps import Cell, Ran, Sent, totals

WORDS = 14          # characters of a chunk's values in a box
MOST = 64           # ranks
OPS = {"sum": ("+", "add"), "product": ("·", "multiply"), "min": ("min", "minimum"), "max": ("max", "maximum")}


def run(kind: str, values: Any, name: str, *, root: int = 0, op: str = "sum", network: Any = None) -> Collective:
    """Run a collective of COLLECTIVES by the algorithm of a name."""
    known = COLLECTIVES[kind]
    if name not in known:
        raise ValueError(f"algorithm of {kind} must be one of {', '.join(map(repr, known))}, not {name!r}")
    if op not in OPS:
        raise ValueError(f"op must be one of {', '.join(map(repr, OPS))}, not {op!r}")
    algorithm, tensors = known[name], tensors_of(values, 1 if kind == "all_gather" else None)
    n = len(tensors)
    if algorithm.powers and n & (n - 1):
        raise ValueError(f"{name!r} takes 2, 4, 8 … ranks, not {n}: 'ring' takes any number")
    if not -n <= root < n:
        raise ValueError(f"root must be a rank below {n}, not {root}")
    root %= n
    network = network_of(network if network is not None else "memory" if algorithm.shared else "infiniband")
    whole = n * nbytes(tensors[0]) if kind == "all_gather" else nbytes(tensors[0])
    ran = Collective(kind, name, algorithm, n, root, op, network, whole)
    machine = Machine(held(kind, tensors, root), op, network, algorithm.shared)
    ran.begin = machine.cells
    rooted = kind in ("broadcast", "reduce") and root
    ran.steps = [machine.take(step) for step in (algorithm.steps(n, root) if rooted else algorithm.steps(n))]
    ran.results = [result(kind, machine.held[rank], rank, root, tensors[0].shape) for rank in range(n)]
    ran.checks = check(kind, tensors, ran.results, op, root)
    return ran


def tensors_of(values: Any, length: int | None = None) -> list[Any]:
    """A tensor for each rank, without a graph; for a number of ranks, small numbers whose digits tell whose they
    are.
    """
    if isinstance(values, int):
        base = 10 if values <= 6 else 2
        n = min(values, MOST + 1)
        values = [[float((chunk + 1) * base ** rank) for chunk in range(length or n)] for rank in range(n)]
    tensors = [value.detach() if isinstance(value, TensorBase) else tensor_from(value) for value in values]
    if not 2 <= len(tensors) <= MOST:
        raise ValueError(f"a collective is shown among 2 to {MOST} ranks, not "
                         f"{'more' if len(tensors) > MOST else len(tensors)}")
    for tensor in tensors:
        if (tensor.shape, tensor.dtype) != (tensors[0].shape, tensors[0].dtype):
            raise ValueError(f"tensors of all ranks have one shape and dtype, not {list(tensors[0].shape)} "
                             f"{tensors[0].dtype} and {list(tensor.shape)} {tensor.dtype}")
    return tensors


def held(kind: str, tensors: list[Any], root: int) -> list[list[Any]]:
    """The chunks that each rank has before the first step; None for what it has not."""
    n, flat = len(tensors), [tensor.reshape(-1) for tensor in tensors]
    if kind == "all_gather":
        return [[flat[r] if r == chunk else None for chunk in range(n)] for r in range(n)]
    return [[*vector.tensor_split(n)] if kind != "broadcast" or r == root else [None] * n
            for r, vector in enumerate(flat)]


def result(kind: str, chunks: list[Any], rank: int, root: int, shape: Any) -> Any:
    """Return the chunks that a rank gets: all, its own, or none."""
    if kind == "reduce_scatter":
        return chunks[rank]
    if kind == "reduce" and rank != root:
        return None
    whole = cat(chunks)
    return whole.reshape((len(chunks) * shape[0], *shape[1:]) if kind == "all_gather" and shape else shape
                         if kind != "all_gather" else -1)


class Machine:
    """Ranks with a vector each, in chunks. `take` performs a step on all of them."""

    def __init__(self, held: list[list[Any]], op: str, network: Network, shared: bool) -> None:
        self.held, self.network, self.shared = held, network, shared
        self.cells = tuple(tuple(None if chunk is None else Cell(words(chunk), (rank,)) for chunk in row)
                           for rank, row in enumerate(held))
        self.sign, self.method = OPS[op]
        self.clock = 0.0

    def take(self, step: Step) -> Ran:
        """Send all messages of a step, then let the targets add or store them."""
        # messages of a step go at once
        held, cells = [list(row) for row in self.held], [list(row) for row in self.cells]
        made = {}
        for (target, chunk), messages in arriving(step).items():
            ranks = [message.source for message in messages]
            if messages[0].add:
                ranks = sorted([*ranks, target])                # values are added in the order of the ranks
            terms = [self.held[r][chunk] for r in ranks]
            held[target][chunk] = reduce(lambda a, b: getattr(a, self.method)(b), terms).clone()
            before = [cell for r in ranks if (cell := self.cells[r][chunk]) is not None]
            cells[target][chunk] = Cell(words(held[target][chunk]),
                                        tuple(sorted(part for cell in before for part in cell.parts)))
            made[target, chunk] = (f"from rank {ranks[0]}" if len(ranks) == 1
                                   else self._told([cell.text for cell in before]))
        sent = tuple([self._sent(message) for message in step.messages])
        start, took = self.clock, self._seconds(sent)
        self.held, self.cells, self.clock = held, tuple(map(tuple, cells)), start + took
        return Ran(step.phase, sent, start, took, self.cells, made)

    def _told(self, terms: list[str]) -> str:
        return f" {self.sign} ".join(terms) if self.sign in "+·" else f"{self.sign}({', '.join(terms)})"

    def _sent(self, message: Message) -> Sent:
        held, cells = self.held[message.source], self.cells[message.source]
        return Sent(message, sum(nbytes(held[c]) for c in message.chunks),
                    tuple([cell.text if (cell := cells[c]) else "" for c in message.chunks]))

    def _seconds(self, sent: Sequence[Sent]) -> float:
        """A rank sends, and receives, one message after the other, both at once.

        In shared memory a step is one barrier, and all read at once.
        """
        if self.shared:
            return self.network.takes(1, max(totals((s.message.target, s.nbytes) for s in sent).values(), default=0))
        ends = [totals((getattr(s.message, end), self.network.takes(1, s.nbytes)) for s in sent)
                for end in ("source", "target")]
        return max((took for busy in ends for took in busy.values()), default=0.0)


def arriving(step: Step) -> dict[tuple[int, int], list[Message]]:
    """The messages that change each (rank, chunk)."""
    found: dict[tuple[int, int], list[Message]] = {}
    for message in step.messages:
        for chunk in message.chunks:
            found.setdefault((message.target, chunk), []).append(message)
    return found


def nbytes(tensor: Any) -> int:
    return tensor.numel() * tensor.element_size()


def words(tensor: Any) -> str:
    """The values of a chunk in a few characters: all of them, or the first and the last; nothing for a rank that has
    none.
    """
    if tensor is None:
        return ""
    flat = host(tensor).reshape(-1)
    if not flat.size:
        return "empty"
    for digits in (4, 3, 2):
        text = ", ".join(number(value, digits) for value in flat) if flat.size <= WORDS else ""
        if 0 < len(text) <= WORDS:
            return text
    return f"{number(flat[0], 2)} … {number(flat[-1], 2)}"


def number(value: Any, digits: int) -> str:
    """A number of so many digits; whole numbers with up to six."""
    text = short(value)
    return text if digits == 4 or "." not in text and "e" not in text else f"{value:.{digits}g}".replace("-", MINUS)


__all__ = ["run"]
