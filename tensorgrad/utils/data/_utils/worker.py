"""What runs in a worker process of a ``DataLoader``.

A worker gets tasks from one pipe and writes a reply to each, in order, to another. Two threads keep the pipes moving: a
receiver, so that the main process never waits when it sends a task, and a sender, so that the worker goes on to its
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
from .channel import Failure, pack, read, write
from .fetch import _DatasetKind, make_fetcher
from .progress import stateful
from .streams import global_streams, go_to, marks, moved, own_streams


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """Who a worker is: its number among how many, the seed of its generators, its copy of the dataset."""
    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = 'multiprocessing'


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker process, its ``id``, ``num_workers``, ``seed`` and ``dataset``; None in the main process.

    (PyTorch: ``torch.utils.data.get_worker_info``.)

    >>> from tensorgrad.utils.data import get_worker_info
    >>> get_worker_info() is None
    True
    """
    return _worker_info


@dataclass(frozen=True)
class Job:
    """What all workers of a loader are told at the start."""
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
    """Where a worker begins that goes on for another one: its streams and its dataset's state before it starts the dataset, its streams after that, and whether
    the dataset has come to its end."""
    start: Any
    dataset: Any
    streams: Any
    ended: bool


@dataclass(frozen=True)
class Task:
    """Fetch the batch of an index. A new epoch starts the dataset anew, and makes tasks of earlier ones void.

    With `followed`, a report comes along. A task that is `passed` over gets no reply; one that `asks` is for a report only.
    """
    epoch: int
    index: Any
    followed: bool = False
    passed: bool = False
    asks: bool = False


@dataclass(frozen=True)
class Reply:
    """A batch, or what came instead: a Failure, or Exhausted."""
    epoch: int
    batch: Any
    report: Report | None = None


@dataclass(frozen=True)
class Report:
    """Whether a worker drew random numbers; if it is followed, where its streams are (None: where they were), its dataset's state, and whether that has come to
    its end."""
    drew: bool
    followed: bool = False
    streams: Any = None
    dataset: Any = None
    ended: bool = False


class Exhausted:
    """This worker's part of an iterable dataset has come to its end."""


def run_worker(job: Job, number: int, tasks, replies, lane) -> None:
    """The life of a worker; ``tasks`` and ``replies`` are ends of pipes."""
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
        pass  # the main process has got it as well


class Inbox:
    """The tasks that are still of interest, received in the background, until the main process says None."""

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
            os._exit(1)  # the main process is gone, and nobody will miss what this one is doing
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
        pass  # nobody wants to read any more; the receiver learns why


class Worker:
    """Fetches batches, whatever happens."""

    def __init__(self, job: Job, number: int) -> None:
        self.job, self.number = job, number
        self.epoch, self.new = None, False
        self.plan = job.plans[number] if job.plans else None
        self.streams: dict = {}
        self.setup = self.attempt(self.set_up)
        self.seeded = self.seen = marks(self.streams)

    def attempt(self, function: Callable, *args):
        """The result of a call, or a Failure."""
        try:
            return function(*args)
        except Exception:
            return Failure(f'in DataLoader worker process {self.number}')

    def set_up(self) -> None:
        global _worker_info
        job, number = self.job, self.number
        tg.set_num_threads(1)  # the processors are taken by the other workers
        seed = job.base_seed + number
        random.seed(seed)
        tg.manual_seed(seed)
        low, high = job.base_seed & 0xffffffff, job.base_seed >> 32
        np.random.seed(np.random.SeedSequence([number, low, high, 0]).generate_state(4))
        _worker_info = WorkerInfo(number, job.num_workers, seed, job.dataset)
        self.streams = {**global_streams(), **own_streams(dataset=job.dataset)}
        if job.init_fn is not None:
            job.init_fn(number)

    def reply(self, task: Task) -> list:
        """The reply to a task, packed."""
        if task.asks:
            return pack(Reply(task.epoch, None, self.attempt(self.whereabouts)))
        batch = self.batch(task)
        report = self.attempt(self.report, task.followed) if self.new or task.followed else None
        self.new = False
        packed = self.attempt(pack, Reply(task.epoch, batch, report))
        if isinstance(packed, Failure):  # something in the batch cannot be pickled, or the type of an exception
            failure = batch if isinstance(batch, Failure) else packed
            failure.kind = RuntimeError
            packed = pack(Reply(task.epoch, failure))
        return packed

    def pass_over(self, task: Task) -> None:
        """Do a task again that another worker has done, to be where it was."""
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
        """What a task has changed."""
        now = marks(self.streams)
        drew = bool(moved(self.seen, now))
        if not followed:
            return Report(drew)
        self.seen = now
        return Report(drew, True, now if drew else None, self.dataset_state(), getattr(self.fetch, 'ended', False))

    def whereabouts(self) -> Report:
        """Where the streams are, unless they have not moved since they were seeded."""
        self.seen = marks(self.streams)
        drew = bool(moved(self.seeded, self.seen))
        return Report(drew, True, self.seen if drew else None, self.dataset_state())

    def dataset_state(self) -> Any:
        return self.job.dataset.state_dict() if stateful(self.job.dataset) else None
