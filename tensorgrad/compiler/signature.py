"""The signature of a call: the properties of its arguments that a graph depends on."""
from __future__ import annotations

from collections.abc import Sequence
from math import copysign
from typing import Any

import numpy as np

from ..core.dispatch import PLAIN
from ..core.tape import TensorBase
from ..device import device as Device
from ..dtype import dtype as Dtype
from ..size import Size
from ..storage.cpu import NumpyStorage
from ..utils._pytree import container_of
from .state import Reason

CONSTANTS = frozenset({int, bool, str, bytes, complex, type(None), Dtype, Device, Size, type, range, slice})


def twins(tensors: Sequence[Any]) -> tuple[int, ...]:
    """Return for each tensor the place of the first that is the same object.

    >>> twins(["x", "y", "x"])
    (0, 1, 0)
    """
    first: dict[int, int] = {}
    return tuple([first.setdefault(id(tensor), i) for i, tensor in enumerate(tensors)])


class Unlike(Exception):
    """Graphs do not take an argument: the call runs eagerly."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.reason = Reason(text)


class Signature:
    """Describes arguments: `key` tells calls apart, `tensors` are in order, `objects` are known by identity."""

    __slots__ = ("key", "tensors", "objects")

    def __init__(self) -> None:
        self.key: list[Any] = []
        self.tensors: list[Any] = []
        self.objects: list[Any] = []

    def add(self, value: Any) -> None:
        """Add an argument. Raises Unlike."""
        kind = type(value)
        if kind in PLAIN:
            if type(value._storage) is not NumpyStorage:
                raise Unlike(f"an input is a {value.layout} tensor on {value.device}, not a dense one in main memory"
                             if value._storage.device is not None else "an input is a batch")
            array = value.array
            self.key += (array.shape, array.dtype, array.strides)
            self.tensors.append(value)
        elif kind is float:
            self.key += (kind, value, copysign(1, value))
        elif kind in CONSTANTS:
            self.key += (kind, value)
        elif kind is tuple or kind is list:
            self.key += (kind, len(value))
            for part in value:
                self.add(part)
        elif kind is dict:
            self.key += (kind, tuple(value))
            for part in value.values():
                self.add(part)
        else:
            self._other(kind, value)

    def _other(self, kind: type, value: Any) -> None:
        if isinstance(value, TensorBase):
            raise Unlike(f"an input is of class {kind.__name__}")
        if isinstance(value, np.ndarray):
            raise Unlike("an input is a NumPy array")
        if hasattr(value, "initial_seed"):
            raise Unlike("an input is a generator of random numbers")
        _, rules = container_of(value)
        if rules is None:
            self.key += (kind, id(value))
            self.objects.append(value)
            return
        parts, context = rules.flatten_fn(value)
        self.key += (kind, len(parts), repr(context))
        for part in parts:
            self.add(part)
