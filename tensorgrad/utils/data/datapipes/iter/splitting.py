"""Several pipes out of one: copies of it, or its samples by class.

The pipes share an iterator of the source, and a buffer for samples that one of them has not taken yet.
"""
from __future__ import annotations

import copy as _copy
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from ..datapipe import IterDataPipe, check_function, functional_datapipe

__all__ = ['DemultiplexerIterDataPipe', 'ForkerIterDataPipe']


class _Source(IterDataPipe):
    """The shared source of several pipes; the subclass says to which of them a sample goes."""

    def __init__(self, datapipe: Any, num_instances: int, buffer_size: int, overflow: str) -> None:
        self.main_datapipe, self.num_instances, self.buffer_size = datapipe, num_instances, buffer_size
        self.overflow = overflow
        self._begin(0)

    def _begin(self, epoch: int) -> None:
        self.epoch, self.started, self._samples, self._ended = epoch, set(), None, False
        self.buffers: list[deque[Any]] = [deque() for _ in range(self.num_instances)]
        self._held = 0

    def places(self, sample: Any) -> tuple[int, ...]:
        """Return the numbers of the pipes that get a sample."""
        raise NotImplementedError(f'{type(self).__name__} has no method `places`')

    def prepared(self, sample: Any) -> Any:
        """Return what each of them gets."""
        return sample

    def start(self, number: int) -> int:
        """Begin a pipe, for a second time with a new epoch of all; return the epoch."""
        if number in self.started:
            if not self._ended or any(self.buffers):
                warnings.warn('Some child DataPipes are not exhausted when __iter__ is called. We are resetting the '
                              'buffer and each child DataPipe will read from the start again.', UserWarning,
                              stacklevel=4)
            self._begin(self.epoch + 1)
        self.started.add(number)
        return self.epoch

    def next_for(self, number: int) -> Any:
        """Return the next sample of a pipe; StopIteration after the last."""
        if self._samples is None:
            self._samples = iter(self.main_datapipe)
        while not self.buffers[number]:
            try:
                sample = next(self._samples)
            except StopIteration:
                self._ended = True
                raise
            for place in self.places(sample):
                if place != number:
                    self._held += 1
                    if 0 <= self.buffer_size < self._held:
                        raise BufferError(self.overflow.format(self.buffer_size))
                self.buffers[place].append(sample)
            if self.buffers[number]:
                return self.prepared(self.buffers[number].popleft())
        self._held -= 1
        return self.prepared(self.buffers[number].popleft())

    def __getstate__(self) -> Any:
        return {**vars(self), '_samples': None, 'buffers': [deque() for _ in range(self.num_instances)], '_held': 0}


class _Forked(_Source):
    """Gives every sample to all pipes."""

    def __init__(self, datapipe: Any, num_instances: int, buffer_size: int, copy: str | None) -> None:
        super().__init__(datapipe, num_instances, buffer_size,
                         'ForkerIterDataPipe buffer overflow,buffer size {} is insufficient.')
        self.copy = copy

    def places(self, sample: Any) -> tuple[int, ...]:
        return tuple(range(self.num_instances))

    def prepared(self, sample: Any) -> Any:
        return {None: lambda x: x, 'shallow': _copy.copy, 'deep': _copy.deepcopy}[self.copy](sample)

    def __len__(self) -> int:
        return self._length(self.main_datapipe)


class _Demultiplexed(_Source):
    """Gives a sample to the pipe of its class."""

    def __init__(self, datapipe: Any, num_instances: int, classify: Callable[[Any], Any], drop_none: bool,
                 buffer_size: int) -> None:
        super().__init__(datapipe, num_instances, buffer_size,
                         'DemultiplexerIterDataPipe buffer overflow, buffer size {} is insufficient.')
        self.classify, self.drop_none = classify, drop_none

    def places(self, sample: Any) -> tuple[int, ...]:
        place = self.classify(sample)
        if place is None and self.drop_none:
            return ()
        if place is None or not 0 <= place < self.num_instances:
            raise ValueError(f'Output of the classification fn should be between 0 and {self.num_instances - 1}. '
                             f'{place} is returned.')
        return (place,)


class _ChildDataPipe(IterDataPipe):
    """A pipe that a shared source feeds."""

    def __init__(self, main_datapipe: _Source, instance_id: int) -> None:
        self.main_datapipe, self.instance_id = main_datapipe, instance_id

    def __iter__(self) -> Iterator[Any]:
        source = self.main_datapipe
        epoch = source.start(self.instance_id)
        return self._samples(source, epoch)

    def _samples(self, source: _Source, epoch: int) -> Iterator[Any]:
        while True:
            if source.epoch != epoch:
                raise RuntimeError('This iterator has been invalidated because another iterator has been created from '
                                   'one of the pipes beside it.')
            try:
                sample = source.next_for(self.instance_id)
            except StopIteration:
                return
            yield sample

    def __len__(self) -> int:
        return self._length(self.main_datapipe)


@functional_datapipe('fork')
class ForkerIterDataPipe(IterDataPipe):
    """``num_instances`` pipes with the samples of one; up to ``buffer_size`` of them wait for the slowest."""

    def __new__(cls, datapipe: Any, num_instances: int, buffer_size: int = 1000, copy: str | None = None) -> Any:
        if num_instances < 1:
            raise ValueError(f'Expected `num_instances` larger than 0, but {num_instances} is found')
        if copy not in (None, 'shallow', 'deep'):
            raise ValueError(f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`.")
        if num_instances == 1:
            return datapipe
        source = _Forked(datapipe, num_instances, buffer_size, copy)
        return [_ChildDataPipe(source, number) for number in range(num_instances)]


@functional_datapipe('demux')
class DemultiplexerIterDataPipe(IterDataPipe):
    """``num_instances`` pipes, each with the samples of a class; up to ``buffer_size`` samples wait."""

    def __new__(cls, datapipe: Any, num_instances: int, classifier_fn: Callable[[Any], int | None],
                drop_none: bool = False, buffer_size: int = 1000) -> Any:
        if num_instances < 1:
            raise ValueError(f'Expected `num_instances` larger than 0, but {num_instances} is found')
        check_function(classifier_fn)
        source = _Demultiplexed(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        return [_ChildDataPipe(source, number) for number in range(num_instances)]
