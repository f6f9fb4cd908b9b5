"""Offsets and lengths of a nested tensor's components among its values, along the ragged axis."""
from __future__ import annotations

from functools import cached_property
from itertools import count
from typing import Any

import numpy as np

from .. import api as tg
from ..types import SymInt

_numbers = count(1)


class NestedInt(int, SymInt):
    """The length of a ragged axis, which equals no other length and is at least 2. Its text is j and a number.

    The product of a number and such a length is a NestedInt, too: the step in memory between components.
    """

    number: int
    times: int

    def __new__(cls, longest: int, number: int | None = None, times: int = 1) -> NestedInt:
        made = int.__new__(cls, max(longest, 2))
        made.number, made.times = next(_numbers) if number is None else number, times
        return made

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, NestedInt) or not isinstance(other, int):
            return int.__mul__(self, other)
        return NestedInt(int(self) * other, self.number, self.times * other)

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NestedInt) and (self.number, self.times) == (other.number, other.times)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.number, self.times))

    def __repr__(self) -> str:
        return f"j{self.number}" if self.times == 1 else f"{self.times}*j{self.number}"

    __str__ = __repr__

    def __gt__(self, other: Any) -> bool:
        return bool(other < 2)

    def __ge__(self, other: Any) -> bool:
        return self == other or bool(other <= 2)

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def __le__(self, other: Any) -> bool:
        return not self > other


class Ragged:
    """Offsets of the components along the ragged axis of the values: component i begins at `offsets[i]`.

    A component ends before `offsets[i + 1]`, or, with lengths, after `lengths[i]` elements: then there are holes
    between components. Nested tensors that share their Ragged have the same shape. `known` caches the length of the
    longest and of the shortest component, once it was given or computed.
    """

    def __init__(self, offsets: Any, lengths: Any = None, **known: int | None) -> None:
        self.offsets, self.lengths = offsets, lengths
        self.known = {name: value for name, value in known.items() if value is not None}
        self.size = NestedInt(self.longest)

    @cached_property
    def starts(self) -> np.ndarray[Any, Any]:
        """Where each component begins."""
        return np.asarray(self.offsets.tolist(), dtype="int64")[:-1]

    @cached_property
    def counts(self) -> np.ndarray[Any, Any]:
        """The length of each component."""
        return (np.diff(np.asarray(self.offsets.tolist(), dtype="int64")) if self.lengths is None
                else np.asarray(self.lengths.tolist(), dtype="int64"))

    @property
    def longest(self) -> int:
        """The length of the longest component, or what was given as such."""
        found = self.known.get("max_seqlen")
        return int(self.counts.max(initial=0)) if found is None else found

    @property
    def shortest(self) -> int:
        """The length of the shortest component, or what was given as such."""
        found = self.known.get("min_seqlen")
        return int(self.counts.min(initial=self.longest)) if found is None else found

    @property
    def batch(self) -> int:
        """The number of components."""
        return len(self.counts)

    @cached_property
    def component(self) -> np.ndarray[Any, Any]:
        """The number of the component of each element."""
        return np.repeat(np.arange(self.batch), self.counts)

    @cached_property
    def place(self) -> np.ndarray[Any, Any]:
        """The position of each element in its component."""
        ends = np.cumsum(self.counts)
        return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - self.counts, self.counts)

    def index(self, numbers: np.ndarray[Any, Any]) -> Any:
        """Return numbers as a tensor on the device of the offsets."""
        return tg.from_numpy(np.ascontiguousarray(numbers)).to(device=self.offsets.device)

    def packed(self, values: Any, axis: int) -> Any:
        """Return the values without holes between components."""
        if self.lengths is None:
            return values
        return values.index_select(axis, self.index(self.starts[self.component] + self.place))

    def padded(self, values: Any, axis: int, fill: Any = 0.0, length: int | None = None) -> Any:
        """Return the components as a batch (batch, *), each padded at its end with `fill`."""
        length = self.longest if length is None else length
        rows, place, which = self.packed(values, axis).movedim(axis, 0), self.place, self.component
        if length < self.longest:
            kept = np.flatnonzero(place < length)
            rows, place, which = rows.index_select(0, self.index(kept)), place[kept], which[kept]
        out = rows.new_full((self.batch * length, *rows.shape[1:]), fill)
        out = out.index_copy(0, self.index(which * length + place), rows)
        return out.reshape(self.batch, length, *rows.shape[1:]).movedim(1, axis + 1)

    def unpadded(self, batch: Any, axis: int) -> Any:
        """Return the values of the components in a padded batch: the inverse of `padded`."""
        length = batch.shape[axis + 1]
        rows = batch.movedim(axis + 1, 1).flatten(0, 1)
        return rows.index_select(0, self.index(self.component * length + self.place)).movedim(0, axis)

    def spread(self, each: Any, axis: int) -> Any:
        """Return values along the ragged axis: for each element the row of `each` (batch, *) for its component."""
        return each.index_select(0, self.index(self.component)).movedim(0, axis)


def of_lengths(lengths: Any, device: Any = None, given: bool = False) -> Ragged:
    """Return the Ragged of contiguous components of these lengths, whose extremes are known if `given`."""
    lengths = np.asarray(lengths, dtype="int64")
    known = {} if not given else {"min_seqlen": int(lengths.min(initial=lengths.max(initial=0))),
                                  "max_seqlen": int(lengths.max(initial=0))}
    offsets = tg.from_numpy(np.concatenate([[0], np.cumsum(lengths)])).to(device=device or "cpu")
    return shared(offsets, **known)


def shared(offsets: Any, lengths: Any = None, **known: int | None) -> Ragged:
    """Return the Ragged of an offsets tensor or a lengths tensor: the same one for each call, until the tensor changes.

    With other extremes, or other offsets of the same lengths, the ragged axis is the same, too.
    """
    key = offsets if lengths is None else lengths
    version, found = key.__dict__.get("_ragged", (None, None))
    if found is None or version != key._storage.version:
        found = Ragged(offsets, lengths, **known)
        key.__dict__["_ragged"] = key._storage.version, found
    elif found.offsets is not offsets or any(found.known.get(name) != value for name, value in known.items() if value):
        size, found = found.size, Ragged(offsets, lengths, **known)
        found.size = NestedInt(found.longest, size.number)
    return found  # type: ignore[no-any-return]


__all__ = ["NestedInt", "Ragged", "of_lengths", "shared"]
