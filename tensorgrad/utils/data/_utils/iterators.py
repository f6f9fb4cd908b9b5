"""Iterators of a ``DataLoader``: the first fetches batches itself, the second lets workers fetch them."""
from __future__ import annotations

import warnings
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

from ....core.mode import timed
from ..datapipes.datapipe import is_pipe
from ..sampler import draw_seed
from .fetch import fetches_plainly, make_fetcher
from .foreign import with_our_attributes
from .loader_state import places_of, plans
from .message_pipe import Failure
from .pin_memory import pin_memory
from .progress import Advance, Ledger, Progress, Source
from .rng_states import global_streams, marks, moved
from .worker import Exhausted, Job, Task


class _BaseDataLoaderIter:
    """Base of both iterators. The first number that an epoch draws from the generator is the workers' base seed."""

    _iterates = False  # True: this process iterates an iterable dataset

    def __init__(self, loader) -> None:
        self._loader_settings(loader)
        if loader.pin_memory and loader.pin_memory_device:
            warnings.warn('pin_memory_device is deprecated, the current accelerator will be used as the device,'
                          f'ignore pin_memory_device={loader.pin_memory_device!r}.', stacklevel=5)
        self._pin_memory = loader.pin_memory and can_pin_memory()
        kept = None if loader._resumed is None else loader._resumed.base_seed
        early = draw_seed(loader.generator) if kept is None and self._iterates else kept
        self._begin(loader)
        self._base_seed = self._progress.base_seed = draw_seed(loader.generator) if early is None else early

    def _loader_settings(self, loader) -> None:
        self._dataset = loader.dataset
        self._iterated = loader._iterable
        self._promised = loader._IterableDataset_len_called
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._num_yielded = 0

    def _begin(self, loader) -> None:
        """Start the order of an epoch, or continue that of a loaded state."""
        self._progress = Progress(loader, self._iterates)
        self._passed: list = []
        if loader._resumed is not None and loader._resumed.place is not None:
            self._advance, self._passed = loader._resumed.reach(loader, self._progress, self._source(loader))
            self._num_yielded = loader._resumed.handed_out
        else:
            self._advance = self._progress.begin(self._source(loader))

    def _source(self, loader) -> Source:
        """Return the source of indices."""
        return lambda: iter(loader._index_sampler).__next__

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __next__(self) -> Any:
        with timed('enumerate(DataLoader)#{}.__next__', self):
            return self._next()

    def _next(self) -> Any:
        try:
            batch = self._next_batch()
        except StopIteration:
            self._progress.finished = True
            raise
        self._num_yielded += 1
        if self._iterated:
            self._check_length()
        return pin_memory(batch) if self._pin_memory else batch

    def _next_batch(self) -> Any:
        raise NotImplementedError('a subclass fetches the batches')

    def close(self) -> None:
        """End the epoch: yield no more batches; the loader's state is then that between epochs."""
        self._advance = iter(()).__next__
        self._progress.finished = True

    def _check_length(self) -> None:
        if self._promised is not None and self._num_yielded > self._promised:
            warnings.warn(
                f'Length of IterableDataset {self._dataset} was reported to be {self._promised}(when accessing '
                f'len(dataloader)), but {self._num_yielded} samples have been fetched. ' + (
                    'For multiprocessing data-loading, this could be caused by not properly configuring the '
                    'IterableDataset replica at each worker.' if self._num_workers else ''), stacklevel=4)

    def __getstate__(self):
        raise NotImplementedError('{} cannot be pickled', type(self).__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Fetches each batch on request."""

    def __init__(self, loader) -> None:
        loader = with_our_attributes(loader)
        self._iterates = loader._iterable
        super().__init__(loader)
        if loader.timeout != 0:
            raise AssertionError('_SingleProcessDataLoaderIter requires timeout == 0')
        if not self._iterates:
            self._fetch = make_fetcher(*loader._how_to_fetch)
            self._plain = fetches_plainly(loader)  # samples that depend on no random numbers

    def _source(self, loader) -> Source:
        if not self._iterates:
            return super()._source(loader)
        progress = self._progress

        def start() -> Advance:
            indices, fetch = iter(loader._index_sampler), make_fetcher(*loader._how_to_fetch)

            def advance() -> Any:
                try:
                    return fetch(next(indices))
                finally:
                    progress.over = fetch.ended
            return advance
        return start

    def _next_batch(self) -> Any:
        progress = self._progress
        if progress.watching:
            return self._watched_batch(progress)
        item = self._advance()
        progress.taken += 1
        if self._iterates:
            return item
        progress.last = item
        return self._fetch(item)

    def _watched_batch(self, progress: Progress) -> Any:
        first = progress.taken == progress.floor == 0
        item = progress.take(self._advance)
        if self._iterates:
            return item
        progress.last = item
        if not first or self._plain:
            return self._fetch(item)
        streams = {**global_streams(), **progress.streams}
        before = marks(streams)
        try:
            return self._fetch(item)
        finally:
            progress.drew = bool(moved(before, marks(streams)))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Hands out tasks to workers, ``prefetch_factor`` for each ahead of time, and yields the batches in order.

    With ``in_order=False`` it yields batches as they are done.
    """

    def __init__(self, loader) -> None:
        from .worker_pool import WorkerPool  # imports multiprocessing, which other loaders do not need
        loader = with_our_attributes(loader)
        super().__init__(loader)
        if loader.prefetch_factor <= 0:
            raise AssertionError('prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter')
        self._prefetch_factor = loader.prefetch_factor
        self._timeout = loader.timeout or None
        self._in_order = loader.in_order
        self._persistent = loader.persistent_workers
        resumed = loader._resumed
        self._ledger = self._progress.ledger = (resumed.ledger(loader.num_workers) if resumed
                                                else Ledger(loader.num_workers))
        init_fn = loader.worker_init_fn
        if is_pipe(loader.dataset):
            from .pipes import in_worker
            init_fn = in_worker(init_fn)
        self._pool = WorkerPool(
            Job(*loader._how_to_fetch, self._base_seed, init_fn, loader.num_workers,
                plans(self._ledger, self._iterated) if resumed else None),
            loader.multiprocessing_context)
        self._workers = [*self._pool.processes]
        self._close = weakref.finalize(self, self._pool.close)
        self._epoch = 0
        self._start_epoch(resumed.waiting(loader.num_workers) if resumed else ())

    def restart(self, loader) -> None:
        """Begin another epoch with the present workers."""
        self._loader_settings(loader)
        self._begin(loader)
        self._progress.base_seed = self._base_seed
        self._epoch += 1
        self._ledger = self._progress.ledger = Ledger(self._num_workers, start=self._whereabouts())
        self._start_epoch()

    @property
    def alive(self) -> bool:
        """True if there are workers."""
        return bool(self._pool.processes)

    def state_of_workers(self) -> dict[str, Any] | None:
        """Return the workers' states between epochs, None unless they persist."""
        if not self.alive:
            return None
        return {'number': self._num_workers, 'base_seed': self._base_seed, 'start': places_of(self._whereabouts())}

    def close(self) -> None:
        """End the epoch: yield no more batches; the loader's state is then that between epochs."""
        super().close()
        while self._waiting and self.alive:  # let the workers' streams advance as in a full epoch
            self._receive()
        self._waiting.clear()
        if not self._persistent:
            self._close()

    def _whereabouts(self) -> list:
        """Ask the idle workers for their places."""
        workers = list(range(self._num_workers))
        for worker in workers:
            self._pool.submit(worker, Task(self._epoch, None, asks=True))
        reports: dict[int, Any] = {}
        while len(reports) < len(workers):
            worker, reply = self._pool.receive([worker for worker in workers if worker not in reports], self._timeout)
            if reply.epoch == self._epoch:
                if isinstance(reply.report, Failure):
                    reply.report.reraise()
                reports[worker] = 0, reply.report.streams, reply.report.dataset, False
        return [reports[worker] for worker in workers]

    @property
    def _waiting(self) -> deque[int]:
        return self._ledger.waiting

    def _start_epoch(self, waiting: Sequence[int] = ()) -> None:
        for worker, index in self._ledger.passed_over(self._passed, self._iterated,
                                                      next(iter(self._index_sampler)) if self._iterated else None):
            self._pool.submit(worker, Task(self._epoch, index, passed=True))
        self._passed = []
        for worker in waiting:
            self._submit(worker)
        for _ in range(self._prefetch_factor * self._num_workers - len(waiting)):
            self._submit()

    def _submit(self, worker: int | None = None) -> None:
        """Submit the next index to a worker, if there is an index and an active worker."""
        progress, ledger = self._progress, self._ledger
        if not ledger.active:
            return
        try:
            if progress.watching:
                index = progress.take(self._advance)
            else:
                index = self._advance()
                progress.taken += 1
        except StopIteration:
            progress.ended = True
            return
        worker = ledger.next_worker(self._in_order) if worker is None else worker
        self._pool.submit(worker, Task(self._epoch, index, progress.followed))
        ledger.waiting.append(worker)
        ledger.indices.append(index)

    def _next_batch(self) -> Any:
        while self._waiting:
            worker, batch = self._receive()
            if isinstance(batch, Exhausted):
                self._ledger.active.discard(worker)
            self._submit()
            if isinstance(batch, Failure):
                batch.reraise()
            if not isinstance(batch, Exhausted):
                return batch
        if not self._persistent:
            self._close()
        raise StopIteration

    def _receive(self) -> tuple[int, Any]:
        ledger = self._ledger
        wanted = [ledger.waiting[0]] if self._in_order else set(ledger.waiting)
        while True:
            try:
                worker, reply = self._pool.receive(wanted, self._timeout)
            except RuntimeError:
                if not self.alive:
                    ledger.waiting.clear()
                raise
            if reply.epoch == self._epoch:
                ledger.waiting.remove(worker)
                self._progress.last = ledger.indices.popleft()
                self._progress.drew |= ledger.note(worker, reply.report)
                return worker, reply.batch


def can_pin_memory() -> bool:
    """Return True if there is a GPU, without which pinning is useless."""
    from .... import cuda
    if cuda.is_available():
        return True
    warnings.warn("'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't "
                  'be used.', stacklevel=5)
    return False
