"""The iterators of a ``DataLoader``: one that fetches the batches itself, and one that has workers fetch them."""
from __future__ import annotations

import warnings
import weakref
from collections import deque
from itertools import cycle
from typing import Any

from ..sampler import draw_seed
from .channel import Failure
from .collate import pin_memory
from .fetch import _DatasetKind, make_fetcher
from .worker import Exhausted, Job, Task


class _BaseDataLoaderIter:
    """What both kinds share. The first number that an epoch draws from the generator is the workers' base seed."""

    def __init__(self, loader) -> None:
        self._loader_settings(loader)
        if loader.pin_memory and loader.pin_memory_device:
            warnings.warn('pin_memory_device is deprecated, the current accelerator will be used as the device,'
                          f'ignore pin_memory_device={loader.pin_memory_device!r}.', stacklevel=5)
        self._pin_memory = loader.pin_memory and can_pin_memory()
        self._sampler_iter = iter(loader._index_sampler)
        self._base_seed = draw_seed(loader.generator)

    def _loader_settings(self, loader) -> None:
        self._dataset = loader.dataset
        self._iterated = loader._dataset_kind == _DatasetKind.Iterable
        self._promised = loader._IterableDataset_len_called
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._num_yielded = 0

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __next__(self) -> Any:
        batch = self._next_batch()
        self._num_yielded += 1
        if self._iterated:
            self._check_length()
        return pin_memory(batch) if self._pin_memory else batch

    def _next_batch(self) -> Any:
        raise NotImplementedError('a subclass fetches the batches')

    def _check_length(self) -> None:
        if self._promised is not None and self._num_yielded > self._promised:
            warnings.warn(
                f'Length of IterableDataset {self._dataset} was reported to be {self._promised}(when accessing '
                f'len(dataloader)), but {self._num_yielded} samples have been fetched. ' + (
                    'For multiprocessing data-loading, this could be caused by not properly configuring the '
                    'IterableDataset replica at each worker.' if self._num_workers else ''), stacklevel=3)

    def __getstate__(self):
        raise NotImplementedError('{} cannot be pickled', type(self).__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Fetches each batch when it is asked for."""

    def __init__(self, loader) -> None:
        super().__init__(loader)
        if loader.timeout != 0:
            raise AssertionError('_SingleProcessDataLoaderIter requires timeout == 0')
        self._fetch = make_fetcher(loader._dataset_kind, loader.dataset, loader._auto_collation, loader.collate_fn,
                                   loader.drop_last)

    def _next_batch(self) -> Any:
        return self._fetch(next(self._sampler_iter))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Hands out tasks to workers, ``prefetch_factor`` for each ahead of time, and yields the batches in order.

    With ``in_order=False`` it yields whichever is done first.
    """

    def __init__(self, loader) -> None:
        from .pool import WorkerPool  # and with it multiprocessing, which nobody else needs
        super().__init__(loader)
        if loader.prefetch_factor <= 0:
            raise AssertionError('prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter')
        self._prefetch_factor = loader.prefetch_factor
        self._timeout = loader.timeout or None
        self._in_order = loader.in_order
        self._persistent = loader.persistent_workers
        self._pool = WorkerPool(
            Job(loader._dataset_kind, loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last,
                self._base_seed, loader.worker_init_fn, loader.num_workers), loader.multiprocessing_context)
        self._close = weakref.finalize(self, self._pool.close)
        self._epoch = 0
        self._start_epoch()

    def restart(self, loader) -> None:
        """Begin another epoch with the same workers."""
        self._loader_settings(loader)
        self._sampler_iter = iter(self._index_sampler)
        self._epoch += 1
        self._start_epoch()

    @property
    def alive(self) -> bool:
        """Are there workers?"""
        return bool(self._pool.processes)

    def _start_epoch(self) -> None:
        self._active = set(range(self._num_workers))  # those with more to come
        self._turns = cycle(range(self._num_workers))
        self._waiting: deque[int] = deque()  # who has been given a task, oldest first
        for _ in range(self._prefetch_factor * self._num_workers):
            self._submit()

    def _submit(self) -> None:
        """Give the next index to a worker, if there is an index and somebody to take it."""
        if not self._active:
            return
        try:
            index = next(self._sampler_iter)
        except StopIteration:
            return
        if self._in_order:
            worker = next(worker for worker in self._turns if worker in self._active)
        else:
            worker = min(self._active, key=self._waiting.count)
        self._pool.submit(worker, Task(self._epoch, index))
        self._waiting.append(worker)

    def _next_batch(self) -> Any:
        while self._waiting:
            worker, batch = self._receive()
            if isinstance(batch, Exhausted):
                self._active.discard(worker)
            self._submit()
            if isinstance(batch, Failure):
                batch.reraise()
            if not isinstance(batch, Exhausted):
                return batch
        if not self._persistent:
            self._close()
        raise StopIteration

    def _receive(self) -> tuple[int, Any]:
        wanted = [self._waiting[0]] if self._in_order else set(self._waiting)
        while True:
            try:
                worker, reply = self._pool.receive(wanted, self._timeout)
            except RuntimeError:
                if not self.alive:
                    self._waiting.clear()
                raise
            if reply.epoch == self._epoch:
                self._waiting.remove(worker)
                return worker, reply.batch


def can_pin_memory() -> bool:
    """Only memory for a GPU is worth pinning."""
    from .... import cuda
    if cuda.is_available():
        return True
    warnings.warn("'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't "
                  'be used.', stacklevel=5)
    return False
