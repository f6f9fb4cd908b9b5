"""Pipes that are indexed: a sequence, a function of samples, batches, several pipes as one, another order."""
from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...sampler import draw_seed
from ..datapipe import DataChunk, IterDataPipe, MapDataPipe, check_function, functional_datapipe

__all__ = ['BatcherMapDataPipe', 'ConcaterMapDataPipe', 'MapperMapDataPipe', 'SequenceWrapperMapDataPipe',
           'ShufflerIterDataPipe', 'ZipperMapDataPipe']


class SequenceWrapperMapDataPipe(MapDataPipe):
    """The elements of a sequence or a mapping; of a copy, unless ``deepcopy=False``."""

    def __init__(self, sequence: Sequence[Any] | Mapping[Any, Any], deepcopy: bool = True) -> None:
        self.sequence = sequence
        if deepcopy:
            try:
                self.sequence = copy.deepcopy(sequence)
            except TypeError:
                warnings.warn('The input sequence can not be deepcopied, please be aware of in-place modification '
                              'would affect source data', stacklevel=2)

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


def itself(data: Any) -> Any:
    """Return the sample."""
    return data


@functional_datapipe('map')
class MapperMapDataPipe(MapDataPipe):
    """A function of each sample."""

    def __init__(self, datapipe: Any, fn: Callable[..., Any] = itself) -> None:
        check_function(fn)
        self.datapipe, self.fn = datapipe, fn

    def __len__(self) -> int:
        return len(self.datapipe)

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])


@functional_datapipe('batch')
class BatcherMapDataPipe(MapDataPipe):
    """Batches of ``batch_size`` samples in a row."""

    def __init__(self, datapipe: Any, batch_size: int, drop_last: bool = False,
                 wrapper_class: type[DataChunk] = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError('Batch size is required to be larger than 0!')
        self.datapipe, self.batch_size, self.drop_last, self.wrapper_class = (datapipe, batch_size, drop_last,
                                                                              wrapper_class)

    def __getitem__(self, index: int) -> Any:
        batch, start = [], index * self.batch_size
        try:
            for place in range(start, start + self.batch_size):
                batch.append(self.datapipe[place])
        except IndexError as error:
            if not batch or self.drop_last:
                raise IndexError(f'Index {index} is out of bound.') from error
        return self.wrapper_class(batch)

    def __len__(self) -> int:
        count = len(self.datapipe)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


def check_pipes(datapipes: tuple[Any, ...]) -> None:
    """Raise unless there are pipes, and all are, with lengths."""
    if not datapipes:
        raise ValueError('Expected at least one DataPipe, but got nothing')
    if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
        raise TypeError('Expected all inputs to be `MapDataPipe`')
    if not all(hasattr(pipe, '__len__') for pipe in datapipes):
        raise TypeError('Expected all inputs to be `Sized`')


@functional_datapipe('concat')
class ConcaterMapDataPipe(MapDataPipe):
    """Several pipes, one after another."""

    def __init__(self, *datapipes: Any) -> None:
        check_pipes(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: int) -> Any:
        place = index
        for pipe in self.datapipes:
            if place < len(pipe):
                return pipe[place]
            place -= len(pipe)
        raise IndexError(f'Index {index} is out of range.')

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe('zip')
class ZipperMapDataPipe(MapDataPipe):
    """Tuples of a sample of each pipe."""

    def __init__(self, *datapipes: Any) -> None:
        check_pipes(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        try:
            return tuple(pipe[index] for pipe in self.datapipes)
        except IndexError as error:
            raise IndexError(f'Index {index} is out of range for one of the input MapDataPipes {self.datapipes}.'
                             ) from error

    def __len__(self) -> int:
        return min(map(len, self.datapipes))


class ShufflerIterDataPipe(IterDataPipe):
    """The samples of a pipe in a random order: of all indices, 0, 1, …, or of those given."""

    def __init__(self, datapipe: Any, *, indices: list[Any] | None = None) -> None:
        self.datapipe, self.indices = datapipe, list(range(len(datapipe))) if indices is None else indices
        self._enabled, self._seed, self._rng, self._order = True, None, random.Random(), []

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        """Turn the shuffling on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """Fix the order of the next iteration."""
        self._seed = seed
        return self

    def reset(self) -> None:
        self._order = list(self.indices)[::-1]        # the next is the last
        if self._enabled:
            self._rng.seed(draw_seed() if self._seed is None else self._seed)
            self._seed = None
            self._order = self._rng.sample(self.indices, len(self.indices))

    def __iter__(self) -> Iterator[Any]:
        while self._order:
            yield self.datapipe[self._order.pop()]

    def __len__(self) -> int:
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function('shuffle', ShufflerIterDataPipe)
