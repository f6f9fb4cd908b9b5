"""The arrays of a page, each of them once, by keys: with these the script draws them, and puts others in their place
when a leaf is changed.
"""
from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..text import WHOLE, Value

LARGEST = 3.4e38        # numbers below may be rounded


class Numbers:
    """Gives the arrays of an explanation their keys, and holds them.

    "v:PLACE" is the value at a place of the program, "g:PLACE" the gradient that has arrived there in the end;
    "s:STEP.I" is what the Ith gradient of a step back adds to others, "t:STEP.I" the sum up to then; "c:I" is what is
    not computed on the tape. Of a step's parts, keys have a prefix.
    """

    def __init__(self, explanation: Any, prefix: str = "") -> None:
        self.keys, self.prefix = explanation.keys, prefix
        self.arrays: dict[str, Value] = {}
        self.fixed: dict[int, str] = {}
        last = {told.node: (step.number, i) for step in explanation.steps for i, told in enumerate(step.gives)}
        self.last = set(last.values())

    def value(self, place: Any, value: Any) -> str:
        """The key of the value at a place; '' if either is not known."""
        return self.kept(f"v:{self.keys[place]}", value) if place in self.keys else ""

    def gradient(self, place: Any, value: Any) -> str:
        """The key of the gradient that arrives at a place."""
        return self.kept(f"g:{self.keys[place]}", value) if place in self.keys else ""

    def shares(self, step: Any, i: int) -> tuple[str, str, str]:
        """The keys of the Ith gradient that a step back gives, of the sum that was there ('' if none was), and of the
        sum with it.
        """
        told = step.gives[i]
        total = (self.gradient(told.node, told.total) if (step.number, i) in self.last
                 else self.kept(f"t:{step.number}.{i}", told.total))
        if told.before is None:
            return total, "", total
        before = next((key for key, value in reversed(self.arrays.items()) if value is told.before), "")
        return self.kept(f"s:{step.number}.{i}", told.value), before, total

    def constant(self, value: Any) -> str:
        """The key of numbers that have no place on the tape."""
        if id(value) not in self.fixed:
            self.fixed[id(value)] = self.kept(f"c:{len(self.fixed)}", value)
        return self.fixed[id(value)]

    def kept(self, key: str, value: Any) -> str:
        if not isinstance(value, Value) or value.dots is None:
            return ""
        key = self.prefix + key
        self.arrays.setdefault(key, value)
        return key


def together(own: Numbers, others: Iterable[Numbers]) -> dict[str, Any]:
    """The arrays for the script: {key: packed array}. Of others, those that are there already are the keys of these."""
    found: dict[str, Any] = {key: packed(value) for key, value in own.arrays.items()}
    known = {str(array): key for key, array in reversed(found.items())}
    for numbers in others:
        for key, value in numbers.arrays.items():
            array = packed(value)
            found[key] = known.setdefault(str(array), key)
            if found[key] == key:
                found[key] = array
    return found


def packed(value: Value) -> list[Any]:
    """[shape, kind, bytes of a number, the numbers in base 64]: float32, little-endian; of large arrays, without the
    last byte of each.

    >>> packed(Value(np.ones(2, np.float32)))
    [[2], 'f', 4, 'AACAPwAAgD8=']
    """
    assert value.dots is not None
    with np.errstate(over="ignore"):
        data = np.ascontiguousarray(value.dots, dtype="<f4").reshape(-1)
    kind, size = value.dtype.kind, 4
    raw = data.tobytes()
    if data.size > WHOLE:
        bits = data.view("<u4")
        # rounded, where that gives a number
        bits = np.where(np.abs(data) < LARGEST, bits + 0x80, bits).astype("<u4")
        size, raw = 3, bits.view(np.uint8).reshape(-1, 4)[:, 1:].tobytes()
    return [list(value.shape), {"i": "i", "u": "i", "b": "b"}.get(kind, "f"), size, b64encode(raw).decode()]


__all__ = ["Numbers", "packed", "together"]
