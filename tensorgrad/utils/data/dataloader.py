"""The loader: batches of a dataset, in order or shuffled, by this process or by workers."""
from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ._utils.collate import default_collate, default_convert
from ._utils.fetch import _DatasetKind
from ._utils.iterators import _BaseDataLoaderIter, _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter
from ._utils.loader_state import Resumed, state_of
from ._utils.worker import get_worker_info
from .datapipes.datapipe import IterDataPipe, is_pipe
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

if TYPE_CHECKING:
    from ...generator import Generator

__all__ = ['DataLoader', 'default_collate', 'default_convert', 'get_worker_info']

T_co = TypeVar('T_co', covariant=True)

FIXED = frozenset(('batch_size', 'batch_sampler', 'sampler', 'drop_last', 'dataset', 'persistent_workers'))


class _InfiniteConstantSampler(Sampler):
    """The sampler of an iterable dataset, which needs no indices."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class _Indexed(Protocol[T_co]):
    """Whatever can serve as a data set: a list, a tensor, a range."""

    def __getitem__(self, index: int, /) -> T_co: ...

    def __len__(self) -> int: ...


class DataLoader(Generic[T_co]):
    """Iterates over the batches of a dataset (PyTorch: ``torch.utils.data.DataLoader``).

    ``batch_size``, ``shuffle``, ``drop_last``: how many samples to a batch (None: samples instead of batches), in which
    order, and whether to leave out a last batch that is not full. Instead of ``shuffle`` a ``sampler`` gives the order
    of the indices, and instead of all three a ``batch_sampler`` gives lists of them. ``generator`` is the source of
    randomness, by default the global one; for the same seed, the order is PyTorch's.
    ``collate_fn`` makes a batch of a list of samples (``default_collate``), or with ``batch_size=None`` is applied to
    each sample (``default_convert``).

    With ``num_workers`` > 0 that many processes fetch the batches, ``prefetch_factor`` (2) for each ahead of time,
    started by ``multiprocessing_context`` (``'fork'``, ``'spawn'``, …) when an iteration starts, and kept for the next
    one with ``persistent_workers``. Batches come in order unless ``in_order=False``. Each worker calls
    ``worker_init_fn(number)`` first. RuntimeError if a worker dies or takes longer than ``timeout`` seconds; an
    exception in a worker is raised here.
    ``pin_memory`` puts batches into page-locked memory.

    ``state_dict()`` saves the newest iterator's place in its epoch, and ``load_state_dict`` lets a loader of the same
    kind resume there, with shuffling and workers as well (in torchdata: ``StatefulDataLoader``). ``iterator.close()``
    ends an epoch early.

    ValueError for options that contradict each other.

    >>> import tensorgrad as torch
    >>> loader = torch.utils.data.DataLoader(range(5), batch_size=2, shuffle=True,
    ...                                      generator=torch.Generator().manual_seed(0))
    >>> [batch.shape for batch in loader]
    [torch.Size([2]), torch.Size([2]), torch.Size([1])]
    """

    __initialized = False

    def __init__(self, dataset: Dataset[T_co] | _Indexed[T_co], batch_size: int | None = 1, shuffle: bool | None = None,
                 sampler: Sampler | Iterable | None = None, batch_sampler: Sampler | Iterable | None = None,
                 num_workers: int = 0, collate_fn: Callable | None = None, pin_memory: bool = False,
                 drop_last: bool = False, timeout: float = 0, worker_init_fn: Callable[[int], None] | None = None,
                 multiprocessing_context: Any = None, generator: Generator | None = None, *,
                 prefetch_factor: int | None = None, persistent_workers: bool = False, pin_memory_device: str = '',
                 in_order: bool = True) -> None:
        check_worker_options(num_workers, timeout, prefetch_factor, persistent_workers)
        iterable = isinstance(dataset, IterableDataset)
        if isinstance(dataset, IterDataPipe):
            from .graph_settings import apply_shuffle_settings
            dataset, shuffle = apply_shuffle_settings(dataset, shuffle), None       # of the pipes
        if iterable:
            check_iterable_options(shuffle, sampler, batch_sampler)
        check_batch_options(batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self._dataset_kind = _DatasetKind.Iterable if iterable else _DatasetKind.Map
        if sampler is None:
            sampler = _InfiniteConstantSampler() if iterable else (
                RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset))
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        elif batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self.persistent_workers = persistent_workers
        self._IterableDataset_len_called = None
        self._iterator = None
        self._progress = None       # the progress of the newest iteration
        self._resumed = None        # the state that the next iteration resumes from
        self._followed = False      # True once the state was requested
        self.__initialized = True
        self.check_worker_number_rationality()

    @property
    def _iterable(self) -> bool:
        return self._dataset_kind == _DatasetKind.Iterable

    @property
    def _how_to_fetch(self) -> tuple:
        return self._dataset_kind, self.dataset, self._auto_collation, self.collate_fn, self.drop_last

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Iterable:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__initialized and name in FIXED:
            raise ValueError(f'{name} attribute should not be set after {type(self).__name__} is initialized')
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        resumed = self._resumed
        # a copy does not share iterators
        return {**self.__dict__, '_progress': None, '_kept': resumed and resumed.state}

    @property
    def _resumed(self) -> Resumed | None:
        """The state that the next iteration resumes from.

        A copy has it as plain data until it is used: `__setstate__` would be found by wrappers that look for all
        attributes in their loader, and called with the wrapper's.
        """
        if isinstance(self._kept, dict):
            self.load_state_dict(self._kept)
        return self._kept

    @_resumed.setter
    def _resumed(self, resumed: Resumed | None) -> None:
        self._kept: Any = resumed

    @property
    def multiprocessing_context(self) -> Any:
        """The ``multiprocessing`` context that starts workers; None for the default."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            context = find_context(context, self.num_workers)
        self.__multiprocessing_context = context

    def __iter__(self) -> Iterator[Any]:
        iterator = self._iterator
        if iterator is not None and iterator.alive and self._resumed is None and not is_pipe(self.dataset):
            iterator.restart(self)
        else:
            iterator = self._get_iterator()
            if self.persistent_workers:
                self._iterator = iterator
        self._progress, self._resumed = iterator._progress, None
        return iterator

    def state_dict(self) -> dict[str, Any]:
        """Return the newest iterator's place in its epoch, as plain data (numbers, strings, tensors in containers) that
        any file can hold.

        Call it at any time: before the first batch, after a batch, between epochs. If samples depend on random numbers
        in workers, the loader tracks these from the first call on; states of epochs that began earlier are exact as
        well, but resuming from them repeats their batches. RuntimeError in the middle of an epoch with
        ``in_order=False``.

        >>> import tensorgrad as torch
        >>> loader = torch.utils.data.DataLoader(range(6), batch_size=2, shuffle=True)
        >>> first = next(batches := iter(loader))
        >>> state = loader.state_dict()
        >>> loader.load_state_dict(state)
        >>> [a.equal(b) for a, b in zip(batches, loader, strict=True)]
        [True, True]
        """
        self._followed = True
        if self._resumed is not None:
            return self._resumed.state
        if self._progress is not None:
            self._progress.follow()
        return state_of(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Let the next iterator resume at the state, with batches that are equal to the bit.

        A state taken in an epoch resumes after the last batch that was yielded, even if it was the last of the epoch,
        or the loop was left then; a state taken between epochs, after the end of an iterator or its ``close()``, begins
        the next epoch. Yielded batches are not fetched again. The generators of the loader, its samplers and its
        dataset are restored; global streams (Python's ``random``, NumPy's and the default generator) are not, since
        they do not belong to the loader. Samplers and datasets with methods ``state_dict`` and ``load_state_dict``
        restore their places themselves.

        ValueError names the differences between the state's loader and this one; then nothing has changed.
        """
        resumed = self.check_state_dict(state_dict)
        resumed.take_over(self)
        if self._iterator is not None:
            self._iterator._close()
            self._iterator = None
        self._resumed, self._followed = resumed, True

    def check_state_dict(self, state_dict: dict[str, Any]) -> Resumed:
        """Raise the ValueError that ``load_state_dict`` would raise, and change nothing."""
        return Resumed(self, state_dict)

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if is_pipe(self.dataset):
            from ._utils.pipes import prepare
            prepare(self.dataset, self.generator, self.num_workers)
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else math.ceil(length / self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn if there are more workers than processors."""
        available = len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()
        if self.num_workers > (available or 0):
            warnings.warn(
                f'This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number '
                f'of worker in current system is {available}, which is smaller than what this DataLoader is going to '
                'create. Please be aware that excessive worker creation might get DataLoader running slow or even '
                'freeze, lower the worker number to avoid potential slowness/freeze if necessary.', stacklevel=3)


def check_worker_options(num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool) -> None:
    if num_workers < 0:
        raise ValueError('num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.')
    if timeout < 0:
        raise ValueError('timeout option should be non-negative')
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError('prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to '
                         'enable multiprocessing, otherwise set prefetch_factor to None.')
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError('prefetch_factor option should be non-negative')
    if persistent and num_workers == 0:
        raise ValueError('persistent_workers option needs num_workers > 0')


def check_iterable_options(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    for name, value, unspecified in (('shuffle', shuffle, (False, None)), ('sampler', sampler, (None,)),
                                     ('batch_sampler', batch_sampler, (None,))):
        if not any(value is default for default in unspecified):
            raise ValueError(f'DataLoader with IterableDataset: expected unspecified {name} option, '
                             f'but got {name}={value}')


def check_batch_options(batch_size: int | None, shuffle: Any, sampler: Any, batch_sampler: Any,
                        drop_last: bool) -> None:
    if sampler is not None and shuffle:
        raise ValueError('sampler option is mutually exclusive with shuffle')
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError('batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and '
                             'drop_last')
    elif batch_size is None and drop_last:
        raise ValueError('batch_size=None option disables auto-batching and is mutually exclusive with drop_last')


def find_context(context: Any, num_workers: int) -> Any:
    """Return the ``multiprocessing`` context of this name, or the given context."""
    import multiprocessing
    if num_workers == 0:
        raise ValueError('multiprocessing_context can only be used with multi-process loading (num_workers > 0), but '
                         f'got num_workers={num_workers}')
    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError('multiprocessing_context option should specify a valid start method in '
                             f'{methods!r}, but got multiprocessing_context={context!r}')
        context = multiprocessing.get_context(context)
    if not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError('multiprocessing_context option should be a valid context object or a string specifying the '
                        f'start method, but got multiprocessing_context={context}')
    return context
