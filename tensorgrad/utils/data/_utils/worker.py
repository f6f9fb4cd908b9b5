"""Worker processes of a ``DataLoader``.

A worker reads tasks from a pipe and writes a reply to each, in order, to another. Two threads serve the pipes: a
receiver, so that the main process never blocks when it sends a task, and a sender, so that the worker proceeds to its
next batch while the last one waits to be read.
"""
from __future__ import annotations

import os
import queue
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .... import api as tg
from .fetch import _DatasetKind, make_fetcher
from .message_pipe import Failure, pack, read, write
from .progress import stateful
from .rng_states import global_streams, go_to, marks, moved, own_streams


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """The identity of a worker: its number, the number of workers, the seed of its generators, its copy of the
    dataset.
    """
    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = 'multiprocessing'


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return the ``id``, ``num_workers``, ``seed`` and ``dataset`` of a worker process; None in the main process.

    (PyTorch: ``torch.utils.data.get_worker_info``.)

    >>> from tensorgrad.utils.data import get_worker_info
    >>> get_worker_info() is None
    True
    """
    return _worker_info


@dataclass(frozen=True)
class Job:
    """The settings that all workers of a loader receive at the start."""
    kind: int
    dataset: Any
    auto_collation: bool
    collate_fn: Callable
    drop_last: bool
    base_seed: int
    init_fn: Callable | None
    num_workers: int
    plans: list[Plan] | None = None


@dataclass(frozen=True)
class Plan:
    """The start of a worker that continues for another: its streams and its dataset's state before it starts the
    dataset, its streams after that, and True if the dataset is exhausted."""
    start: Any
    dataset: Any
    streams: Any
    ended: bool


@dataclass(frozen=True)
class Task:
    """A request for the batch of an index. A new epoch restarts the dataset, and cancels tasks of earlier epochs.

    `followed`: the reply has a report. `passed`: no reply, the task only advances the worker. `asks`: the reply has a
    report only.
    """
    epoch: int
    index: Any
    followed: bool = False
    passed: bool = False
    asks: bool = False


@dataclass(frozen=True)
class Reply:
    """A batch, or a Failure or Exhausted in its place."""
    epoch: int
    batch: Any
    report: Report | None = None


@dataclass(frozen=True)
class Report:
    """The effects of a task: True if it drew random numbers; if followed, the worker's streams (None: unchanged),
    its dataset's state, and True if the dataset is exhausted."""
    drew: bool
    followed: bool = False
    streams: Any = None
    dataset: Any = None
    ended: bool = False


class Exhausted:
    """Marks the end of this worker's part of an iterable dataset."""


def run_worker(job: Job, number: int, tasks, replies, lane) -> None:
    """Run a worker until the main process ends it; ``tasks`` and ``replies`` are ends of pipes."""
    try:
        inbox, outbox = Inbox(tasks), queue.SimpleQueue()
        threading.Thread(target=send, args=(outbox, replies, lane), daemon=True).start()
        worker = Worker(job, number)
        for task in inbox:
            if task.passed:
                worker.pass_over(task)
            else:
                outbox.put(worker.reply(task))
    except KeyboardInterrupt:
        pass  # the main process receives Ctrl-C as well


class Inbox:
    """Iterates over tasks of the newest epoch, received by a thread, until the main process sends None."""

    def __init__(self, pipe) -> None:
        self._tasks: queue.SimpleQueue = queue.SimpleQueue()
        self._epoch = 0
        self._stopped = False
        threading.Thread(target=self._receive, args=(pipe,), daemon=True).start()

    def _receive(self, pipe) -> None:
        try:
            while (task := read(pipe)) is not None:
                self._epoch = task.epoch
                self._tasks.put(task)
        except (EOFError, OSError):
            os._exit(1)  # the main process has ended: nobody needs this one
        self._stopped = True
        self._tasks.put(None)

    def __iter__(self) -> Iterator[Task]:
        while (task := self._tasks.get()) is not None and not self._stopped:
            if task.epoch == self._epoch:
                yield task


