"""How far an iteration of a ``DataLoader`` has come, and how another one gets there.

A place in an epoch is a number: how many items have been taken from the source, which is the sampler, or an iterable dataset that this process iterates.
To get there again, the source is started anew with the streams of random numbers where they were, and as many items are passed over. Items that a
source draws later than at its first are drawn again with the streams where they were then.
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
from .channel import Failure
from .streams import Stream, global_streams, go_to, marks, moved, own_streams, packed

Advance = Callable[[], Any]         # returns the next item of a source
Source = Callable[[], Advance]      # starts it
START = -1      # the place before there is a source
FIXED, AT_ONCE, LAZY = range(3)     # when a source draws random numbers: never, with its first item, or at any time


def stateful(thing: Any) -> bool:
    """Does it tell and take over its state itself?"""
    return callable(getattr(thing, 'state_dict', None)) and callable(getattr(thing, 'load_state_dict', None))


def samplers(loader) -> Iterator[Any]:
    """What gives the order of a loader, and what that one has it from."""
    sampler = loader._index_sampler
    while sampler is not None:
        yield sampler
        sampler = getattr(sampler, 'sampler', None)


def stateful_sampler(loader) -> Any:
    """The sampler of a loader that keeps its place itself; None if there is none."""
    return next(filter(stateful, samplers(loader)), None)


def draws(sampler) -> int:
    """When a sampler draws."""
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
    """The streams that a loader has to itself: its generator, and what its samplers and its dataset draw from."""
    return own_streams(generator=loader.generator, sampler=loader.sampler, batch_sampler=loader.batch_sampler, dataset=loader.dataset)


def with_epoch(loader) -> Any:
    """The sampler of a loader that is told the number of the epoch; None if there is none."""
    return next((s for s in samplers(loader) if callable(getattr(s, 'set_epoch', None)) and type(getattr(s, 'epoch', None)) is int), None)


def fingerprint(item: Any) -> int | None:
    """A number that tells an index, or a list of them, from others; None where there is none."""
    plain = set(map(type, item)) if type(item) in (list, tuple) else {type(item)}
    return zlib.crc32(repr(item).encode()) if plain <= {int, str} else None


class Progress:
    """The place of an iteration in its epoch. The loader keeps it after the iterator, so it does not keep the source."""

    __slots__ = ('followed', 'complete', 'watching', 'when', 'iterated', 'streams', 'draws', 'plain', 'shared', 'taken', 'floor', 'ended', 'over', 'last',
                 'drew', 'finished', 'base_seed', 'epoch', 'ledger')

    def __init__(self, loader, iterated: bool) -> None:
        self.followed = self.complete = loader._followed        # is the state asked for, and has it been from the first item on?
        self.iterated = iterated
        self.when = self._when(loader)
        self.streams = {} if self.when == FIXED else own_streams_and(global_streams(), loader)
        if self.when == AT_ONCE:
            self.streams = {name: stream for name, stream in self.streams.items() if name not in ('python', 'numpy')}
        self.draws: list[tuple[int, dict]] = []     # (place, where the streams were that the item moved on)
        self.plain: list[tuple[int, dict]] = []     # the same as plain data, as far as somebody asked for it
        self.shared: dict = {}
        self.taken = self.floor = 0         # items taken; those that the source has given, if it was ahead
        self.ended = False                  # has the source been asked for more than it has?
        self.last = None                    # the item before
        self.over = False                   # has the dataset that this process iterates come to its end?
        self.drew = False                   # do samples depend on random numbers?
        self.watching = True                # is the next item one at which to look at the streams?
        self.finished = False
        self.base_seed = 0
        self.epoch = getattr(with_epoch(loader), 'epoch', None)
        self.ledger: Ledger | None = None

    def _when(self, loader) -> int:
        if loader._iterable:
            return LAZY if self.iterated and not stateful(loader.dataset) else FIXED
        return FIXED if stateful_sampler(loader) is not None else draws(loader._index_sampler)

    def begin(self, source: Source) -> Advance:
        """Start a source: the function that returns its items."""
        self.draws.append((START, marks(self.streams)))
        return source()

    def follow(self) -> None:
        """Keep what a state needs from now on."""
        if not self.followed:
            self.followed, self.complete = True, self.taken <= 1
            self.watching = self.watching or self.when == LAZY

    def take(self, advance: Advance) -> Any:
        """The next item, with an eye on the streams."""
        before = marks(self.streams)
        try:
            item = advance()
        except StopIteration:
            self.ended = True
            raise
        finally:
            if self.taken == 0 and not self.iterated:
                self.draws.append((0, before))
            elif self.taken >= self.floor:        # else the source has given it before
                change = moved(before, marks(self.streams))
                self.drew |= self.iterated and bool(change)
                if change:
                    self.draws.append((self.taken, change))
        self.watching = self.followed and self.when == LAZY
        self.taken += 1
        return item

    def resume(self, source: Source, place: int, asked: int, expected: int | None) -> tuple[Advance, list]:
        """Start a source and get to a place: the function that returns what comes next, and the items passed over. Items that the source was `asked` for
        beyond the place come first.

        The streams are put back to where they are now.
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
            raise RuntimeError(f'the {"dataset" if self.iterated else "sampler"} of this DataLoader does not give what it gave when the state was taken. '
                               'Is it the same one, of the same seed? If it draws random numbers later than with its first item, call state_dict() '
                               'before the first batch, or let it have state_dict() and load_state_dict()')
        self.last = items[place - 1] if place and not self.iterated else None
        return self.go_on(advance, items[place:], place, asked), items[:place]

    def go_on(self, advance: Advance, ahead: list, place: int, asked: int) -> Advance:
        """The function that returns what comes next from a source that is in its place, after the items that it has given ahead of time."""
        self.taken, self.floor = place, asked
        self.watching = not place or (self.followed and self.when == LAZY)
        return chain(ahead, iter(advance, object())).__next__

    @property
    def consumed(self) -> int:
        """Items whose batches have been handed out."""
        return self.taken - len(self.ledger.waiting) if self.ledger else self.taken

    @property
    def asked(self) -> int:
        """Items that the source has been asked for."""
        return max(self.floor, self.taken + self.ended)

    def plain_draws(self) -> list:
        """The places at which the source drew, and where the streams were, as plain data."""
        for place, where in self.draws[len(self.plain):]:
            self.plain.append((place, packed(where, self.shared)))
            self.shared = dict(list(self.shared.items())[-8:])      # words of a generator that stay the same for many draws
        return list(self.plain)


