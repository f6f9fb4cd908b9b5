"""References that do not keep tensors alive, and dictionaries whose keys are such references.

Tensors compare element by element, so keys are compared by identity. https://pytorch.org/docs → torch.utils.weak

>>> import tensorgrad as torch
>>> from tensorgrad.utils.weak import WeakTensorKeyDictionary
>>> notes, x = WeakTensorKeyDictionary(), torch.ones(2)
>>> notes[x] = "the first"
>>> notes[x], len(notes)
('the first', 1)
>>> del x
>>> len(notes)
0
"""
from __future__ import annotations

import builtins
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from copy import deepcopy
from typing import Any

from ..api import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]

WeakRef = ref = weakref.ref


class WeakIdRef(weakref.ref):  # type: ignore[type-arg]
    """A weak reference that is hashed and compared by the identity of its object. callback: called when that dies."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Callable[[Any], Any] | None = None) -> None:
        super().__init__(key, callback)
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: Any) -> bool:
        ours, theirs = self(), other()
        # a new object may have the id of a dead one
        return self is other if ours is None or theirs is None else ours is theirs


class _WeakHashRef(weakref.ref):  # type: ignore[type-arg]
    """A weak reference with the hash of its object; references to equal objects are equal."""

    __slots__ = ("_hash",)

    def __init__(self, key: Any, callback: Callable[[Any], Any] | None = None) -> None:
        super().__init__(key, callback)
        self._hash = hash(key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: Any) -> bool:
        ours, theirs = self(), other()
        return self is other if ours is None or theirs is None else bool(ours == theirs)


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary that compares keys by identity and forgets an entry when its key dies.

    dict: the first entries. ref_type: the class of the references to keys. Iteration goes over the keys that are alive
    when it starts, so threads may add and remove entries meanwhile.
    """

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:
        self.ref_type, self.data = ref_type, {}     # type: ignore[var-annotated]
        here = weakref.ref(self)

        def forget(reference: Any) -> None:
            owner = here()
            if owner is not None:
                owner.data.pop(reference, None)
        self._forget = forget
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        found = self.data.get(self.ref_type(key), self)     # no value of a dictionary is the dictionary itself
        if found is self:
            raise KeyError(key)
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._forget)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: Any) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:           # no weak reference to such a key is possible
            return False

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        return (key for reference in list(self.data) if (key := reference()) is not None)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def keyrefs(self) -> list[Any]:
        """Return the references to the keys; some of the keys may die meanwhile."""
        return list(self.data)

    def _entries(self) -> Iterator[tuple[Any, Any]]:
        return ((key, value) for reference, value in list(self.data.items()) if (key := reference()) is not None)

    def _with(self, entries: Iterable[tuple[Any, Any]]) -> WeakIdKeyDictionary:
        made = type(self)(ref_type=self.ref_type)
        for key, value in entries:
            made[key] = value
        return made

    def update(self, dict: Any = None, /, **kwargs: Any) -> None:  # type: ignore[override]
        """Add the entries of a mapping, or of (key, value) pairs: none, if reading them raises an error."""
        read = builtins.dict(() if dict is None else dict, **kwargs)
        for key, value in read.items():
            self[key] = value

    def copy(self) -> WeakIdKeyDictionary:
        """Return a dictionary with the entries of this one."""
        return self._with(self._entries())

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> WeakIdKeyDictionary:
        return self._with((key, deepcopy(value, memo)) for key, value in self._entries())

    def popitem(self) -> tuple[Any, Any]:
        """Remove and return the last (key, value). KeyError if there is none."""
        while True:
            reference, value = self.data.popitem()
            if (key := reference()) is not None:
                return key, value

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        made = self._with(other.items())
        made.update(self)
        return made

    def __ior__(self, other: Any) -> WeakIdKeyDictionary:
        self.update(other)
        return self

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        return {id(key): value for key, value in self.items()} == {id(key): value for key, value in other.items()}

    __hash__ = None  # type: ignore[assignment]


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor: calling it returns the tensor, or None once that is dead."""

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}")
        self.ref = WeakRef(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()
