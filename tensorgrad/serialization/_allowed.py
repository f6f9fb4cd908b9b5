"""The classes and functions that the program allows files to name, and the errors about others."""
from __future__ import annotations

import pickle
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ._names import torch_name


class Refused(pickle.UnpicklingError):
    """A file has something that files of tensors do not need."""


class Unlisted(Refused):
    """A file names something that is not allowed; a program may allow it."""


class Passed(Exception):
    """Wraps an error of the program's own classes and functions, which are trusted, to pass a reader unchanged."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def trusting(function: Any, *arguments: Any) -> Any:
    """Call a function of the program; wrap its errors as Passed."""
    try:
        return function(*arguments)
    except Exception as error:
        raise Passed(error) from None


class Name:
    """A global name in a pickle that may be called."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self.function = name, function


# ── classes that a program allows ─────────────────────────────────────────────────────────────────────────────────────


BLOCKED = ("sys", "os", "posix", "nt")     # modules whose names cannot be allowed
_allowed: dict[Any, None] = {}             # the program's arguments, in order
user_classes: dict[str, Any] = {}         # the allowed objects by name


def _named(items: Any) -> dict[str, Any]:
    named = {}
    for item in items:
        if isinstance(item, tuple):
            if len(item) != 2:
                raise ValueError(f"Expected tuple of length 2 (global, str of callable full path), but got tuple of "
                                 f"length: {len(item)}")
            thing, name = item
            if type(name) is not str:
                raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(name)}")
        else:
            own = torch_name(item)
            thing, name = item, f"{item.__module__}.{item.__qualname__}" if own is None else ".".join(own)
        named[name] = thing
    return named


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow `load` to call these classes and functions, which must be safe for any arguments.
    https://pytorch.org/docs → torch.serialization.add_safe_globals
    """
    user_classes.update(_named(safe_globals))
    _allowed.update(dict.fromkeys(safe_globals))


def get_safe_globals() -> list[Any]:
    """Return the classes and functions that the program allowed.
    https://pytorch.org/docs → torch.serialization.get_safe_globals
    """
    return list(_allowed)


def clear_safe_globals() -> None:
    """Remove all allowed classes and functions. https://pytorch.org/docs → torch.serialization.clear_safe_globals"""
    user_classes.clear()
    _allowed.clear()


@contextmanager
def _safe_globals(items: Any) -> Iterator[None]:
    before = list(_allowed)
    add_safe_globals(items)
    try:
        yield
    finally:
        clear_safe_globals()
        add_safe_globals(before)


class safe_globals:
    """A context manager that allows `load` to use these classes and functions, see `add_safe_globals`.
    https://pytorch.org/docs → torch.serialization.safe_globals
    """

    def __init__(self, safe_globals: list[Any]) -> None:
        self._block = _safe_globals(safe_globals)

    def __enter__(self) -> None:
        self._block.__enter__()

    def __exit__(self, *exception: Any) -> None:
        self._block.__exit__(*exception)


def modern(module: str, name: str) -> tuple[str, str]:
    """Return Python 3's (module, name) for a name that a pickle may spell as in Python 2."""
    return NAME_MAPPING.get((module, name)) or (IMPORT_MAPPING.get(module, module), name)
