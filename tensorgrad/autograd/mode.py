"""Whether the tape is on: no_grad, enable_grad, inference_mode. Each thread has modes of its own."""
from __future__ import annotations

import threading
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any

import numpy as np


class Mode(threading.local):
    """The modes of a thread. `record` is what writes the tape, or None while it is off."""

    grad = True
    inference = False
    recorder: Any = None   # what writes the tape while it is on: plain, or with features (anomaly mode, saved-tensor hooks)
    record: Any = None
    anomaly = False
    check_nan = True
    hooks: tuple[Any, ...] = ()   # saved_tensors_hooks in force

    def __init__(self) -> None:
        np.seterr(all="ignore")   # once a thread: infinities and NaN come without warnings, as in PyTorch

    def set_grad(self, on: bool) -> None:
        self.grad = on
        self.record = self.recorder if on else None

    def set_recorder(self, recorder: Any) -> None:
        self.recorder = recorder
        self.set_grad(self.grad)


mode = Mode()


class Switch:
    """A context manager that is a decorator too, of functions and of generators."""

    def __call__(self, function: Any) -> Any:
        if isinstance(function, type):
            raise TypeError(f"Cannot decorate classes; it is ambiguous whether only the constructor or all methods of "
                            f"{function.__name__} should run under {type(self).__name__}: decorate the methods")
        if isgeneratorfunction(function):
            @wraps(function)
            def stepped(*args: Any, **kwargs: Any) -> Any:
                generator, sent = function(*args, **kwargs), None
                while True:
                    try:
                        with self.clone():
                            value = generator.send(sent)
                    except StopIteration as stop:
                        return stop.value
                    sent = yield value
            return stepped

        @wraps(function)
        def switched(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)
        return switched

    def clone(self) -> Any:
        return type(self)()

    def __enter__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not say what it switches")

    def __exit__(self, *exception: object) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not say what it switches back")


class GradSwitch(Switch):
    """Sets the gradient mode, and restores it."""

    on: bool

    def __new__(cls, function: Any = None) -> Any:
        self = super().__new__(cls)
        return self if function is None else self(function)   # @no_grad without parentheses

    def __enter__(self) -> None:
        self.before = mode.grad
        mode.set_grad(self.on)

    def __exit__(self, *exception: object) -> None:
        mode.set_grad(self.before)


class no_grad(GradSwitch):
    """Nothing is recorded inside. https://pytorch.org/docs → no_grad

    >>> import tensorgrad as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> with torch.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    on = False


class enable_grad(GradSwitch):
    """Recording is on inside, also within no_grad. https://pytorch.org/docs → enable_grad"""

    on = True


class set_grad_enabled(Switch):
    """Turns recording on or off: at once, and until the end of the block if used as one. https://pytorch.org/docs → set_grad_enabled"""

    def __init__(self, mode: bool) -> None:
        self.before = _mode.grad
        self.on = mode
        _mode.set_grad(mode)

    def __call__(self, function: Any) -> Any:
        _mode.set_grad(self.before)
        return super().__call__(function)

    def clone(self) -> Any:
        return set_grad_enabled(self.on)

    def __enter__(self) -> None:
        _mode.set_grad(self.on)

    def __exit__(self, *exception: object) -> None:
        _mode.set_grad(self.before)


_mode = mode


class inference_mode(Switch):
    """Nothing is recorded inside, and what is made there may not enter a graph later. https://pytorch.org/docs → inference_mode"""

    def __new__(cls, mode: Any = True) -> Any:
        self = super().__new__(cls)
        self.on = True if callable(mode) else bool(mode)
        return self(mode) if callable(mode) else self

    def __init__(self, mode: Any = True) -> None:
        pass

    def clone(self) -> Any:
        return inference_mode(self.on)

    def __enter__(self) -> None:
        self.before = _mode.grad, _mode.inference
        _mode.inference = self.on
        _mode.set_grad(not self.on)

    def __exit__(self, *exception: object) -> None:
        _mode.inference = self.before[1]
        _mode.set_grad(self.before[0])


def is_grad_enabled() -> bool:
    """Whether operations are being recorded. https://pytorch.org/docs → is_grad_enabled"""
    return mode.grad


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on. https://pytorch.org/docs → is_inference_mode_enabled"""
    return mode.inference
