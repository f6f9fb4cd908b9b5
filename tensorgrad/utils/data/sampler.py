"""Samplers: the order and the batches in which the samples of a dataset are visited."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ... import api as tg

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ...generator import Generator

__all__ = ['BatchSampler', 'RandomSampler', 'Sampler', 'SequentialSampler', 'SubsetRandomSampler',
           'WeightedRandomSampler']

T_co = TypeVar('T_co', covariant=True)

DRAWN_AT_ONCE = 32  # indices with replacement; affects the order of a seed


def draw_seed(generator: Generator | None = None) -> int:
    """Draw a number below 2⁶³ from ``generator``, by default the global one."""
    return tg.empty((), dtype=tg.int64, device=device_of(generator)).random_(generator=generator).item()


def device_of(generator: Any) -> Any:
    """Return the device on which to draw, independently of the default device."""
    return getattr(generator, 'device', 'cpu')


def permutation(length: int, generator: Any) -> list[int]:
    return tg.randperm(length, generator=generator, device=device_of(generator)).tolist()


class Sampler(Generic[T_co]):
    """Base class of samplers: iterables of indices or of lists of indices (PyTorch: ``torch.utils.data.Sampler``).

    >>> from tensorgrad.utils.data import DataLoader, Sampler
    >>> class Backwards(Sampler):
    ...     def __init__(self, length):
    ...         self.length = length
    ...
    ...     def __iter__(self):
    ...         return iter(range(self.length - 1, -1, -1))
    >>> [batch.tolist() for batch in DataLoader(range(3), sampler=Backwards(3))]
    [[2], [1], [0]]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError('Subclasses of Sampler should implement __iter__.')


class SequentialSampler(Sampler[int]):
    """All indices in order (PyTorch: ``torch.utils.data.SequentialSampler``).

    >>> from tensorgrad.utils.data import SequentialSampler
    >>> list(SequentialSampler('abc'))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order (PyTorch: ``torch.utils.data.RandomSampler``).

    Permutations of all indices, or independent ones with ``replacement``; ``num_samples`` of them, by default as many
    as there are. Each iteration takes a new seed from the global generator, unless it is given a ``generator``.
    TypeError for a ``replacement`` that is no bool, ValueError unless ``num_samples`` is a positive integer.

    >>> import tensorgrad as torch
    >>> sampler = torch.utils.data.RandomSampler('abcd', generator=torch.Generator().manual_seed(0))
    >>> sorted(sampler)
    [0, 1, 2, 3]
    """

    def __init__(self, data_source: Sized, replacement: bool = False, num_samples: int | None = None,
                 generator: Generator | None = None) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f'replacement should be a boolean value, but got replacement={replacement}')
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError('num_samples should be a positive integer value, '
                             f'but got num_samples={self.num_samples}')

    @property
    def num_samples(self) -> int:
        """The number of indices, by default the dataset's present length."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        generator = self.generator
        if generator is None:
            generator = tg.Generator()
            generator.manual_seed(draw_seed())
        length, wanted = len(self.data_source), self.num_samples
        if self.replacement:
            for start in range(0, wanted, DRAWN_AT_ONCE):
                size = min(DRAWN_AT_ONCE, wanted - start)
                yield from tg.randint(length, (size,), dtype=tg.int64, generator=generator,
                                      device=device_of(generator)).tolist()
            return
        for _ in range(wanted // length):
            yield from permutation(length, generator)
        rest = wanted % length
        if rest or self.generator is not None:  # a given generator draws a permutation even for an empty rest
            yield from permutation(length, generator)[:rest]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order (PyTorch: ``torch.utils.data.SubsetRandomSampler``).

    >>> from tensorgrad.utils.data import SubsetRandomSampler
    >>> sorted(SubsetRandomSampler([7, 3, 5]))
    [3, 5, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for index in permutation(len(self.indices), self.generator):
            yield self.indices[index]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """``num_samples`` indices, drawn by weight (PyTorch: ``torch.utils.data.WeightedRandomSampler``).

    The weights need not add up to 1. ValueError unless they are in one dimension, ``num_samples`` is a positive integer
    and ``replacement`` a bool.

    >>> from tensorgrad.utils.data import WeightedRandomSampler
    >>> list(WeightedRandomSampler([0.0, 3.0, 0.0], num_samples=4))
    [1, 1, 1, 1]
    """

    def __init__(self, weights: Sequence[float] | Tensor, num_samples: int, replacement: bool = True,
                 generator: Generator | None = None) -> None:
        check_count('num_samples', num_samples)
        check_flag('replacement', replacement)
        self.weights = tg.as_tensor(weights, dtype=tg.float64)
        if self.weights.dim() != 1:
            raise ValueError('weights should be a 1d sequence but given weights have shape '
                             f'{tuple(self.weights.shape)}')
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        yield from tg.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of ``batch_size`` indices of another sampler (PyTorch: ``torch.utils.data.BatchSampler``).

    ``drop_last`` leaves out a last batch that is not full.
    ValueError unless ``batch_size`` is a positive integer and ``drop_last`` a bool.

    >>> from tensorgrad.utils.data import BatchSampler
    >>> list(BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        check_count('batch_size', batch_size)
        check_flag('drop_last', drop_last)
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        full, rest = divmod(len(self.sampler), self.batch_size)
        return full if self.drop_last or not rest else full + 1


def check_count(name: str, value: Tensor) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f'{name} should be a positive integer value, but got {name}={value}')


def check_flag(name: str, value: Tensor) -> None:
    if not isinstance(value, bool):
        raise ValueError(f'{name} should be a boolean value, but got {name}={value}')
