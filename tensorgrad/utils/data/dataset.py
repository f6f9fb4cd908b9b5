"""Datasets: indexed or iterated collections of samples, and combinations of them."""
from __future__ import annotations

import itertools
import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ... import api as tg
from .sampler import permutation

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ...generator import Generator

__all__ = ['ChainDataset', 'ConcatDataset', 'Dataset', 'IterableDataset', 'StackDataset', 'Subset', 'TensorDataset',
           'random_split']

T_co = TypeVar('T_co', covariant=True)


class Dataset(Generic[T_co]):
    """Base class of datasets with indexed samples (PyTorch: ``torch.utils.data.Dataset``).

    A subclass defines ``__getitem__`` and, for most samplers, ``__len__``. The class may also define ``__getitems__``,
    which returns the samples of a list of indices. The sum of datasets is their :class:`ConcatDataset`.

    >>> from tensorgrad.utils.data import Dataset
    >>> class Squares(Dataset):
    ...     def __len__(self):
    ...         return 3
    ...
    ...     def __getitem__(self, index):
    ...         return index ** 2
    >>> (Squares() + Squares())[4]
    1
    """

    def __getitem__(self, index: int) -> T_co:
        raise NotImplementedError('Subclasses of Dataset should implement __getitem__.')

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Base class of datasets that iterate over their samples (PyTorch: ``torch.utils.data.IterableDataset``).

    A subclass defines ``__iter__``. Every worker of a ``DataLoader`` has a copy; ``get_worker_info`` in ``__iter__``
    tells its share of the samples. The sum of such datasets is their :class:`ChainDataset`.

    >>> from tensorgrad.utils.data import DataLoader, IterableDataset
    >>> class Countdown(IterableDataset):
    ...     def __iter__(self):
    ...         return iter([3, 2, 1])
    >>> [batch.tolist() for batch in DataLoader(Countdown(), batch_size=2)]
    [[3, 2], [1]]
    """

    def __add__(self, other: Dataset) -> ChainDataset:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple]):
    """Samples are tuples of the rows of tensors (PyTorch: ``torch.utils.data.TensorDataset``).

    AssertionError if the tensors are of different lengths.

    >>> import tensorgrad as torch
    >>> dataset = torch.utils.data.TensorDataset(torch.tensor([[1, 2], [3, 4]]), torch.tensor([5, 6]))
    >>> dataset[1]
    (tensor([3, 4]), tensor(6))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError('Size mismatch between tensors')
        self.tensors = tensors

    def __getitem__(self, index: int) -> tuple:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset):
    """Samples are tuples or, given keywords, dicts of samples of datasets (PyTorch: ``torch.utils.data.StackDataset``).

    ValueError for datasets of different lengths, for none, and for both kinds at once.

    >>> from tensorgrad.utils.data import StackDataset
    >>> StackDataset(image=['a', 'b'], label=[0, 1])[1]
    {'image': 'b', 'label': 1}
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError('Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like '
                             'input/output, but both types are given.')
        if not args and not kwargs:
            raise ValueError('At least one dataset should be passed')
        self.datasets = args or kwargs
        parts = self._parts()
        self._length = len(parts[0])
        if any(len(dataset) != self._length for dataset in parts):
            raise ValueError('Size mismatch between datasets')

    def _parts(self) -> list:
        return list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)

    def _joined(self, samples: Iterable):
        """Join the samples of the parts to a sample."""
        return dict(zip(self.datasets, samples, strict=True)) if isinstance(self.datasets, dict) else tuple(samples)

    def __getitem__(self, index: int) -> Any:
        return self._joined(dataset[index] for dataset in self._parts())

    def __getitems__(self, indices: list) -> list:
        columns = [getitems(dataset, indices) for dataset in self._parts()]
        for column in columns:
            if len(column) != len(indices):
                raise ValueError("Nested dataset's output size mismatch. "
                                 f'Expected {len(indices)}, got {len(column)}')
        return [self._joined(samples) for samples in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """The concatenation of datasets (PyTorch: ``torch.utils.data.ConcatDataset``).

    AssertionError for none, and for an :class:`IterableDataset` among them.

    >>> from tensorgrad.utils.data import ConcatDataset
    >>> dataset = ConcatDataset(['ab', 'cde'])
    >>> len(dataset), dataset[3], dataset[-1]
    (5, 'd', 'e')
    """

    def __init__(self, datasets: Iterable) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError('datasets should not be an empty iterable')
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError('ConcatDataset does not support IterableDataset')
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable) -> list[int]:
        """Return the cumulative sums of the lengths."""
        return list(itertools.accumulate(map(len, sequence)))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError('absolute value of index should not exceed dataset length')
            idx += len(self)
        number = bisect_right(self.cumulative_sizes, idx)
        return self.datasets[number][idx if number == 0 else idx - self.cumulative_sizes[number - 1]]

    @property
    def cummulative_sizes(self) -> list[int]:
        """Deprecated spelling of ``cumulative_sizes``."""
        warnings.warn('`cummulative_sizes` attribute is renamed to `cumulative_sizes`', FutureWarning, stacklevel=2)
        return self.cumulative_sizes


class ChainDataset(IterableDataset):
    """The concatenation of iterable datasets (PyTorch: ``torch.utils.data.ChainDataset``).

    AssertionError, on use, for a dataset that is no :class:`IterableDataset`.

    >>> from tensorgrad.utils.data import ChainDataset, IterableDataset
    >>> class Letters(IterableDataset):
    ...     def __iter__(self):
    ...         return iter('ab')
    >>> list(ChainDataset([Letters(), Letters()]))
    ['a', 'b', 'a', 'b']
    """

    def __init__(self, datasets: Iterable) -> None:
        self.datasets = datasets

    def _parts(self) -> Iterator:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError('ChainDataset only supports IterableDataset')
            yield dataset

    def __iter__(self) -> Iterator:
        for dataset in self._parts():
            yield from dataset

    def __len__(self) -> int:
        return sum(map(len, self._parts()))


class Subset(Dataset[T_co]):
    """The samples of ``dataset`` at ``indices`` (PyTorch: ``torch.utils.data.Subset``).

    A subclass that overrides ``__getitem__`` must override ``__getitems__`` as well, else NotImplementedError is
    raised.

    >>> from tensorgrad.utils.data import Subset
    >>> list(Subset('abcde', [4, 0]))
    ['e', 'a']
    """

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices
        cls = type(self)
        if cls.__getitem__ is not Subset.__getitem__ and cls.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f'{cls.__name__} overrides __getitem__ but not __getitems__. When subclassing Subset and overriding '
                '__getitem__, you must also override __getitems__ to ensure DataLoader works correctly with your '
                'custom logic. A simple implementation:\n\n'
                'def __getitems__(self, indices):\n    return [self[index] for index in indices]')

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        return getitems(self.dataset, [self.indices[index] for index in indices])

    def __len__(self) -> int:
        return len(self.indices)


def getitems(dataset: Any, indices: list) -> list:
    """Return the samples at ``indices``, with a single call of ``__getitems__`` if the dataset has it."""
    at_once = getattr(dataset, '__getitems__', None)
    return at_once(indices) if callable(at_once) else [dataset[index] for index in indices]


def random_split(dataset: Dataset[T_co], lengths: Sequence[int | float],
                 generator: Generator | None = tg.default_generator) -> list[Subset[T_co]]:
    """Split a dataset at random into subsets (PyTorch: ``torch.utils.data.random_split``).

    ``lengths`` are numbers of samples, or fractions that add up to 1; samples left by rounding down go to the subsets
    in turn. ValueError for lengths that do not add up to the length of the dataset, and for negative fractions.

    >>> import tensorgrad as torch
    >>> parts = torch.utils.data.random_split(range(10), [0.75, 0.25], torch.Generator().manual_seed(42))
    >>> [len(part) for part in parts]
    [8, 2]
    """
    if sum(lengths) <= 1 and math.isclose(sum(lengths), 1):
        lengths = lengths_of_fractions(len(dataset), lengths)
        for index, length in enumerate(lengths):
            if length == 0:
                warnings.warn(f'Length of split at index {index} is 0. This might result in an empty dataset.',
                              stacklevel=2)
    if sum(lengths) != len(dataset):
        raise ValueError('Sum of input lengths does not equal the length of the input dataset!')
    indices = permutation(sum(lengths), generator)
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, indices[end - length:end]) for end, length in zip(ends, lengths, strict=True)]


def lengths_of_fractions(total: int, fractions: Sequence[float]) -> list[int]:
    for index, fraction in enumerate(fractions):
        if fraction < 0 or fraction > 1:
            raise ValueError(f'Fraction at index {index} is not between 0 and 1')
    lengths = [math.floor(total * fraction) for fraction in fractions]
    for left in range(total - sum(lengths)):
        lengths[left % len(lengths)] += 1
    return lengths
