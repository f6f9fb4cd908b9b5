"""A pipe that leaves a worker its share of the samples."""
from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from ..datapipe import IterDataPipe, functional_datapipe

__all__ = ['SHARDING_PRIORITIES', 'ShardingFilterIterDataPipe']


class SHARDING_PRIORITIES(IntEnum):
    """Levels at which samples are shared out."""

    DEFAULT, DISTRIBUTED, MULTIPROCESSING = 1, 2, 3


class _ShardingIterDataPipe(IterDataPipe):
    """A pipe with a method by which loaders say which share is wanted."""

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: SHARDING_PRIORITIES) -> None:
        raise NotImplementedError(f'{type(self).__name__} has no method `apply_sharding`')


@functional_datapipe('sharding_filter')
class ShardingFilterIterDataPipe(_ShardingIterDataPipe):
    """Every n-th sample, where n counts the workers and ranks; all samples until a loader says so."""

    def __init__(self, source_datapipe: Any, sharding_group_filter: Any = None) -> None:
        self.source_datapipe, self.sharding_group_filter = source_datapipe, sharding_group_filter
        self.groups: dict[int, tuple[int, int]] = {}
        self.num_of_instances, self.instance_id = 1, 0

    def apply_sharding(self, num_of_instances: int, instance_id: int,
                       sharding_group: SHARDING_PRIORITIES = SHARDING_PRIORITIES.DEFAULT) -> None:
        if instance_id >= num_of_instances:
            raise ValueError(f'instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})')
        default = SHARDING_PRIORITIES.DEFAULT
        if self.groups and (sharding_group == default) != (default in self.groups):
            raise RuntimeError('ShardingFilter cannot mix DEFAULT and non DEFAULT groups')
        self.groups[sharding_group] = num_of_instances, instance_id
        self.num_of_instances, self.instance_id = 1, 0
        for group in sorted(self.groups, reverse=True):
            if self.sharding_group_filter is None or group == self.sharding_group_filter:
                count, number = self.groups[group]
                self.instance_id += self.num_of_instances * number
                self.num_of_instances *= count

    def __iter__(self) -> Iterator[Any]:
        for place, sample in enumerate(self.source_datapipe):
            if place % self.num_of_instances == self.instance_id:
                yield sample

    def __len__(self) -> int:
        count = self._length(self.source_datapipe)
        return count // self.num_of_instances + (self.instance_id < count % self.num_of_instances)
