"""Tensors without numbers: storage backends whose arrays are symbols, with a shape, a dtype, strides, and nothing else.

The formulas of the table run on symbols as on arrays, with the same shapes and dtypes as results: nothing is computed,
whatever the sizes are. `SymbolStorage` has all that tensors without numbers share. Its two subclasses differ in how
their tensors meet others:

* `MetaStorage` is the device "meta", as PyTorch has it: its tensors refuse operands from other devices, and a copy to
  another device. https://pytorch.org/docs/stable/meta.html
* `FakeStorage` is that of fake tensors, which pass for tensors of any device while a model runs for its shapes:
  ordinary tensors, such as the model's parameters, may be operands, and code that asks for the device is told "cpu".
  Reading a value raises NoValues, upon which the caller may run the model with values.

Neither has unknown sizes: a symbol's sizes are integers. symbolic/shape_inference.py runs a model twice, with two
    values
for each unknown size. Neither records: graph/recorded.py wraps a symbol together with the step of the graph that gives
it.
"""
from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np

from ..device import device as Device
from ..storage.base import NoValues, Storage
from .symbol import Symbol, in_columns, together
from .symbol_functions import Functions, as_symbol, rule_of

__all__ = ["FakeStorage", "MetaStorage", "NoValues", "Symbol", "SymbolStorage"]

KEY = "symbols"       # the name of the backend of fake tensors


class Place(Device):
    """The CPU to all who ask; new tensors that are made on it are symbols, too."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("cpu")
        self._text = KEY

    def __str__(self) -> str:
        return "cpu"

    def __eq__(self, other: object) -> bool:
        return str(other) == "cpu" if isinstance(other, (Device, str)) else NotImplemented

    def __hash__(self) -> int:
        return hash("cpu")


class Draws:
    """A generator that gives symbols, and stays where it is."""

    def __init__(self, generator: Any) -> None:
        kind: Any = type(generator)
        self.device, self.spare = generator.device, spare(kind)

    def __getattr__(self, name: str) -> Any:
        """Numbers of a shape."""
        return lambda shape, *args, **params: Symbol(sizes(shape), drawn(self.spare, name, args, tuple(params.items())))

    def randint(self, low: int, high: int, shape: Any, dtype: Any = np.int64) -> Any:
        return self.random_(shape, dtype, low, high)

    def randperm(self, n: int, dtype: Any = np.int64) -> Any:
        return Symbol((n,), dtype)

    def bernoulli(self, p: Any, shape: Any = None, dtype: Any = np.float32) -> Any:
        if hasattr(p, "shape"):
            return Symbol(p.shape if shape is None else sizes(shape), dtype)
        return Symbol(sizes(shape), self.spare.bernoulli(p, (0,), dtype).dtype)

    def normal_around(self, mean: Any, std: Any) -> Any:
        return Symbol(together(np.shape(mean) if np.isscalar(mean) else mean.shape, getattr(std, "shape", ())),
                      getattr(mean, "dtype", None) or std.dtype)

    def standard_gamma(self, alpha: Any) -> Any:
        return Symbol(alpha.shape, alpha.dtype)

    dirichlet = poisson = standard_gamma

    def binomial(self, count: Any, p: Any) -> Any:
        return Symbol(together(count.shape, p.shape), count.dtype)

    def multinomial(self, weights: Any, n: int, replacement: bool = False) -> Any:
        self.spare.multinomial(np.ones((1,) * (weights.ndim - 1) + weights.shape[-1:], weights.dtype), n, replacement)
        return Symbol((*weights.shape[:-1], n), np.int64)


@cache
def spare(kind: Any) -> Any:
    """Return a generator that checks arguments for symbols; no other stream advances."""
    return kind()


@lru_cache(1024)
def drawn(generator: Any, name: str, args: Any, params: Any) -> Any:
    """Return the dtype of drawn numbers; raise the generator's errors for arguments out of range."""
    return getattr(generator, name)((0,), *args, **dict(params)).dtype


def sizes(shape: Any) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


class SymbolStorage(Storage):
    """The storage of symbols, which have no memory. Reading values raises NoValues."""

    module = Functions()
    array_type = Symbol
    hollow = True
    writes = False
    draws = Draws
    column_major = staticmethod(in_columns)

    @classmethod
    def asarray(cls, data: Any, dtype: Any = None) -> Any:
        return as_symbol(data, dtype)

    @classmethod
    def host(cls, array: Any) -> Any:
        raise NoValues("reading a tensor")

    @classmethod
    def native(cls, op: Any) -> Any:
        found = rule_of(op)
        return super().native(op) if found is None else found


class MetaStorage(SymbolStorage):
    """The device "meta"."""

    device = "meta"

    @classmethod
    def host(cls, array: Any) -> Any:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")


class FakeStorage(SymbolStorage):
    """The storage of fake tensors, which pass for tensors of any device."""

    leads = True


FakeStorage.device = Place()
Storage.by_device[KEY] = FakeStorage
Symbol.served_by(SymbolStorage)
