"""Guards of compiled code: the values of tensors, and Python's state that a trace read.

native/guards.c, or Python without it, compares flat lists. The comparison only says if everything is as before; slower
code finds out what a difference means.
"""
from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable
from itertools import repeat
from operator import is_
from types import CellType
from typing import Any

import numpy as np

from ..core.fast_path import compiled as _native
from ..storage.base import Block

SCALARS = frozenset({int, float, complex, str, bytes})      # equal values of these count as unchanged


def exposed(tensor: Any) -> bool:
    """Return True if writes to the memory can go unseen: a NumPy array, a buffer or another process shares it."""
    storage = tensor._storage
    return bool((storage.fixed or storage.shared is not None or storage.block is not None and storage.block.fixed)
                and getattr(getattr(tensor.array, "flags", None), "writeable", True))


class Stamps:
    """Tells if tensors hold the values that they had when `take` was called.

    A tensor may get other memory, its memory may be written to through it, or through another tensor that shares it.
    Memory that NumPy arrays share as well is read: `exposed` are the places of such tensors.

    >>> import tensorgrad as torch
    >>> from tensorgrad.compiler.guards import Stamps
    >>> x = torch.zeros(2)
    >>> stamps = Stamps([x])
    >>> stamps.changed(), x.data.fill_(1), stamps.changed()
    (False, tensor([1., 1.]), True)
    """

    __slots__ = ("tensors", "flat", "exposed", "sums")

    def __init__(self, tensors: Iterable[Any]) -> None:
        self.tensors = tuple(tensors)
        self.take()

    def take(self) -> None:
        """Remember the present state. Writes that come while it is taken count as later ones."""
        self.flat = state_of(self.tensors)
        self.exposed = tuple(i for i, tensor in enumerate(self.tensors) if exposed(tensor))
        self.sums = self._sums()

    def changed(self) -> bool:
        """Return True if a tensor may hold other values."""
        if not same_tensors(self.flat):
            return True
        return bool(self.exposed) and self.sums != self._sums()

    def _sums(self) -> tuple[int, ...]:
        return tuple(checksum(self.tensors[i].array) for i in self.exposed)


def state_of(tensors: Iterable[Any]) -> tuple[Any, ...]:
    """Return the flat tuple of (tensor, array, storage, block, date) that `same_tensors` compares."""
    flat: list[Any] = []
    for tensor in tensors:
        storage = tensor._storage
        if storage.block is None:
            storage.block = Block(storage.written, storage.fixed)
        flat += (tensor, tensor.array, storage, storage.block, storage.block.written)
    return tuple(flat)


def checksum(array: np.ndarray) -> int:
    """Return the CRC-32 of an array's bytes."""
    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")


def _same_tensors(flat: tuple[Any, ...]) -> bool:
    """Return True if each (tensor, array, storage, block, date) of a flat tuple is as it was."""
    parts = iter(flat)
    return all(tensor.array is array and tensor._storage is storage and block.written == date
               for tensor, array, storage, block, date in zip(*[parts] * 5, strict=True))


same_tensors: Any = getattr(_native, "same_tensors", _same_tensors)


class Guards:
    """Tells if the Python objects that a trace read hold what they held.

    Of attributes and globals, those count whose names are in the code that ran (`words`). `places` are of
    `Surroundings`; (place, name) in `but` are what the program itself changes.
    """

    def __init__(self, places: list[Any], words: set[str], but: Collection[tuple[int, str]] = ()) -> None:
        self.places, self.words, self.but = places, words, but
        self.flat: tuple[Any, Any] = ((), None)     # places that are quick to compare, and their prepared form for C
        self.slow: tuple[Any, ...] = ()             # other places
        self._refresh()

    def __len__(self) -> int:
        return sum(len(values) for values in self.flat[0][3::4])

    def hold(self) -> bool:
        """Return True if nothing changed; False may also mean that something else did, see `failed`."""
        flat, prepared = self.flat
        return same_places(flat, prepared) and not (self.slow and any(place.changes() for place in self.slow))

    def failed(self) -> str | None:
        """Return the name of what changed, or None: then `hold` is True from now on."""
        for number, place in enumerate(self.places):
            for name in place.changes():
                if (not name or self._counts(place, name)) and (number, name) not in self.but:
                    return ".".join(part for part in (place.title, name) if part)
        self._refresh()
        return None

    def _counts(self, place: Any, name: str) -> bool:
        """Return True unless it is an attribute or a global that no code that ran names."""
        return name in self.words or place.names is None and not place.attributes

    def _refresh(self) -> None:
        flat: list[Any] = []
        slow = []
        for number, place in enumerate(self.places):
            container = place.container
            if type(container) in (list, CellType):
                if (number, "") not in self.but:
                    flat += (container, None, 0, tuple(place.values))
                continue
            if not isinstance(container, (dict, type)) or any(type(key) is not str for key in place.values):
                if not any(each == number for each, _ in self.but):
                    slow.append(place)
                continue
            names = tuple(name for name in place.values
                          if self._counts(place, name) and (number, name) not in self.but)
            count = len(container) if isinstance(container, dict) and place.names is None else -1
            flat += (container, names, count, tuple(place.values[name] for name in names))
        made = tuple(flat)
        self.flat, self.slow = (made, prepare(made)), tuple(slow)


def same(a: Any, b: Any) -> bool:
    """Return True if a value is unchanged: the object itself, or an equal number or text."""
    return a is b or type(a) is type(b) and type(a) in SCALARS and a == b


def _same_places(flat: tuple[Any, ...], prepared: Any = None) -> bool:
    """Return True if each (container, names, count, values) of a flat tuple is as it was."""
    parts = iter(flat)
    for container, names, count, values in zip(*[parts] * 4, strict=True):
        if names is None:
            now = _contents(container) if type(container) is CellType else container
            if len(now) != len(values):
                return False
        else:
            if count >= 0 and len(container) != count:
                return False
            found = vars(container) if isinstance(container, type) else container
            now = [*map(found.get, names, repeat(_MISSING))]
        if not all(map(is_, now, values)) and not all(map(same, now, values)):
            return False
    return True


def _contents(cell: Any) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()


_MISSING = object()
same_places: Any = getattr(_native, "same_places", _same_places)
prepare: Any = getattr(_native, "prepare", id)
