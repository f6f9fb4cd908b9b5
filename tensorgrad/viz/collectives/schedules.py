"""Who sends what to whom in each step of a collective: each algorithm is a function of a few lines.

An algorithm of n ranks gives its steps one after the other. All messages of a step go at once: what they carry is what
the senders had before it. A vector has n chunks. A rank that gets a chunk adds it to its own, or replaces its own by
it.

R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations in MPICH (2005);
P. Patarasuk, X. Yuan, Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations (2009).
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple


class Message(NamedTuple):
    """Chunks that one rank sends to another, which adds them to its own if `add`, and else replaces its own."""

    source: int
    target: int
    chunks: tuple[int, ...]
    add: bool = False


class Step(NamedTuple):
    """Messages that go at once, and the phase that they belong to."""

    phase: str
    messages: list[Message]


Steps = Iterator[Step]


# ── rings: each rank hears its left neighbour and speaks to its right one ─────────────────────────────────────────────


def ring_reduce_scatter(n: int) -> Steps:
    """Each chunk goes once around the ring and collects what each rank has; its sum arrives at the rank of its
    number.
    """
    for step in range(n - 1):
        yield Step("reduce-scatter", [Message(r, (r + 1) % n, ((r - 1 - step) % n,), add=True) for r in range(n)])


def ring_all_gather(n: int) -> Steps:
    """Each chunk goes once around the ring, and each rank keeps a copy."""
    for step in range(n - 1):
        yield Step("all-gather", [Message(r, (r + 1) % n, ((r - step) % n,)) for r in range(n)])


def ring_all_reduce(n: int) -> Steps:
    """Once around the ring to add, once more to hand out the sums: all ranks are busy all the time, with a chunk
    each.
    """
    yield from ring_reduce_scatter(n)
    yield from ring_all_gather(n)


def ring_broadcast(n: int, root: int = 0) -> Steps:
    """A chain: while a rank passes a chunk on, the next chunk comes in behind it."""
    for step in range(2 * n - 2):
        chunk_of = {place: step - place for place in range(n - 1) if 0 <= step - place < n}
        yield Step("pipeline", [Message((root + p) % n, (root + p + 1) % n, (chunk,)) for p, chunk in chunk_of.items()])


# ── trees: the whole vector goes up to the root, or down from it ──────────────────────────────────────────────────────


def distances(n: int) -> list[int]:
    """1, 2, 4 … below n: how far a message goes in each step of a tree."""
    return [1 << k for k in range((n - 1).bit_length())]


def tree_reduce(n: int, root: int = 0) -> Steps:
    """In each step half of the ranks that are left send all they have to one that adds it, and are done."""
    for d in distances(n):
        yield Step("reduce", [Message((root + p) % n, (root + p - d) % n, whole(n), add=True)
                              for p in range(d, n, 2 * d)])


def tree_broadcast(n: int, root: int = 0) -> Steps:
    """In each step all that have the vector send it to one that has not, so that twice as many have it."""
    for d in reversed(distances(n)):
        yield Step("broadcast", [Message((root + p) % n, (root + p + d) % n, whole(n)) for p in range(0, n - d, 2 * d)])


def tree_all_reduce(n: int) -> Steps:
    """Up the tree to rank 0, which has the sum then, and down again to all."""
    yield from tree_reduce(n)
    yield from tree_broadcast(n)


# ── halving and doubling: partners are a half, a quarter, an eighth of the ranks apart ────────────────────────────────


def halving_reduce_scatter(n: int) -> Steps:
    """Two partners share out the chunks that they are both in charge of: each sends the half that it gives up."""
    for d in reversed(distances(n)):
        yield Step("reduce-scatter", [Message(r, r ^ d, block(r ^ d, d), add=True) for r in range(n)])


def doubling_all_gather(n: int) -> Steps:
    """Two partners swap all the chunks that they have, so that each has twice as many."""
    for d in distances(n):
        yield Step("all-gather", [Message(r, r ^ d, block(r, d)) for r in range(n)])


def halving_all_reduce(n: int) -> Steps:
    """Halves, quarters, … are added; then they are gathered the same way back: few steps, and no byte too many."""
    yield from halving_reduce_scatter(n)
    yield from doubling_all_gather(n)


def doubling_all_reduce(n: int) -> Steps:
    """Two partners swap their whole vectors, and both add: the fewest steps, but all bytes in each."""
    for d in distances(n):
        yield Step("swap and add", [Message(r, r ^ d, whole(n), add=True) for r in range(n)])


def whole(n: int) -> tuple[int, ...]:
    return tuple(range(n))


def block(rank: int, length: int) -> tuple[int, ...]:
    """The block of `length` chunks that a rank belongs to."""
    start = rank - rank % length
    return tuple(range(start, start + length))


# ── stars: the root speaks to each, one after the other ───────────────────────────────────────────────────────────────


def star_reduce(n: int, root: int = 0) -> Steps:
    """All send to the root, which can take in only one message at a time."""
    yield Step("reduce", [Message(r, root, whole(n), add=True) for r in range(n) if r != root])


def star_broadcast(n: int, root: int = 0) -> Steps:
    """The root sends to one after the other."""
    yield Step("broadcast", [Message(root, r, whole(n)) for r in range(n) if r != root])


def star_all_reduce(n: int) -> Steps:
    """The simplest way: rank 0 does it all, and the others wait."""
    yield from star_reduce(n)
    yield from star_broadcast(n)


# ── shared memory: nothing is sent, ranks read what others have written there; writing is not counted ─────────────────


def shared_reduce_scatter(n: int) -> Steps:
    """Each rank reads its own chunk from all others' memory, and adds it up in the order of the ranks."""
    yield Step("reduce-scatter", [Message(s, r, (r,), add=True) for r in range(n) for s in range(n) if s != r])


