"""Collectives that can be watched: they run among ranks of one process, on real tensors, and a page shows each message.

`schedules` has the algorithms, `running` performs them, `steps` is what they note, `checking` compares the results,
`network` says how long messages take, `page`, `drawing` and `chart` show them.
"""
from __future__ import annotations

from typing import Any

from .collective import Collective
from .network import NETWORKS, Network
from .running import run


def all_reduce(values: Any = 4, algorithm: str = "ring", *, op: str = "sum", network: Any = None) -> Collective:
    """Add up the tensors of all ranks, such that every rank has the sum.

    `values` has a tensor for each rank, all of one shape and dtype, or is a number of ranks, which have small numbers
    then. The vector is cut into as many chunks as there are ranks.

    Args:
        algorithm: 'ring', 'tree', 'halving', 'doubling', 'star'; or, in shared memory as the backend gloo does it here,
            'shared' (large arrays) and 'exchange' (small ones)
        op: 'sum', 'product', 'min', 'max'
        network: 'memory', 'ethernet', 'infiniband', or a pair α, β: the latency in seconds, and bytes a second. Times
            are those of this model: with m bytes and n ranks a ring takes 2(n − 1) α + 2(n − 1)/n · m / β.

    Raises: ValueError for unknown names, for unlike tensors, for a number of ranks that the algorithm cannot take;
        TypeError for what is no
    tensor. https://pytorch.org/docs → torch.distributed.all_reduce

    >>> import tensorgrad as torch
    >>> ran = torch.viz.collectives.all_reduce([torch.tensor([1., 2.]), torch.tensor([10., 20.])], "ring")
    >>> print(ran)
    All-reduce of 2 ranks by a ring: 2 steps, 4 µs (100 Gb/s InfiniBand: 2 µs a message, 12.5 GB/s)
    begin   0: 1 | 2    1: 10 | 20
    1 reduce-scatter: 0→1 chunk 1, 1→0 chunk 0 (4 B, 2 µs)
            0: 11 | 2    1: 10 | 22
    2 all-gather: 0→1 chunk 0, 1→0 chunk 1 (4 B, 2 µs)
            0: 11 | 22    1: 11 | 22
    ✓ All ranks hold the same bits.
    ✓ They are the sum: float64 gives the same.
    >>> ran.results[1]
    tensor([11., 22.])
    """
    return run("all_reduce", values, algorithm, op=op, network=network)


def reduce_scatter(values: Any = 4, algorithm: str = "ring", *, op: str = "sum", network: Any = None) -> Collective:
    """Add up the tensors of all ranks, such that each rank has its chunk of the sum.

    Arguments and errors: `all_reduce`; 'ring', 'halving', 'shared'.

    https://pytorch.org/docs → torch.distributed.reduce_scatter

    >>> reduce_scatter(4, "halving").results
    [tensor([1111.]), tensor([2222.]), tensor([3333.]), tensor([4444.])]
    """
    return run("reduce_scatter", values, algorithm, op=op, network=network)


def all_gather(values: Any = 4, algorithm: str = "ring", *, network: Any = None) -> Collective:
    """Give each rank the tensors of all, one behind the other.

    Arguments and errors: `all_reduce`; 'ring', 'doubling', 'shared'.

    https://pytorch.org/docs → torch.distributed.all_gather

    >>> import tensorgrad as torch
    >>> all_gather([torch.tensor([1.]), torch.tensor([2.])]).results
    [tensor([1., 2.]), tensor([1., 2.])]
    """
    return run("all_gather", values, algorithm, network=network)


def broadcast(values: Any = 4, algorithm: str = "tree", *, root: int = 0, network: Any = None) -> Collective:
    """Give each rank the tensor of the root.

    Arguments and errors: `all_reduce`; 'tree', 'ring' (a chain), 'star', 'shared'.

    https://pytorch.org/docs → torch.distributed.broadcast

    >>> len(broadcast(8, "tree").steps), len(broadcast(8, "ring").steps)
    (3, 14)
    """
    return run("broadcast", values, algorithm, root=root, network=network)


def reduce(values: Any = 4, algorithm: str = "tree", *, root: int = 0, op: str = "sum",
           network: Any = None) -> Collective:
    """Add up the tensors of all ranks at the root. Arguments and errors: `all_reduce`; 'tree', 'star'.

    https://pytorch.org/docs → torch.distributed.reduce

    >>> reduce(3, root=1).results
    [None, tensor([111., 222., 333.]), None]
    """
    return run("reduce", values, algorithm, root=root, op=op, network=network)


__all__ = ["Collective", "NETWORKS", "Network", "all_gather", "all_reduce", "broadcast", "reduce", "reduce_scatter"]
