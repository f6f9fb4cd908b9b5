"""Pipes that make batches and groups, and undo them."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from ..datapipe import DataChunk, IterDataPipe, check_function, functional_datapipe

__all__ = ['BatcherIterDataPipe', 'GrouperIterDataPipe', 'UnBatcherIterDataPipe']


@functional_datapipe('batch')
class BatcherIterDataPipe(IterDataPipe):
    """Batches of ``batch_size`` samples; a last one that is not full may be left out."""

    def __init__(self, datapipe: Any, batch_size: int, drop_last: bool = False,
                 wrapper_class: type[DataChunk] = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError('Batch size is required to be larger than 0!')
        self.datapipe, self.batch_size, self.drop_last, self.wrapper_class = (datapipe, batch_size, drop_last,
                                                                              wrapper_class)

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for sample in self.datapipe:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        count = self._length(self.datapipe)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


@functional_datapipe('unbatch')
class UnBatcherIterDataPipe(IterDataPipe):
    """The elements of batches, through ``unbatch_level`` levels of lists; −1: through all."""

    def __init__(self, datapipe: Any, unbatch_level: int = 1) -> None:
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self) -> Iterator[Any]:
        for element in self.datapipe:
            yield from self._dive(element, self.unbatch_level)

    def _dive(self, element: Any, level: int) -> Iterator[Any]:
        if level < -1:
            raise ValueError('unbatch_level must be -1 or >= 0')
        if level == 0 or level == -1 and not isinstance(element, (list, DataChunk)):
            yield element
            return
        if not isinstance(element, (list, DataChunk)):
            raise IndexError(f'unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe')
        for inner in element:
            yield from self._dive(inner, level if level == -1 else level - 1)


@functional_datapipe('groupby')
class GrouperIterDataPipe(IterDataPipe):
    """Groups of samples with a common key, of ``group_size`` samples, or as many as ``buffer_size`` samples contain.

    When the buffer is full, its largest group is yielded if it has ``guaranteed_group_size`` samples; otherwise it is
    an error, or dropped with ``drop_remaining``.
    """

    def __init__(self, datapipe: Any, group_key_fn: Callable[[Any], Any], *, keep_key: bool = False,
                 buffer_size: int = 10000, group_size: int | None = None, guaranteed_group_size: int | None = None,
                 drop_remaining: bool = False) -> None:
        check_function(group_key_fn)
        self.datapipe, self.group_key_fn, self.keep_key = datapipe, group_key_fn, keep_key
        self.max_buffer_size, self.group_size, self.drop_remaining = buffer_size, group_size, drop_remaining
        self.guaranteed_group_size = guaranteed_group_size
        if group_size is not None and buffer_size is not None:
            if not 0 < group_size <= buffer_size:
                raise AssertionError('group_size must be > 0 and <= buffer_size')
            self.guaranteed_group_size = group_size
        if guaranteed_group_size is not None:
            if group_size is None or not 0 < guaranteed_group_size <= group_size:
                raise AssertionError('guaranteed_group_size must be > 0 and <= group_size and group_size must be set')
            self.guaranteed_group_size = guaranteed_group_size

    def __iter__(self) -> Iterator[Any]:
        groups: defaultdict[Any, list[Any]] = defaultdict(list)
        held = 0
        for sample in self.datapipe:
            key = self.group_key_fn(sample)
            groups[key].append(sample)
            held += 1
            if self.group_size is not None and self.group_size == len(groups[key]):
                held -= len(groups[key])
                yield self._given(key, groups.pop(key))
            if held == self.max_buffer_size:
                biggest, kept = self._largest(groups)
                held -= len(groups.pop(biggest))
                if kept is not None:
                    yield self._given(biggest, kept)
        for key in tuple(groups):
            yield self._given(key, groups.pop(key))

    def _given(self, key: Any, group: list[Any]) -> Any:
        group = DataChunk(group)
        return (key, group) if self.keep_key else group

    def _largest(self, groups: dict[Any, list[Any]]) -> tuple[Any, list[Any] | None]:
        """Return the key of the largest group, and the group, None if it is too small to be kept."""
        key = max(groups, key=lambda one: len(groups[one]))
        size = len(groups[key])
        if self.guaranteed_group_size is not None and size < self.guaranteed_group_size and not self.drop_remaining:
            raise RuntimeError(f'Failed to group items: {groups[key]}')
        if self.guaranteed_group_size is None or size >= self.guaranteed_group_size:
            return key, groups[key]
        return key, None