def shared_all_gather(n: int) -> Steps:
    """Each rank copies the chunks of all others."""
    yield Step("all-gather", [Message(s, r, (s,)) for r in range(n) for s in range(n) if s != r])


def shared_all_reduce(n: int) -> Steps:
    """Each rank adds up one chunk of all ranks; after a barrier it copies the sums of the others.

    So does the backend gloo here, beyond 8 KiB.
    """
    yield from shared_reduce_scatter(n)
    yield from shared_all_gather(n)


def exchange_all_reduce(n: int) -> Steps:
    """Each rank reads all of all others and adds it up itself, after one barrier.

    So does the backend gloo here, up to 8 KiB, and between two ranks.
    """
    yield Step("read and add", [Message(s, r, whole(n), add=True) for r in range(n) for s in range(n) if s != r])


def shared_broadcast(n: int, root: int = 0) -> Steps:
    """All copy the root's memory at once."""
    yield Step("broadcast", [Message(root, r, whole(n)) for r in range(n) if r != root])


# ── what there is, and what it costs ──────────────────────────────────────────────────────────────────────────────────


class Algorithm(NamedTuple):
    """An algorithm: its steps, and its cost by formula: so many messages one after the other, so many times the
    vector's bytes.

    `powers`: it takes 2, 4, 8 … ranks. `shared`: ranks read at once; a step costs one latency, that of a barrier.
    """

    title: str
    steps: Callable[..., Steps]
    rounds: Formula
    volume: Formula
    powers: bool = False
    shared: bool = False

    @property
    def about(self) -> str:
        return (self.steps.__doc__ or "").strip()


class Formula(NamedTuple):
    """A number that follows from the number of ranks, as text and as a function."""

    text: str
    of: Callable[[int], float]

    def times(self, unit: str) -> str:
        """The formula times something, as text.

        >>> AROUND.times("m"), ONE.times("m"), PART.times("m")
        ('(n − 1) · m', 'm', '(n − 1)/n · m')
        """
        return (unit if self.text == "1" else f"({self.text}) · {unit}" if self.text.startswith("n")
                else f"{self.text} · {unit}")


def log2(n: int) -> int:
    """log₂ n, rounded up.

    >>> log2(1), log2(4), log2(5)
    (0, 2, 3)
    """
    return (n - 1).bit_length()


AROUND, TWICE = Formula("n − 1", lambda n: n - 1), Formula("2(n − 1)", lambda n: 2 * (n - 1))
HEIGHT, UP_AND_DOWN = Formula("⌈log₂ n⌉", log2), Formula("2⌈log₂ n⌉", lambda n: 2 * log2(n))
PART, PARTS = Formula("(n − 1)/n", lambda n: (n - 1) / n), Formula("2(n − 1)/n", lambda n: 2 * (n - 1) / n)
ONE, TWO, CHAIN = Formula("1", lambda n: 1), Formula("2", lambda n: 2), Formula("(2n − 2)/n", lambda n: (2 * n - 2) / n)

COLLECTIVES: dict[str, dict[str, Algorithm]] = {
    "all_reduce": {
        "ring": Algorithm("a ring", ring_all_reduce, TWICE, PARTS),
        "tree": Algorithm("a tree", tree_all_reduce, UP_AND_DOWN, UP_AND_DOWN),
        "halving": Algorithm("halving and doubling", halving_all_reduce, UP_AND_DOWN, PARTS, powers=True),
        "doubling": Algorithm("doubling", doubling_all_reduce, HEIGHT, HEIGHT, powers=True),
        "star": Algorithm("a star", star_all_reduce, TWICE, TWICE),
        "shared": Algorithm("shared memory", shared_all_reduce, TWO, PARTS, shared=True),
        "exchange": Algorithm("exchange in shared memory", exchange_all_reduce, ONE, AROUND, shared=True)},
    "reduce_scatter": {
        "ring": Algorithm("a ring", ring_reduce_scatter, AROUND, PART),
        "halving": Algorithm("halving", halving_reduce_scatter, HEIGHT, PART, powers=True),
        "shared": Algorithm("shared memory", shared_reduce_scatter, ONE, PART, shared=True)},
    "all_gather": {
        "ring": Algorithm("a ring", ring_all_gather, AROUND, PART),
        "doubling": Algorithm("doubling", doubling_all_gather, HEIGHT, PART, powers=True),
        "shared": Algorithm("shared memory", shared_all_gather, ONE, PART, shared=True)},
    "broadcast": {
        "tree": Algorithm("a tree", tree_broadcast, HEIGHT, HEIGHT),
        "ring": Algorithm("a chain", ring_broadcast, TWICE, CHAIN),
        "star": Algorithm("a star", star_broadcast, AROUND, AROUND),
        "shared": Algorithm("shared memory", shared_broadcast, ONE, ONE, shared=True)},
    "reduce": {
        "tree": Algorithm("a tree", tree_reduce, HEIGHT, HEIGHT),
        "star": Algorithm("a star", star_reduce, AROUND, AROUND)},
}

__all__ = ["COLLECTIVES", "Algorithm", "Message", "Step"]