def own_streams_and(others: dict[str, Stream], loader) -> dict[str, Stream]:
    return {**others, **loader_streams(loader)}


class Ledger:
    """What the workers have been given in an epoch, and what they have done.

    A worker's place is (how many tasks it has done, its streams, its dataset's state, whether the dataset has come to its end); None for streams that are
    where they were at the start, or where the worker's seed takes them.
    """

    __slots__ = ('number', 'first', 'turn', 'active', 'waiting', 'indices', 'done', 'start', 'known')

    def __init__(self, number: int, first: int = 0, start: list | None = None) -> None:
        self.number, self.first, self.turn = number, first, 0
        self.active = set(range(number))            # those with more to come
        self.waiting: deque[int] = deque()          # who has been given a task, oldest first
        self.indices: deque = deque()               # and which, in order
        self.done = [0] * number
        self.start = start or [(0, None, None, False)] * number
        self.known = [(0, None, dataset, False) for _, _, dataset, _ in self.start]

    def next_worker(self, in_order: bool) -> int:
        """Whose turn it is; without order, that of the one with the least to do."""
        if not in_order:
            return min(self.active, key=self.waiting.count)
        while self.turn not in self.active:
            self.turn = (self.turn + 1) % self.number
        worker, self.turn = self.turn, (self.turn + 1) % self.number
        return worker

    def note(self, worker: int, report: Any) -> bool:
        """A worker has done a task. Did it draw?"""
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
        """(worker, index) of what has been done, and is to be done again since nobody knows where that took the worker's streams, or its dataset."""
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
