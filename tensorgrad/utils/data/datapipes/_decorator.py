"""Decorators of pipes that check arguments, samples and determinism."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, get_args, get_origin, get_type_hints

from .datapipe import IterDataPipe, MapDataPipe

__all__ = ['argument_validation', 'guaranteed_datapipes_determinism', 'non_deterministic', 'runtime_validation',
           'runtime_validation_disabled']


class _Switches:
    determinism, validation = False, True


class guaranteed_datapipes_determinism:
    """A `with` block, or a call, in which pipes that `non_deterministic` marks cannot be made."""

    def __init__(self) -> None:
        self.before, _Switches.determinism = _Switches.determinism, True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *raised: Any) -> None:
        _Switches.determinism = self.before


class non_deterministic:
    """Decorate a class of pipes whose order may vary: always, or where a function of the arguments is true."""

    def __init__(self, arg: type[IterDataPipe] | Callable[..., bool]) -> None:
        if isinstance(arg, type):
            if not issubclass(arg, IterDataPipe):
                raise TypeError('Only `IterDataPipe` can be decorated with `non_deterministic`, but '
                                f'{arg.__name__} is found')
            self.cls: Any = arg
        elif callable(arg):
            self.cls, self.deterministic_fn = None, arg
        else:
            raise TypeError(f'{arg} can not be decorated by non_deterministic')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls is not None:
            if _Switches.determinism:
                raise TypeError(f"{self.cls.__name__} is non-deterministic, but you set "
                                "'guaranteed_datapipes_determinism'. You can turn off determinism for this DataPipe if "
                                "that is acceptable for your application")
            return self.cls(*args, **kwargs)
        cls = args[0]
        if not (isinstance(cls, type) and issubclass(cls, IterDataPipe)):
            raise TypeError(f'Only `IterDataPipe` can be decorated, but {cls} is found')
        varies = self.deterministic_fn

        @functools.wraps(cls, updated=())
        def construct(*arguments: Any, **options: Any) -> Any:
            answer = varies(*arguments, **options)
            if not isinstance(answer, bool):
                raise TypeError('deterministic_fn of `non_deterministic` decorator is required to return a boolean '
                                f'value, but {type(answer)} is found')
            if answer and _Switches.determinism:
                raise TypeError(f"{cls.__name__} is non-deterministic with the inputs, but you set "
                                "'guaranteed_datapipes_determinism'. You can turn off determinism for this DataPipe if "
                                "that is acceptable for your application")
            return cls(*arguments, **options)
        return construct


def argument_validation(f: Any) -> Any:
    """Decorate an `__init__`: arguments that are annotated as pipes must be pipes."""
    signature, hints = inspect.signature(f), get_type_hints(f)

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            kind = get_origin(hints.get(name)) or hints.get(name)
            if isinstance(kind, type) and issubclass(kind, (IterDataPipe, MapDataPipe)) and not isinstance(value, kind):
                raise TypeError(f"Expected argument '{name}' as a {kind.__name__}, but found {type(value)}")
        return f(*args, **kwargs)
    return wrapper


@contextmanager
def runtime_validation_disabled() -> Iterator[None]:
    """A `with` block in which `runtime_validation` checks nothing."""
    before, _Switches.validation = _Switches.validation, False
    try:
        yield
    finally:
        _Switches.validation = before


def runtime_validation(f: Any) -> Any:
    """Decorate an `__iter__`: samples must be instances of T, where the class derives from `IterDataPipe[T]` and T is
    a class.
    """
    @functools.wraps(f)
    def wrapper(self: Any) -> Iterator[Any]:
        expected = next((kind for base in getattr(type(self), '__orig_bases__', ()) for kind in get_args(base)
                         if isinstance(kind, type)), object)
        for sample in f(self):
            if _Switches.validation and not isinstance(sample, expected):
                raise RuntimeError(f'Expected an instance as subtype of {expected}, but found an instance of '
                                   f'{type(sample)}({sample})')
            yield sample
    return wrapper