def send(outbox: queue.SimpleQueue, pipe, lane) -> None:
    try:
        while True:
            write(pipe, outbox.get(), lane)
    except (EOFError, OSError):
        pass  # the reader has closed the pipe; the receiver handles that


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Return the words that seed NumPy's global stream in a worker: unlike those of other workers and streams."""
    words = [worker_id, base_seed & 0xffffffff, base_seed >> 32, 0]
    return np.random.SeedSequence(words).generate_state(4).tolist()


class Worker:
    """Fetches batches; turns errors into Failures."""

    def __init__(self, job: Job, number: int) -> None:
        self.job, self.number = job, number
        self.epoch, self.new = None, False
        self.plan = job.plans[number] if job.plans else None
        self.streams: dict = {}
        self.setup = self.attempt(self.set_up)
        self.seeded = self.seen = marks(self.streams)

    def attempt(self, function: Callable, *args):
        """Return the result of a call, or a Failure if it raises."""
        try:
            return function(*args)
        except Exception:
            return Failure(f'in DataLoader worker process {self.number}')

    def set_up(self) -> None:
        global _worker_info
        job, number = self.job, self.number
        tg.set_num_threads(1)  # the other workers use the other processors
        seed = job.base_seed + number
        random.seed(seed)
        tg.manual_seed(seed)
        np.random.seed(_generate_state(job.base_seed, number))
        _worker_info = WorkerInfo(number, job.num_workers, seed, job.dataset)
        self.streams = {**global_streams(), **own_streams(dataset=job.dataset)}
        if job.init_fn is not None:
            job.init_fn(number)

    def reply(self, task: Task) -> list:
        """Return the packed reply to a task."""
        if task.asks:
            return pack(Reply(task.epoch, None, self.attempt(self.whereabouts)))
        batch = self.batch(task)
        report = self.attempt(self.report, task.followed) if self.new or task.followed else None
        self.new = False
        packed = self.attempt(pack, Reply(task.epoch, batch, report))
        if isinstance(packed, Failure):  # the batch, or the type of an exception, cannot be pickled
            failure = batch if isinstance(batch, Failure) else packed
            failure.kind = RuntimeError
            packed = pack(Reply(task.epoch, failure))
        return packed

    def pass_over(self, task: Task) -> None:
        """Repeat a task that another worker has done, to reach its state."""
        self.batch(task)

    def batch(self, task: Task) -> Any:
        if task.epoch != self.epoch:
            self.epoch, self.new = task.epoch, True
            self.fetch = self.setup or self.attempt(self.start_epoch)
        return self.fetch if isinstance(self.fetch, Failure) else self.attempt(self.fetch_batch, task.index)

    def start_epoch(self) -> Callable:
        job, plan, self.plan = self.job, self.plan, None
        if plan is not None:
            go_to(self.streams, plan.start or {})
            if plan.dataset is not None:
                job.dataset.load_state_dict(plan.dataset)
        self.seen = marks(self.streams)
        fetch = make_fetcher(job.kind, job.dataset, job.auto_collation, job.collate_fn, job.drop_last)
        if plan is not None and plan.streams is not None:
            go_to(self.streams, plan.streams)
            self.seen = plan.streams
        if plan is not None and plan.ended:
            fetch.ended = True
        return fetch

    def fetch_batch(self, index):
        try:
            return self.fetch(index)
        except StopIteration:
            if self.job.kind == _DatasetKind.Iterable:
                return Exhausted()
            raise

    def report(self, followed: bool) -> Report:
        """Return the effects of a task."""
        now = marks(self.streams)
        drew = bool(moved(self.seen, now))
        if not followed:
            return Report(drew)
        self.seen = now
        return Report(drew, True, now if drew else None, self.dataset_state(), getattr(self.fetch, 'ended', False))

    def whereabouts(self) -> Report:
        """Return a report with the streams, None if they have not advanced since they were seeded."""
        self.seen = marks(self.streams)
        drew = bool(moved(self.seeded, self.seen))
        return Report(drew, True, self.seen if drew else None, self.dataset_state())

    def dataset_state(self) -> Any:
        return self.job.dataset.state_dict() if stateful(self.job.dataset) else None
