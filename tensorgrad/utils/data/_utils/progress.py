"""The progress of an iteration of a ``DataLoader``, and how another iteration resumes there.

A place in an epoch is the number of items taken from the source, which is the sampler, or an iterable dataset that this
process iterates. To resume, the source is restarted with its random streams (generators) in their initial states, and
that many items are skipped. If the source draws random numbers after its first item, the streams are restored at those
items as well.
"""
from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from .... import api as tg
from ..distributed import DistributedSampler
from ..sampler import BatchSampler, RandomSampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler
from .message_pipe import Failure
from .rng_states import Stream, global_streams, go_to, marks, moved, own_streams, packed

Advance = Callable[[], Any]         # returns the next item of a source
Source = Callable[[], Advance]      # starts a source
START = -1      # the place before there is a source
FIXED, AT_ONCE, LAZY = range(3)     # when a source draws random numbers: never, with its first item, or at any time


def stateful(thing: Any) -> bool:
    """Return True if an object has `state_dict` and `load_state_dict`; a class has no state."""
    methods = (getattr(thing, name, None) for name in ('state_dict', 'load_state_dict'))
    return not isinstance(thing, type) and all(map(callable, methods))


def samplers(loader) -> Iterator[Any]:
    """Yield the index sampler of a loader, and the samplers that it wraps."""
    sampler = loader._index_sampler
    while sampler is not None:
        yield sampler
        sampler = getattr(sampler, 'sampler', None)


def stateful_sampler(loader) -> Any:
    """Return the sampler of a loader that saves its own state; None if there is none."""
    return next(filter(stateful, samplers(loader)), None)


def draws(sampler) -> int:
    """Return FIXED, AT_ONCE or LAZY: when a sampler draws random numbers."""
    kind = type(sampler)
    if kind is BatchSampler:
        return draws(sampler.sampler)
    if kind in (SequentialSampler, DistributedSampler, list, tuple, range, str, tg.Tensor, np.ndarray):
        return FIXED
    if kind is RandomSampler:
        whole = not sampler.replacement and sampler.num_samples <= len(sampler.data_source)
        return AT_ONCE if sampler.generator is None or whole else LAZY
    return AT_ONCE if kind in (SubsetRandomSampler, WeightedRandomSampler) else LAZY


def loader_streams(loader) -> dict[str, Stream]:
    """Return the loader's own streams: its generator, and those of its samplers and its dataset."""
    return own_streams(generator=loader.generator, sampler=loader.sampler, batch_sampler=loader.batch_sampler,
                       dataset=loader.dataset)


def with_epoch(loader) -> Any:
    """Return the sampler of a loader that has `set_epoch` and `epoch`; None if there is none."""
    return next((s for s in samplers(loader) if callable(getattr(s, 'set_epoch', None))
                 and type(getattr(s, 'epoch', None)) is int), None)


def fingerprint(item: Any) -> int | None:
    """Return a checksum of an index or a list of indices; None unless they are ints or strings."""
    plain = set(map(type, item)) if type(item) in (list, tuple) else {type(item)}
    return zlib.crc32(repr(item).encode()) if plain <= {int, str} else None


