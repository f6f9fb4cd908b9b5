"""The places of leaves in a tree of containers: paths of keys, as part of torch.utils._pytree.

>>> from tensorgrad.utils._pytree import key_get, keystr, tree_flatten_with_path
>>> tree = {"layers": [1, (2,)]}
>>> leaves, spec = tree_flatten_with_path(tree)
>>> [(keystr(path), leaf) for path, leaf in leaves]
[("['layers'][0]", 1), ("['layers'][1][0]", 2)]
>>> key_get(tree, leaves[1][0])
2
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ._pytree import Container, TreeSpec, container_of, flattened_like, tree_structure, tree_unflatten

KeyPath = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class SequenceKey:
    """A step in the path to a leaf: the index of an item."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """Return the item of a sequence."""
        return sequence[self.idx]


@dataclass(frozen=True, slots=True)
class MappingKey:
    """A step in the path to a leaf: the key of a dictionary."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """Return the value of a mapping."""
        return mapping[self.key]


@dataclass(frozen=True, slots=True)
class GetAttrKey:
    """A step in the path to a leaf: the name of an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """Return the attribute of an object."""
        return getattr(obj, self.name)


KEYS: dict[str, Callable[[Any], list[Any]]] = {
    "items": lambda parts: [SequenceKey(index) for index in range(len(parts))],
    "mapping": lambda parts: [MappingKey(key) for key in parts],
    "fields": lambda parts: [GetAttrKey(name) for name in type(parts)._fields]}


def _dict_flatten_with_keys(d: Any) -> tuple[list[Any], list[Any]]:
    """Return a dictionary's steps with their children, and its keys: transformers registers classes with it."""
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _children_with_keys(container: Container, cls: Any, tree: Any) -> Any:
    if container.keys is not None:
        return zip(KEYS[container.keys](tree), container.flatten_fn(tree)[0], strict=True)
    if container.flatten_with_keys_fn is None:
        raise ValueError(f"Did not find a flatten_with_keys_fn for type: {cls}. Please pass a flatten_with_keys_fn "
                         "argument to register_pytree_node.")
    return container.flatten_with_keys_fn(tree)[0]


def _paths(path: KeyPath, tree: Any, is_leaf: Any) -> Iterator[tuple[KeyPath, Any]]:
    cls, container = (None, None) if is_leaf is not None and is_leaf(tree) else container_of(tree)
    if container is None:
        yield path, tree
        return
    for key, child in _children_with_keys(container, cls, tree):
        yield from _paths((*path, key), child, is_leaf)


def tree_leaves_with_path(tree: Any, is_leaf: Any = None) -> list[tuple[KeyPath, Any]]:
    """Return (path, leaf) for each leaf of a tree."""
    return list(_paths((), tree, is_leaf))


def tree_flatten_with_path(tree: Any, is_leaf: Any = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Return (path, leaf) for each leaf of a tree, and its spec."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """Like `tree_map`, but call `func(path, leaf, *others)`."""
    leaves, spec = tree_flatten_with_path(tree, is_leaf)
    others = [flattened_like(spec, rest) for rest in rests]
    return tree_unflatten([func(path, leaf, *parts) for (path, leaf), *parts in zip(leaves, *others, strict=True)],
                          spec)


def keystr(kp: KeyPath) -> str:
    """Return a path as it is written in a program, such as "[0].weight"."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """Return the object at the end of a path."""
    for key in kp:
        obj = key.get(obj)
    return obj
