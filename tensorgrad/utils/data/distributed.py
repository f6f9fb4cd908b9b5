"""A sampler for training in several processes, each of which gets a share of the samples."""
from __future__ import annotations

import math
from collections.abc import Iterator, Sized

from ... import api as tg
from .sampler import Sampler, permutation

__all__ = ['DistributedSampler']


class DistributedSampler(Sampler[int]):
    """Every ``num_replicas``-th index, from ``rank`` on (PyTorch: ``torch.utils.data.distributed.DistributedSampler``).

    All processes shuffle alike, by ``seed`` and the epoch of ``set_epoch``. The first indices are repeated so that
    shares are equal, or with ``drop_last`` the last are left out. ValueError for a ``rank`` out of range, and without
    both ``num_replicas`` and a process group.

    >>> from tensorgrad.utils.data import DistributedSampler
    >>> [list(DistributedSampler('abcde', num_replicas=2, rank=rank, shuffle=False)) for rank in range(2)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
                 seed: int = 0, drop_last: bool = False) -> None:
        if num_replicas is None or rank is None:
            from ... import distributed
            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f'Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]')
        self.dataset, self.num_replicas, self.rank, self.epoch = dataset, num_replicas, rank, 0
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        self.num_samples = len(dataset) // num_replicas if drop_last else math.ceil(len(dataset) / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        length = len(self.dataset)
        indices = list(range(length))
        if self.shuffle:
            indices = permutation(length, tg.Generator().manual_seed(self.seed + self.epoch))
        if length:
            indices *= math.ceil(self.total_size / length)
        return iter(indices[self.rank:self.total_size:self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, by which all processes shuffle alike."""
        self.epoch = epoch
