"""How a training step scales from 2 to 4,096 ranks: an event simulation of data parallel training, from measured time
lines and a network's two numbers.

A rank computes a forward and a backward. Each bucket of gradients is all-reduced as soon as it is complete and the
bucket before it is done, while the backward goes on; the step ends when the last has arrived, and the optimizer is
done. Messages take a latency and their bytes over a bandwidth; ranks of a node share its connection to the others. Each
rank has a clock of its own: a rank begins a step of an algorithm when it has done the one before and what it needs has
    arrived.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from tensorgrad.viz.collectives.network import NETWORKS, Network

Clocks = np.ndarray


class Fabric(NamedTuple):
    """Nodes of `per_node` ranks each, which speak over `inside`, and with those of other nodes over `between`, where a
    node has one connection for all.
    """

    name: str
    per_node: int
    inside: Network
    between: Network

    @property
    def shared(self) -> Network:
        """Divide the connection of a node among its ranks, all of which use it."""
        return Network(self.between.latency, self.between.bandwidth / self.per_node)


def flat(network: Network) -> Fabric:
    """A rank for each node."""
    return Fabric(network.name, 1, network, network)


# ── all-reduce: each takes the clocks of all ranks, and gives them when they have the sum ─────────────────────────────


def ring(clocks: Clocks, nbytes: float, fabric: Fabric) -> Clocks:
    """2(n − 1) steps of a chunk each; only one way of each node leads out of it, so that it has the whole
    connection.
    """
    n = len(clocks)
    out = (np.arange(n) + 1) % fabric.per_node == 0
    takes = np.where(out, fabric.between.takes(1, nbytes / n), fabric.inside.takes(1, nbytes / n))
    return around(clocks, takes, 2 * (n - 1))


def halving(clocks: Clocks, nbytes: float, fabric: Fabric) -> Clocks:
    """Partners swap halves, then quarters, …, neighbours first, so that little is left for the network; then the same
    way back. n is a power of two.
    """
    n, ranks = len(clocks), np.arange(len(clocks))
    distances = [1 << k for k in range((n - 1).bit_length())]
    shares = [nbytes / (2 * d) for d in distances]
    for d, share in [*zip(distances, shares), *zip(distances[::-1], shares[::-1])]:
        network = fabric.inside if d < fabric.per_node else fabric.shared
        sent = clocks + network.takes(1, share)
        clocks = np.maximum(sent, sent[ranks ^ d])
    return clocks


def tree(clocks: Clocks, nbytes: float, fabric: Fabric) -> Clocks:
    """All bytes up a binomial tree, and down again."""
    clocks, n = clocks.copy(), len(clocks)
    distances = [1 << k for k in range((n - 1).bit_length())]
    for d in distances:
        low = np.arange(0, n - d, 2 * d)
        clocks[low + d] += (fabric.inside if d < fabric.per_node else fabric.between).takes(1, nbytes)
        clocks[low] = np.maximum(clocks[low], clocks[low + d])
    for d in distances[::-1]:
        low = np.arange(0, n - d, 2 * d)
        clocks[low] += (fabric.inside if d < fabric.per_node else fabric.between).takes(1, nbytes)
        clocks[low + d] = np.maximum(clocks[low + d], clocks[low])
    return clocks


def hierarchical(clocks: Clocks, nbytes: float, fabric: Fabric) -> Clocks:
    """A ring in each node, so that each of its ranks has a share of the sum; a ring of all nodes for each share; and a
    ring in each node to hand them out.
    """
    n, k = len(clocks), min(fabric.per_node, len(clocks))
    inside, share = fabric.inside.takes(1, nbytes / k), nbytes / k
    grid = around(clocks.reshape(-1, k), np.full(k, inside), k - 1)
    nodes = n // k
    grid = around(grid.T, np.full(nodes, fabric.shared.takes(1, share / nodes)), 2 * (nodes - 1)).T
    return around(grid, np.full(k, inside), k - 1).reshape(-1)


def around(clocks: Clocks, takes: Clocks, steps: int) -> Clocks:
    """So many steps of a ring along the last axis: a rank goes on when its message has left and its neighbour's is
    there.
    """
    for _ in range(steps):
        sent = clocks + takes
        clocks = np.maximum(sent, np.roll(sent, 1, axis=-1))
    return clocks


ALGORITHMS: dict[str, Callable[[Clocks, float, Fabric], Clocks]] = {"ring": ring, "halving": halving, "tree": tree,
                                                                    "hierarchical": hierarchical}


@cache
def takes(algorithm: str, n: int, nbytes: float, fabric: Fabric) -> float:
    """The seconds of an all-reduce of ranks that begin at once."""
    return float(ALGORITHMS[algorithm](np.zeros(n), nbytes, fabric).max()) if n > 1 else 0.0


@cache
def quickest(n: int, nbytes: float, fabric: Fabric) -> str:
    """The algorithm that takes the least time."""
    possible = [name for name in ALGORITHMS if name != "hierarchical" or n > fabric.per_node > 1]
    return min(possible, key=lambda name: takes(name, n, nbytes, fabric))


# ── a step ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Bucket(NamedTuple):
    """Gradients that travel together: when they are complete, in seconds since the backward began, and their bytes."""

    ready: float
    nbytes: int


class Timeline(NamedTuple):
    """Where the time of a step of one rank goes: seconds of forward, backward and update, and the buckets in their
    order.
    """

    forward: float
    backward: float
    update: float
    buckets: tuple[Bucket, ...]

    @property
    def alone(self) -> float:
        """The seconds of a step without any other rank."""
        return self.forward + self.backward + self.update

    @property
    def nbytes(self) -> int:
        return sum(bucket.nbytes for bucket in self.buckets)

    def scaled(self, factor: float) -> Timeline:
        """As if the ranks took `factor` times the time to compute."""
        return Timeline(self.forward * factor, self.backward * factor, self.update * factor,
                        tuple(Bucket(b.ready * factor, b.nbytes) for b in self.buckets))


class Model(NamedTuple):
    """A model as it was measured with two sizes of the batch; in between and beyond, times are a line through both."""

    name: str
    batches: tuple[int, int]
    timelines: tuple[Timeline, Timeline]

    def at(self, batch: float) -> Timeline:
        small, large = self.timelines
        part = (batch - self.batches[0]) / (self.batches[1] - self.batches[0])

        def line(a: float, b: float) -> float:
            return max(a + (b - a) * part, 0.0)
        buckets = tuple(Bucket(line(a.ready, b.ready), a.nbytes)
                        for a, b in zip(small.buckets, large.buckets, strict=True))
        return Timeline(line(small.forward, large.forward), line(small.backward, large.backward),
                        line(small.update, large.update), buckets)


class Simulated(NamedTuple):
    """A step of n ranks: its seconds, those of all-reduces by themselves, how long ranks waited for them after their
    backward, and the algorithm of the largest bucket."""

    ranks: int
    step: float
    communication: float
    waited: float
    algorithm: str


def simulate(timeline: Timeline, n: int, fabric: Fabric, *, algorithm: str = "", overlap: bool = True,
             spread: float = 0.0, seed: int = 0) -> Simulated:
    """A step of n ranks, bucket by bucket.

    `overlap` False: ranks compute or communicate, never both. `spread`: the standard deviation of the ranks' times to
        compute, as a part of these: all wait
    for the slowest.
    """
    slow = 1 + spread * np.abs(np.random.default_rng(seed).standard_normal(n))
    begun, ended = timeline.forward * slow, (timeline.forward + timeline.backward) * slow
    done, communication = np.zeros(n), 0.0
    for bucket in timeline.buckets if n > 1 else ():
        name = algorithm or quickest(n, bucket.nbytes, fabric)
        communication += takes(name, n, bucket.nbytes, fabric)
        start = np.maximum(begun + bucket.ready * slow if overlap else ended, done)
        done = ALGORITHMS[name](start, bucket.nbytes, fabric)
    ready = np.maximum(ended, done)
    largest = max(timeline.buckets, key=lambda bucket: bucket.nbytes)
    named = algorithm or quickest(n, largest.nbytes, fabric) if n > 1 else ""
    return Simulated(n, float(ready.max()) + timeline.update, communication, float((ready - ended).mean()), named)


def overtakes(rows: list[Simulated], alone: list[float]) -> int | None:
    """The least number of ranks whose all-reduces take longer than their computing."""
    return next((row.ranks for row, own in zip(rows, alone, strict=True) if row.communication > own), None)


PER_NODE = 16
SLOW = Network(50e-6, 0.125e9, "1 Gb/s Ethernet")
FABRICS = [Fabric(network.name, PER_NODE, NETWORKS["memory"], network)
           for network in (SLOW, NETWORKS["ethernet"], NETWORKS["infiniband"])]
