"""Save the state of a ``DataLoader`` as plain data, and load it into another loader."""
from __future__ import annotations

from typing import Any

from ..sampler import BatchSampler
from .progress import (
    Advance,
    Ledger,
    Progress,
    Source,
    fingerprint,
    loader_streams,
    stateful,
    stateful_sampler,
    with_epoch,
)
from .rng_states import global_streams, marks, marks_of, packed
from .worker import Plan

FORMAT = 1


def description(loader) -> dict[str, Any]:
    """Return the properties that the loaders that save and load a state must agree on."""
    try:
        batches = None if loader._iterable else len(loader._index_sampler)
    except TypeError:       # a sampler need not have a length
        batches = None
    return {'dataset': 'iterable' if loader._iterable else 'map', 'batch_size': loader.batch_size,
            'drop_last': loader.drop_last, 'batches': batches,
            'sampler': type(loader.sampler).__name__}


def state_of(loader) -> dict[str, Any]:
    """Return the state of a loader."""
    progress = loader._progress
    running = progress is not None and not progress.finished
    sampler, epoch = stateful_sampler(loader), with_epoch(loader)
    return {
        'format': FORMAT, 'loader': description(loader), 'handed_out': handed_out(progress) if running else 0,
        'epoch': progress.epoch if running else getattr(epoch, 'epoch', None),
        'generators': packed(marks(loader_streams(loader))),
        'sampler': None if sampler is None else sampler.state_dict(),
        'dataset': loader.dataset.state_dict() if stateful(loader.dataset) else None,
        'iteration': iteration_of(loader, progress) if running else None,
        'workers': None if running or loader._iterator is None else loader._iterator.state_of_workers(),
    }


def handed_out(progress: Progress) -> int:
    ledger = progress.ledger
    return progress.consumed - (ledger.number - len(ledger.active) if ledger else 0)


def iteration_of(loader, progress: Progress) -> dict[str, Any]:
    """Return the place of an iteration as plain data."""
    if progress.ledger is not None and progress.ledger.number > 1 and not loader.in_order:
        raise RuntimeError('the state of a DataLoader with in_order=False is known between epochs only: its batches '
                           'come in an order that cannot be repeated')
    if progress.iterated and progress.drew and not progress.complete:
        raise RuntimeError('the iterable dataset draws random numbers, and nobody kept where they came from: call '
                           'state_dict() before the first batch, or give the dataset methods state_dict and '
                           'load_state_dict')
    return {
        'consumed': progress.consumed, 'asked': progress.asked, 'last': fingerprint(progress.last),
        'base_seed': progress.base_seed, 'draws': progress.plain_draws(), 'drew': progress.drew,
        'complete': progress.complete,
        'ended': has_ended(loader, progress),
        'ahead': list(progress.ledger.indices) if progress.ledger and stateful_sampler(loader) is not None else [],
        'workers': None if progress.ledger is None else workers_of(progress.ledger),
    }


def has_ended(loader, progress: Progress) -> bool:
    """Return True if the sampler or dataset that saves its own state is exhausted, and hence in its next epoch."""
    if progress.iterated:
        return progress.over
    newest = progress.ledger.indices[-1] if progress.ledger and progress.ledger.indices else progress.last
    short = (type(loader.batch_sampler) is BatchSampler and isinstance(newest, list)
             and len(newest) < loader.batch_sampler.batch_size)
    return progress.ended or short


def workers_of(ledger: Ledger) -> dict[str, Any]:
    return {'number': ledger.number, 'first': ledger.first, 'turn': ledger.turn, 'active': sorted(ledger.active),
            'waiting': list(ledger.waiting), 'done': list(ledger.done), 'start': places_of(ledger.start),
            'known': places_of(ledger.known)}


def places_of(places: list) -> list:
    """Convert places of workers to plain data."""
    return [(done, packed(streams), dataset, ended) for done, streams, dataset, ended in places]


