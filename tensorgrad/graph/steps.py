"""Functions that a lowered graph calls besides the ops of the table: makers of arrays, random numbers, functions of
NumPy.

They are callables of tensors, like the graph's other functions, and equal if they do the same.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..api.random import generator_of
from ..core.dispatch import fresh, namespace
from ..core.tape import TensorBase
from ..dtype import FROM_NUMPY
from ..dtype import dtype as dtype_class
from ..storage.base import backend_of


class Target:
    """A function identified by its name."""

    __slots__ = ("name", "__name__")
    prefix = ""

    def __init__(self, name: str) -> None:
        self.name, self.__name__ = name, f"{self.prefix}{name}".replace(".", "_")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.name == self.name  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __repr__(self) -> str:
        return self.__name__


class Make(Target):
    """A new array: zeros, ones, full, arange, eye.

    >>> from tensorgrad.graph.steps import Make
    >>> Make("full")((2,), 7.0, dtype="float32")
    tensor([7., 7.])
    """

    __slots__ = ()
    prefix = "make_"

    def __call__(self, *args: Any, dtype: Any = None, **params: Any) -> Any:
        dtype = None if dtype is None else FROM_NUMPY[np.dtype(dtype)]
        return getattr(namespace(backend_of(None)), self.name)(*args, dtype=dtype, **params)


class Draw(Target):
    """Random numbers, drawn anew at each call by a method of the default generator.

    Tensors among the arguments are read.
    """

    __slots__ = ()
    prefix = "draw_"

    def __call__(self, *args: Any, **params: Any) -> Any:
        backend = next((type(a._storage) for a in args if isinstance(a, TensorBase)), backend_of(None))
        bare = [type(a._storage).host(a.array) if isinstance(a, TensorBase) else _of_array(a) for a in args]
        params = {name: _of_array(value) for name, value in params.items()}
        return fresh(backend.asarray(getattr(generator_of(backend, None), self.name)(*bare, **params)), backend)


def _of_array(value: Any) -> Any:
    """Return NumPy's dtype for one of this package; other values as they are."""
    return value.numpy if isinstance(value, dtype_class) else value


class Item(Target):
    """The number in a tensor of one element."""

    __slots__ = ()

    def __call__(self, x: Any) -> Any:
        return x.item()


class Foreign(Target):
    """A function of NumPy that is no op of the table. Its results are constants to gradients."""

    __slots__ = ("function",)

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        super().__init__(name)
        self.function = function

    def __call__(self, *args: Any, **params: Any) -> Any:
        backend: Any = backend_of(None)

        def bare(a: Any) -> Any:
            nonlocal backend
            if isinstance(a, (tuple, list)):
                return type(a)(map(bare, a))
            if isinstance(a, TensorBase):
                backend = type(a._storage)
                return backend.host(a.array)
            return a
        found = self.function(*bare(args), **{name: bare(value) for name, value in params.items()})
        return ([fresh(backend.asarray(part), backend) for part in found] if isinstance(found, (tuple, list))
                else fresh(backend.asarray(found), backend))
