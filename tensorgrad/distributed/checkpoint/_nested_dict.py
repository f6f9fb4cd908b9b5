"""Nested dicts and lists as flat ones, whose keys are the paths joined by dots."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import api as tg

__all__ = ["FLATTEN_MAPPING", "flatten_state_dict", "set_element", "unflatten_state_dict"]

FLATTEN_MAPPING = dict[str, tuple[str | int, ...]]


def _whole(value: Any) -> bool:
    """Return True for what is one entry: anything but dicts, and lists with a dict or a tensor somewhere in them."""
    if isinstance(value, Mapping):
        return False
    return not isinstance(value, list) or all(_whole(item) and not isinstance(item, tg.Tensor) for item in value)


def flatten_state_dict(state_dict: Mapping[Any, Any]) -> tuple[dict[str, Any], FLATTEN_MAPPING]:
    """Return a flat dict, and the path of each of its keys. ValueError if two paths have one key.

    Keys become texts; tuples, and lists without dicts and tensors, are entries; an empty dict leaves nothing.

    >>> flatten_state_dict({"a": {"b": 1, 2: [3, 4]}})
    ({'a.b': 1, 'a.2': [3, 4]}, {'a.b': ('a', 'b'), 'a.2': ('a', '2')})
    """
    flat: dict[str, Any] = {}
    paths: FLATTEN_MAPPING = {}

    def visit(path: tuple[str | int, ...], value: Any) -> None:
        if isinstance(value, Mapping):
            for key, item in value.items():
                visit((*path, str(key)), item)
        elif not _whole(value):
            for i, item in enumerate(value):
                visit((*path, i), item)
        else:
            key = ".".join(map(str, path))
            if key in flat:
                raise ValueError(f"duplicated flatten key {key}")
            flat[key], paths[key] = value, path
    visit((), dict(state_dict))
    return flat, paths


def set_element(root: Any, path: tuple[str | int, ...], value: Any) -> None:
    """Put a value at a path in nested dicts and lists, which are made on the way.

    >>> root = {}
    >>> set_element(root, ("a", 1, "b"), "here")
    >>> root
    {'a': [None, {'b': 'here'}]}
    """
    here = root
    for key, following in zip(path, path[1:]):
        _reach(here, key)
        below = here.get(key) if isinstance(here, Mapping) else here[key]
        if below is None:
            below = here[key] = {} if isinstance(following, str) else []
        here = below
    _reach(here, path[-1])
    here[path[-1]] = value


def _reach(container: Any, key: str | int) -> None:
    """Make a list long enough for a place in it."""
    if isinstance(container, list) and isinstance(key, int):
        container.extend([None] * (key + 1 - len(container)))


def unflatten_state_dict(state_dict: Mapping[str, Any], mapping: FLATTEN_MAPPING) -> dict[str, Any]:
    """Return the nested dict that `flatten_state_dict` made flat."""
    nested: dict[str, Any] = {}
    for key, value in state_dict.items():
        set_element(nested, mapping[key], value)
    return nested
