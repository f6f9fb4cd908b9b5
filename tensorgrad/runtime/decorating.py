"""Decorators made of context managers, for functions and for generators."""
from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any

GENERATOR = 0x20      # inspect.CO_GENERATOR


def decorated(function: Any, context: Callable[[], AbstractContextManager[Any]]) -> Any:
    """Wrap a function so that it runs in `context()`; a generator function, so that its generators do so between
    yields."""
    if getattr(getattr(function, "__code__", None), "co_flags", 0) & GENERATOR:
        return _stepped(function, context)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with context():
            return function(*args, **kwargs)
    return call


def _stepped(function: Any, context: Callable[[], AbstractContextManager[Any]]) -> Any:
    """Wrap a generator function so that its generators run in `context()`, and leave it at each yield."""
    @wraps(function)
    def generate(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        resume, value = generator.send, None
        while True:
            try:
                with context():
                    shown = resume(value)
            except StopIteration as stop:
                return stop.value
            try:
                resume, value = generator.send, (yield shown)
            except GeneratorExit:
                with context():
                    generator.close()
                raise
            except BaseException as error:
                resume, value = generator.throw, error
    return generate