class Progress:
    """The place of an iteration in its epoch.

    The object holds no reference to the source, because the loader outlives the iterator.
    """

    __slots__ = ('followed', 'complete', 'watching', 'when', 'iterated', 'streams', 'draws', 'plain', 'shared', 'taken',
                 'floor', 'ended', 'over', 'last', 'drew', 'finished', 'base_seed', 'epoch', 'ledger')

    def __init__(self, loader, iterated: bool) -> None:
        # is the state wanted, and has it been since the first item?
        self.followed = self.complete = loader._followed
        self.iterated = iterated
        self.when = self._when(loader)
        self.streams = {} if self.when == FIXED else own_streams_and(global_streams(), loader)
        if self.when == AT_ONCE:
            self.streams = {name: stream for name, stream in self.streams.items() if name not in ('python', 'numpy')}
        self.draws: list[tuple[int, dict]] = []     # (place, the earlier states of the streams that the item advanced)
        self.plain: list[tuple[int, dict]] = []     # `draws` as plain data, converted on request
        self.shared: dict = {}
        self.taken = self.floor = 0         # items taken; items that the source yielded before, if it was ahead
        self.ended = False                  # is the source exhausted?
        self.last = None                    # the previous item
        self.over = False                   # is the dataset that this process iterates exhausted?
        self.drew = False                   # do samples depend on random numbers?
        self.watching = True                # compare the streams around the next item?
        self.finished = False
        self.base_seed = 0
        self.epoch = getattr(with_epoch(loader), 'epoch', None)
        self.ledger: Ledger | None = None

    def _when(self, loader) -> int:
        if loader._iterable:
            return LAZY if self.iterated and not stateful(loader.dataset) else FIXED
        return FIXED if stateful_sampler(loader) is not None else draws(loader._index_sampler)

    def begin(self, source: Source) -> Advance:
        """Start a source, and return the function that returns its items."""
        self.draws.append((START, marks(self.streams)))
        return source()

    def follow(self) -> None:
        """Record from now on what a state needs."""
        if not self.followed:
            self.followed, self.complete = True, self.taken <= 1
            self.watching = self.watching or self.when == LAZY

    def take(self, advance: Advance) -> Any:
        """Return the next item, and record the streams that it advances."""
        before = marks(self.streams)
        try:
            item = advance()
        except StopIteration:
            self.ended = True
            raise
        finally:
            if self.taken == 0 and not self.iterated:
                self.draws.append((0, before))
            elif self.taken >= self.floor:        # else a repeated item, recorded before
                change = moved(before, marks(self.streams))
                self.drew |= self.iterated and bool(change)
                if change:
                    self.draws.append((self.taken, change))
        self.watching = self.followed and self.when == LAZY
        self.taken += 1
        return item

    def resume(self, source: Source, place: int, asked: int, expected: int | None) -> tuple[Advance, list]:
        """Start a source and skip to a place; return the function that returns the following items, and the skipped
        items.

        The first following items are those that the source had been `asked` for beyond the place. The streams keep
        their present states. RuntimeError if the source does not repeat its items.
        """
        now, before, items = marks(self.streams), dict(self.draws), []
        try:
            go_to(self.streams, before.get(START, {}))
            advance = source()
            for number in range(asked):
                go_to(self.streams, before.get(number, {}))
                try:
                    items.append(advance())
                except StopIteration:
                    self.ended = True
                    break
        finally:
            go_to(self.streams, now)
        found = fingerprint(items[place - 1]) if 0 < place <= len(items) and not self.iterated else expected
        if len(items) < place or (expected is not None and found != expected):
            raise RuntimeError(f'the {"dataset" if self.iterated else "sampler"} of this DataLoader does not give what '
                               'it gave when the state was taken. Is it the same one, of the same seed? If it draws '
                               'random numbers later than with its first item, call state_dict() before the first '
                               'batch, or let it have state_dict() and load_state_dict()')
        self.last = items[place - 1] if place and not self.iterated else None
        return self.go_on(advance, items[place:], place, asked), items[:place]

    def go_on(self, advance: Advance, ahead: list, place: int, asked: int) -> Advance:
        """Return the function that returns the following items of a source at its place, after the items it yielded
        ahead of time."""
        self.taken, self.floor = place, asked
        self.watching = not place or (self.followed and self.when == LAZY)
        return chain(ahead, iter(advance, object())).__next__

    @property
    def consumed(self) -> int:
        """The number of items whose batches have been yielded."""
        return self.taken - len(self.ledger.waiting) if self.ledger else self.taken

    @property
    def asked(self) -> int:
        """The number of items that the source has been asked for."""
        return max(self.floor, self.taken + self.ended)

    def plain_draws(self) -> list:
        """Return the places at which the source drew random numbers, and the states of the streams, as plain data."""
        for place, where in self.draws[len(self.plain):]:
            self.plain.append((place, packed(where, self.shared)))
            self.shared = dict(list(self.shared.items())[-8:])      # a generator's words, which many draws share
        return list(self.plain)


def own_streams_and(others: dict[str, Stream], loader) -> dict[str, Stream]:
    return {**others, **loader_streams(loader)}


class Ledger:
    """The tasks of the workers in an epoch, submitted and done.

    A worker's place is (number of tasks done, streams, state of its dataset, True if the dataset is exhausted); None
    for streams in their states at the start, or as the worker's seed sets them.
    """

    __slots__ = ('number', 'first', 'turn', 'active', 'waiting', 'indices', 'done', 'start', 'known')

    def __init__(self, number: int, first: int = 0, start: list | None = None) -> None:
        self.number, self.first, self.turn = number, first, 0
        self.active = set(range(number))            # workers whose dataset is not exhausted
        self.waiting: deque[int] = deque()          # the worker of each pending task, oldest first
        self.indices: deque = deque()               # the index of each pending task
        self.done = [0] * number
        self.start = start or [(0, None, None, False)] * number
        self.known = [(0, None, dataset, False) for _, _, dataset, _ in self.start]

    def next_worker(self, in_order: bool) -> int:
        """Return the worker whose turn it is, or with `in_order=False` the one with the fewest pending tasks."""
        if not in_order:
            return min(self.active, key=self.waiting.count)
        while self.turn not in self.active:
            self.turn = (self.turn + 1) % self.number
        worker, self.turn = self.turn, (self.turn + 1) % self.number
        return worker

    def note(self, worker: int, report: Any) -> bool:
        """Record that a worker has done a task; return True if the task drew random numbers."""
        self.done[worker] += 1
        if report is None:
            return False
        if isinstance(report, Failure):
            report.reraise()
        if report.followed:
            streams = self.known[worker][1] if report.streams is None else report.streams
            self.known[worker] = self.done[worker], streams, report.dataset, report.ended
        return report.drew

    def passed_over(self, items: list, iterated: bool, sample: Any) -> Iterator[tuple[int, Any]]:
        """Yield (worker, index) of the tasks to repeat, because their effects on the worker's streams and dataset
        were not reported."""
        if iterated:
            for worker, (done, (known, _, dataset, _)) in enumerate(zip(self.done, self.known, strict=True)):
                for _ in range(done if dataset is None else done - known):
                    yield worker, sample
            return
        done = [0] * self.number
        for place, index in enumerate(items[self.first:], self.first):
            worker = (place - self.first) % self.number
            done[worker] += 1
            if done[worker] > self.known[worker][0]:
                yield worker, index
