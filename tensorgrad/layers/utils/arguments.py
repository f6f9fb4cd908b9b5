"""Arguments: record a constructor's, pack several into a list or dict, and inspect which ones a function takes."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..structures import is_sequence

__all__ = ["AutoInitializeMeta", "SaveInitArgs", "SaveInitArgsMeta", "accepts_kwargs", "accepts_varargs", "captured",
           "enable_dict_arg", "enable_kwargs", "enable_list_arg", "enable_varargs", "is_signature_compatible",
           "pack_kwargs", "pack_varargs"]


# ── what an object was made with ──────────────────────────────────────────────────────────────────────────────────────


def captured(args: Any, kwargs: Any) -> dict[Any, Any]:
    """Arguments in one dict: positional ones in a list under None, if there are any. Lists, dicts and sets are copied.

    >>> captured((10, [20]), {"e": -10})
    {None: [10, [20]], 'e': -10}
    """
    named = {name: _copied(value) for name, value in kwargs.items()}
    return {None: [_copied(value) for value in args], **named} if args else named


def _copied(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(map(_copied, value))
    if type(value) is dict:
        return {key: _copied(part) for key, part in value.items()}
    return set(value) if type(value) is set else value


class SaveInitArgsMeta(type):
    """A metaclass whose objects know their constructor's arguments, as `init_args_dict`."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        arguments = captured(args, kwargs)              # before the constructor can change them
        made = super().__call__(*args, **kwargs)
        made.init_args_dict = arguments
        return made


class SaveInitArgs(metaclass=SaveInitArgsMeta):
    """A base class with `SaveInitArgsMeta` as its metaclass.

    >>> class Thing(SaveInitArgs):
    ...     def __init__(self, *sizes, **options):
    ...         pass
    >>> Thing(10, 20, e=-10, f1="x").init_args_dict
    {None: [10, 20], 'e': -10, 'f1': 'x'}
    """


class AutoInitializeMeta(type):
    """A metaclass that calls the method `_initialize()` of an object once all its constructors have run."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        made._initialize()
        return made


# ── one list or dict for several arguments ────────────────────────────────────────────────────────────────────────────


def pack_varargs(args: Any) -> list[Any]:
    """Return the list [a, b, c] for the positional arguments of `f(a, b, c)`, `f([a, b, c])` or `f((a, b, c))`.

    >>> pack_varargs((1, 2)), pack_varargs(([1, 2],))
    ([1, 2], [1, 2])
    """
    return list(args[0] if len(args) == 1 and is_sequence(args[0]) else args)


def pack_kwargs(args: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the dict {'a': 1} for the arguments of `f(a=1)` or `f({'a': 1})`. TypeError for anything else.

    >>> pack_kwargs(({"a": 1},), {}), pack_kwargs((), {"a": 1})
    ({'a': 1}, {'a': 1})
    """
    if not args:
        return dict(kwargs)
    if kwargs or len(args) > 1 or not isinstance(args[0], Mapping):
        raise TypeError("either one dict or keyword arguments must be given")
    return dict(args[0])


def enable_list_arg(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function `f(*args)` take one list, too."""
    @functools.wraps(function)
    def packed(*args: Any, **kwargs: Any) -> Any:
        return function(*pack_varargs(args), **kwargs)
    return packed


def enable_varargs(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function `f(items)` take the items one by one, too.

    >>> enable_varargs(sorted)(3, 1, 2)
    [1, 2, 3]
    """
    @functools.wraps(function)
    def packed(*args: Any, **kwargs: Any) -> Any:
        return function(pack_varargs(args), **kwargs)
    return packed


def enable_dict_arg(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function `f(**kwargs)` take one dict, too."""
    @functools.wraps(function)
    def packed(*args: Any, **kwargs: Any) -> Any:
        return function(**pack_kwargs(args, kwargs))
    return packed


def enable_kwargs(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function `f(options)` of a dict take keyword arguments, too."""
    @functools.wraps(function)
    def packed(*args: Any, **kwargs: Any) -> Any:
        return function(pack_kwargs(args, kwargs))
    return packed


# ── what a function takes ─────────────────────────────────────────────────────────────────────────────────────────────


def _takes(function: Callable[..., Any], kind: Any) -> bool:
    return any(parameter.kind is kind for parameter in inspect.signature(function).parameters.values())


def accepts_varargs(function: Callable[..., Any]) -> bool:
    """Return True if a function takes any number of positional arguments."""
    return _takes(function, inspect.Parameter.VAR_POSITIONAL)


def accepts_kwargs(function: Callable[..., Any]) -> bool:
    """Return True if a function takes keyword arguments of any name."""
    return _takes(function, inspect.Parameter.VAR_KEYWORD)


def is_signature_compatible(function: Callable[..., Any], *args: Any, **kwargs: Any) -> bool:
    """Return True if a function can be called with these arguments. The function is not called.

    >>> is_signature_compatible(lambda a, *, b=1: 0, 1, b=2), is_signature_compatible(lambda a: 0)
    (True, False)
    """
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True
