"""Small helpers: checks, enumerations of names, parts of dicts, decorators."""
from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

__all__ = ["StringEnum", "assert_type", "case_insensitive_match", "create_string_enum", "deprecated", "exclude_keys",
           "fformat", "get_enum", "include_keys", "iter_last", "meta_wrap", "method_decorator", "noop_context",
           "print_"]


def assert_type(x: Any, expected: Any, message: str | None = None) -> bool:
    """Raise AssertionError unless an object is of a type, or of one of several in a tuple or list."""
    kinds = tuple(expected) if isinstance(expected, (tuple, list)) else (expected,)
    if not isinstance(x, kinds):
        raise AssertionError(message or f"expected {' or '.join(kind.__name__ for kind in kinds)}, got "
                                        f"{type(x).__name__}: {x!r}")
    return True


def print_(*args: Any, header: str = "", **kwargs: Any) -> None:
    """Print after a header, and flush."""
    print(*([header] if header else []), *args, **{"flush": True, **kwargs})


def fformat(number: float, precision: int = 3) -> str:
    """Format a number with at most `precision` decimals, without trailing zeros.

    >>> fformat(2.5), fformat(1 / 3), fformat(-0.0001)
    ('2.5', '0.333', '0')
    """
    text = f"{number:.{precision}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


# ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class StringEnum(StrEnum):
    """An enumeration whose members, made with `enum.auto()`, are their own names and equal to them.

    >>> from enum import auto
    >>> class Fruit(StringEnum):
    ...     apple = auto()
    >>> Fruit.apple == "apple", str(Fruit.apple), Fruit["apple"] is Fruit("apple")
    (True, 'apple', True)
    """

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[Any]) -> str:
        return name


def create_string_enum(class_name: str, option_names: Any) -> Any:
    """Make a `StringEnum` of these names: a list or tuple, or a string with spaces between.

    >>> list(map(str, create_string_enum("Mode", ["train", "test"])))
    ['train', 'test']
    """
    names = option_names.split() if isinstance(option_names, str) else option_names
    assert_type(class_name, str)
    assert_type(names, (list, tuple))
    for name in names:
        assert_type(name, str)
    return StringEnum(class_name, list(names))  # type: ignore[call-arg]


def get_enum(enum_class: Any, option: Any) -> Any:
    """Return the member that is given as itself, by its name or by its value. Errors: ValueError lists the members."""
    if isinstance(option, enum_class):
        return option
    if isinstance(option, str) and option in enum_class.__members__:
        return enum_class[option]
    try:
        return enum_class(option)
    except ValueError:
        raise ValueError(
            f"{option!r} is no option of {enum_class.__name__}: {', '.join(enum_class.__members__)}") from None


def case_insensitive_match(items: Iterable[str], name: str) -> str | None:
    """Return the first item that equals a name up to case, or None.

    >>> case_insensitive_match(["Linear", "ReLU"], "relu")
    'ReLU'
    """
    return next((item for item in items if item.casefold() == name.casefold()), None)


# ── parts ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def include_keys(include: Iterable[Any], mapping: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the part of a dict with these keys; missing keys are ignored.

    >>> include_keys(["a", "z"], {"a": 1, "b": 2}), exclude_keys(["a", "z"], {"a": 1, "b": 2})
    ({'a': 1}, {'b': 2})
    """
    wanted = set(include)
    return {key: value for key, value in mapping.items() if key in wanted}


def exclude_keys(exclude: Iterable[Any], mapping: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the part of a dict without these keys."""
    unwanted = set(exclude)
    return {key: value for key, value in mapping.items() if key not in unwanted}


def iter_last(iterable: Iterable[Any]) -> Iterator[tuple[bool, Any]]:
    """Yield (True for the last item, item).

    >>> list(iter_last("ab"))
    [(False, 'a'), (True, 'b')]
    """
    iterator = iter(iterable)
    try:
        item = next(iterator)
    except StopIteration:
        return
    for following in iterator:
        yield False, item
        item = following
    yield True, item


# ── decorators ────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def noop_context(*args: Any, **kwargs: Any) -> Iterator[None]:
    """A context manager that does nothing, and ignores its arguments."""
    yield


def meta_wrap(decorator: Callable[..., Any]) -> Callable[..., Any]:
    """Let a decorator with options be written as `@decorator` and as `@decorator(**options)`.

    The decorator itself has the signature `decorator(function, **options)`.
    """
    @functools.wraps(decorator)
    def flexible(*args: Any, **options: Any) -> Any:
        if len(args) == 1 and callable(args[0]) and not options:
            return decorator(args[0])
        return lambda function: decorator(function, *args, **options)
    return flexible


@meta_wrap
def deprecated(function: Callable[..., Any], message: str = "") -> Callable[..., Any]:
    """Let a function warn (DeprecationWarning) when it is called: `@deprecated` or `@deprecated('use this
    instead')`.
    """
    @functools.wraps(function)
    def warned(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(f"{function.__name__}() is deprecated{': ' if message else ''}{message}", DeprecationWarning,
                      stacklevel=2)
        return function(*args, **kwargs)
    return warned


def method_decorator(decorator: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a decorator of functions into a decorator of methods: the decorated function does not get `self`.

    >>> @method_decorator
    ... def doubled(function):
    ...     return lambda *args: 2 * function(*args)
    >>> class Counter:
    ...     @doubled
    ...     def add(self, n):
    ...         return n + 1
    >>> Counter().add(1)
    4
    """
    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def bound(self: Any, *args: Any, **kwargs: Any) -> Any:
            return decorator(functools.partial(method, self))(*args, **kwargs)
        return bound
    return decorate
