"""Random streams: save and restore the states of random number generators.

A *mark* is the state of a stream as its own library returns it, cheap to take and never changed. Its *plain* form
consists of numbers, strings and tensors of bytes, which any file can hold.
"""
from __future__ import annotations

import copy
import random
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from .... import api as tg
from ....api.random import _started, cuda_generator, device_generator
from ....generator import Generator, default_generator
from ....storage.base import backend_of

WORDS = 100     # tuples of at least so many integers are packed


class Stream:
    """A source of random numbers: `random.Random`, NumPy's `RandomState` or `Generator`, or a generator of this
    package.
    """

    def __init__(self, source: Any) -> None:
        self.source = source
        self.mark, self.go_to = ways(source)

    def mark_of(self, plain: Any) -> Any:
        """Return the mark of a plain form, without changing the stream.

        Raises an error unless the stream could be set to it.
        """
        mark = unpacked(plain)
        Stream(copy.deepcopy(self.source)).go_to(mark)
        return mark


def ways(source: Any) -> tuple:
    """Return the functions that get and set the state of a source; an empty tuple for other objects."""
    if isinstance(source, Generator):
        return source._state, source._set_state
    if isinstance(source, random.Random) and not isinstance(source, random.SystemRandom):
        return source.getstate, source.setstate
    if 'numpy.random' in sys.modules:
        if isinstance(source, np.random.RandomState):
            return lambda: source.get_state(legacy=False), source.set_state
        if isinstance(source, np.random.Generator):
            return lambda: source.bit_generator.state, lambda mark: setattr(source.bit_generator, 'state', mark)
    return ()


def global_streams(names: Iterable[str] = ()) -> dict[str, Stream]:
    """Return the process's global streams by name: Python's, NumPy's, and this package's for each device that has
    drawn, or is in `names`."""
    sources = {'python': random.getstate.__self__, 'numpy': np.random.get_state.__self__,
               'tensorgrad': default_generator}
    if any(name.startswith('cuda:') for name in names):
        from ....storage.cuda import device_count
        for index in range(device_count()):
            if f'cuda:{index}' in names:
                device_generator(backend_of(f'cuda:{index}'), None)
    sources |= {f'cuda:{index}': cuda_generator(index) for index in sorted(_started)}
    return {name: Stream(source) for name, source in sources.items()}


def own_streams(**owners: Any) -> dict[str, Stream]:
    """Return the streams among the attributes of objects, and of the sampler or dataset that each wraps, by their
    paths."""
    found, seen = {}, {id(stream.source) for stream in global_streams().values()}
    for name, owner in owners.items():
        for inner in range(8):
            candidates = {name: owner} if inner == 0 else {}
            candidates |= {f'{name}.{attribute}': value
                           for attribute, value in sorted(getattr(owner, '__dict__', {}).items())}
            for path, value in candidates.items():
                if ways(value) and id(value) not in seen:
                    seen.add(id(value))
                    found[path] = Stream(value)
            step = next((step for step in ('sampler', 'dataset') if hasattr(owner, step)), None)
            if step is None:
                break
            name, owner = f'{name}.{step}', getattr(owner, step)
    return found


def marks(streams: dict[str, Stream]) -> dict[str, Any]:
    return {name: stream.mark() for name, stream in streams.items()}


def go_to(streams: dict[str, Stream], wanted: dict[str, Any]) -> None:
    """Set streams to their marks; streams without one are not changed."""
    for name, stream in streams.items():
        if name in wanted:
            stream.go_to(wanted[name])


def moved(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return the marks of `before` that differ from those of `after`."""
    return {name: mark for name, mark in before.items() if not same(mark, after.get(name))}


def same(one: Any, other: Any) -> bool:
    """Return True if two marks are equal."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and one.tobytes() == other.tobytes()
    return type(one) is type(other) and one == other


# ── plain forms ───────────────────────────────────────────────────────────────────────────────────────────────────────


def packed(mark: Any, known: dict | None = None) -> Any:
    """Convert a mark to plain data. Values in `known` reuse their tensors."""
    if isinstance(mark, np.ndarray):
        key = mark.dtype.name, mark.tobytes()
        known = {} if known is None else known
        if key not in known:
            known[key] = {'dtype': key[0], 'bytes': tg.tensor(np.frombuffer(key[1], np.uint8), device='cpu')}
        return known[key]
    if isinstance(mark, dict):
        return {name: packed(value, known) for name, value in mark.items()}
    if isinstance(mark, tuple):
        if len(mark) >= WORDS and all(type(word) is int and 0 <= word < 1 << 32 for word in mark):
            return {'words': packed(np.array(mark, np.uint32), known)}
        return tuple(packed(part, known) for part in mark)
    return mark.item() if isinstance(mark, np.generic) else mark


def unpacked(plain: Any) -> Any:
    """Undo `packed`."""
    if isinstance(plain, dict):
        if plain.keys() == {'dtype', 'bytes'}:
            return np.frombuffer(plain['bytes'].cpu().numpy().tobytes(), plain['dtype'])
        if plain.keys() == {'words'}:
            return tuple(unpacked(plain['words']).tolist())
        return {key: unpacked(value) for key, value in plain.items()}
    return tuple(map(unpacked, plain)) if isinstance(plain, (tuple, list)) else plain


def marks_of(streams: dict[str, Stream], plain: Any) -> Any:
    """Convert plain data to marks, each checked against its stream.

    ValueError names a stream that does not fit; unknown names are ignored.
    """
    found = {}
    for name, value in plain.items():
        if name in streams:
            try:
                found[name] = streams[name].mark_of(value)
            except Exception as error:
                raise ValueError(f'the state of the random stream {name!r} is of no use: {error}') from error
    return found
