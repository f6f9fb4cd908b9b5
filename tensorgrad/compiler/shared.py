"""Values that several executables of one program compute ahead, such as packed weights, kept once."""
from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..graph.node import Node
from .guards import exposed

MOST = 100_000              # the table is emptied after so many keys


class Shared:
    """The values, by what they were computed from: a target, its parameters, and the arrays of tensors at a date.

    Values live as long as an executable holds them. Executables hold the arrays that a key names by their identity for
    as long, and compute values under one lock.
    """

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.values: WeakValueDictionary[int, np.ndarray] = WeakValueDictionary()

    def of(self, tensors: dict[str, Any]) -> Values:
        """Return the table for one computation of values."""
        if len(self.numbers) > MOST:
            self.numbers.clear()
            self.values.clear()
        return Values(self, tensors)

    def number(self, key: Any) -> int:
        """Return the number of a key: equal keys have equal ones."""
        return self.numbers.setdefault(key, len(self.numbers))


class Values:
    """A computation of the values ahead of an executable's calls."""

    def __init__(self, shared: Shared, tensors: dict[str, Any]) -> None:
        self.shared, self.tensors = shared, tensors
        self.keys: dict[Node, int | None] = {}          # None for nodes whose values are not shared

    def find(self, node: Node) -> Any:
        """Return the value of a node if an executable has it, else None; ask for its inputs before."""
        key = self.keys[node] = self._key(node)
        return None if key is None else self.shared.values.get(key)

    def keep(self, node: Node, value: Any) -> None:
        """Let other executables find a value."""
        if (key := self.keys[node]) is not None and type(value) is np.ndarray:
            self.shared.values[key] = value

    def _key(self, node: Node) -> int | None:
        try:
            key = node.target, self._frozen(tuple(node.args)), self._frozen(dict(node.kwargs))
            hash(key)
        except TypeError:
            return None
        return self.shared.number(key)

    def _frozen(self, value: Any) -> Any:
        """Return a hashable form of an argument. Raises TypeError if there is none, or a value in it is not shared."""
        if isinstance(value, Node):
            if value not in self.keys:
                self.keys[value] = self._tensor(value)
            if (key := self.keys[value]) is None:
                raise TypeError
            return Node, key
        if isinstance(value, (tuple, list)):
            return tuple, *map(self._frozen, value)
        if isinstance(value, dict):
            return dict, *((name, self._frozen(part)) for name, part in value.items())
        if isinstance(value, slice):
            return slice, *map(self._frozen, (value.start, value.stop, value.step))
        return type(value), repr(value) if type(value) is float else value

    def _tensor(self, node: Node) -> int | None:
        """Return the key of a tensor's present values; None if they may change without a date."""
        tensor = self.tensors.get(node.target) if node.op == "get_attr" else None
        if tensor is None or exposed(tensor) or tensor._storage.block is None:
            return None
        return self.shared.number((id(tensor.array), id(tensor._storage.block), tensor._storage.block.written))