# ── loading ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Resumed:
    """A state that was read and checked against a loader."""

    def __init__(self, loader, state: Any) -> None:
        """Read and check a state. ValueError if it does not fit the loader."""
        if not isinstance(state, dict) or state.get('format') != FORMAT:
            raise ValueError('this is not the state of a DataLoader'
                             if not isinstance(state, dict) or 'format' not in state else
                             f'the state of this DataLoader has the format {state["format"]!r}, and this version knows '
                             f'{FORMAT}')
        self.state = state
        self.streams = loader_streams(loader)
        try:
            check_description(state['loader'], description(loader))
            check_names(set(state['generators']), set(self.streams))
            self.marks = marks_of(self.streams, state['generators'])
            self.handed_out, self.epoch, self.sampler, self.dataset = (state[key]
                                                                       for key
                                                                       in ('handed_out', 'epoch', 'sampler', 'dataset'))
            everything = {**global_streams(), **self.streams}
            self.place = None if state['iteration'] is None else Place(state['iteration'], everything)
            self.workers = None if state['workers'] is None else Workers(state['workers'], everything)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(f'the state of this DataLoader is damaged: {type(error).__name__} {error}') from error
        for name, part in (('sampler', stateful_sampler(loader)),
                           ('dataset', loader.dataset if stateful(loader.dataset) else None)):
            if (part is None) != (state[name] is None):
                raise ValueError(f'the state has {"no" if state[name] is None else "a"} state of the {name}, and this '
                                 f'{name} has {"no" if part is None else "a"} method load_state_dict')
        self._check_workers(loader)

    def _check_workers(self, loader) -> None:
        """Raise ValueError if the number of workers changed and that would change the samples."""
        place, workers = self.place, self.workers or (self.place and self.place.workers)
        before, now = (place or workers).number if place or workers else loader.num_workers, loader.num_workers
        if before == now:
            return
        reasons = {
            'samples depend on random numbers': (place and place.drew)
            or (workers and any(streams is not None for _, streams, _, _ in workers.start)),
            'the dataset has a state': place and stateful(loader.dataset),
            'each worker iterates the dataset': place and loader._iterable,
        }
        if found := [reason for reason, holds in reasons.items() if holds]:
            raise ValueError(f'the state was taken with num_workers={before}, and this DataLoader has '
                             f'num_workers={now}: the number cannot change, since {" and ".join(found)}')

    def take_over(self, loader) -> None:
        """Load the states of the loader's parts. The next iter() continues the iteration."""
        parts = [(part, state) for part, state in ((stateful_sampler(loader), self.sampler),
                                                   (loader.dataset, self.dataset)) if state is not None]
        before = [(part, part.state_dict()) for part, _ in parts]
        try:
            for part, state in parts:
                part.load_state_dict(state)
        except BaseException:
            for part, state in before:
                part.load_state_dict(state)
            raise
        for name, mark in self.marks.items():
            self.streams[name].go_to(mark)
        sampler = with_epoch(loader)
        if sampler is not None and type(self.epoch) is int:
            sampler.set_epoch(self.epoch)

    def reach(self, loader, progress: Progress, source: Source) -> tuple[Advance, list]:
        """Advance an iteration to the place; return the function that returns the following items, and the skipped
        items."""
        place = self.place
        progress.draws, progress.plain = list(place.draws), list(place.plain)
        progress.drew, progress.base_seed, progress.epoch = place.drew, place.base_seed, self.epoch
        progress.complete = place.complete and progress.followed
        if (stateful_sampler(loader) is not None
                or (loader._iterable and (not progress.iterated or stateful(loader.dataset)))):
            rest = iter(()).__next__ if place.ended else source()       # the source restored its place itself
            progress.ended = progress.over = place.ended
            return progress.go_on(rest, place.ahead, place.consumed, place.asked), []
        return progress.resume(source, place.consumed, place.asked, place.last)

    def ledger(self, number: int) -> Ledger:
        """Return the ledger of the workers' tasks, for their present number."""
        if self.place is None:
            return Ledger(number, start=self.workers.start if self.workers and self.workers.number == number else None)
        workers = self.place.workers
        if workers is None or workers.number != number:
            return Ledger(number, self.place.consumed)
        ledger = Ledger(number, workers.first, workers.start)
        ledger.turn, ledger.active, ledger.done, ledger.known = (workers.turn, set(workers.active), list(workers.done),
                                                                 list(workers.known))
        return ledger

    def waiting(self, number: int) -> list[int]:
        """Return the worker of each pending task, oldest first."""
        workers = self.place and self.place.workers
        return workers.waiting if workers and workers.number == number else []

    @property
    def base_seed(self) -> int | None:
        """The base seed of the saved workers; None if they get a new one."""
        return self.place.base_seed if self.place else self.workers.base_seed if self.workers else None


def plans(ledger: Ledger, iterated: bool) -> list[Plan]:
    """Return the plans of workers that continue for others."""
    # it repeats the tasks done, to skip what was iterated
    anew = [iterated and known[2] is None for known in ledger.known]
    return [Plan(start[1], known[2], None if again else known[1], known[3])
            for start, known, again in zip(ledger.start, ledger.known, anew, strict=True)]


class Place:
    """The place of an iteration, read from plain data."""

    def __init__(self, plain: dict, streams: dict) -> None:
        self.consumed, self.asked, self.base_seed = (integer(plain[key]) for key in ('consumed', 'asked', 'base_seed'))
        self.last, self.ahead = plain['last'], list(plain['ahead'])
        self.drew, self.complete, self.ended = (bool(plain[key]) for key in ('drew', 'complete', 'ended'))
        self.plain = [(integer(place), where) for place, where in plain['draws']]
        self.draws = [(place, marks_of(streams, where)) for place, where in self.plain]
        self.workers = (None if plain['workers'] is None
                        else Workers({**plain['workers'], 'base_seed': self.base_seed}, streams))
        self.number = self.workers.number if self.workers else 0


class Workers:
    """The places of workers, read from plain data."""

    def __init__(self, plain: dict, streams: dict) -> None:
        self.number, self.base_seed = integer(plain['number']), integer(plain['base_seed'])
        self.start, self.known = ([(integer(done), where and marks_of(streams, where), dataset, bool(ended))
                                   for done, where, dataset, ended in places]
                                  for places in (plain['start'], plain.get('known', plain['start'])))
        self.first, self.turn = plain.get('first', 0), plain.get('turn', 0)
        self.active, self.waiting, self.done = (list(map(integer, plain.get(key, ())))
                                                for key in ('active', 'waiting', 'done'))


def integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f'expected an integer, but got {type(value).__name__}')
    return value


def check_description(before: dict, now: dict) -> None:
    different = [f'{key} {before[key]!r}, here {now[key]!r}' for key in now if before[key] != now[key]]
    if different:
        raise ValueError(f'the state is that of another DataLoader: {"; ".join(different)}')


def check_names(before: set, now: set) -> None:
    if before != now:
        raise ValueError(f'the state is that of a DataLoader with the generators {sorted(before)}, here {sorted(now)}')
