"""Tensors without numbers: a storage backend whose arrays have a shape and a dtype, and nothing else.

The formulas of the table run on symbols as on arrays, with the same shapes and dtypes as results: nothing is computed,
whatever the sizes are. Ordinary tensors, such as a model's parameters, may be operands, on any device.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ..device import device as Device
from ..storage.base import NoValues, Storage
from ._symbol import Symbol, in_columns, together
from ._symbol_functions import Functions, as_symbol, rule_of

__all__ = ["NoValues", "Symbol", "SymbolStorage"]

KEY = "symbols"       # the name of this backend


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
        self.device, self.spare = generator.device, type(generator)()       # who checks arguments, and draws nothing

    def __getattr__(self, name: str) -> Any:
        """Numbers of a shape."""
        draw = getattr(self.spare, name)
        return lambda shape, *args, **params: Symbol(sizes(shape), draw((0,), *args, **params).dtype)

    def randint(self, low: int, high: int, shape: Any, dtype: Any = np.int64) -> Any:
        return self.random_(shape, dtype, low, high)

    def randperm(self, n: int, dtype: Any = np.int64) -> Any:
        return Symbol((n,), dtype)

    def bernoulli(self, p: Any, shape: Any = None, dtype: Any = np.float32) -> Any:
        if hasattr(p, "shape"):
            return Symbol(p.shape if shape is None else sizes(shape), dtype)
        return Symbol(sizes(shape), self.spare.bernoulli(p, (0,), dtype).dtype)

    def normal_around(self, mean: Any, std: Any) -> Any:
        return Symbol(together(np.shape(mean) if np.isscalar(mean) else mean.shape, getattr(std, "shape", ())), getattr(mean, "dtype", None) or std.dtype)

    def standard_gamma(self, alpha: Any) -> Any:
        return Symbol(alpha.shape, alpha.dtype)

    dirichlet = poisson = standard_gamma

    def binomial(self, count: Any, p: Any) -> Any:
        return Symbol(together(count.shape, p.shape), count.dtype)

    def multinomial(self, weights: Any, n: int, replacement: bool = False) -> Any:
        self.spare.multinomial(np.ones((1,) * (weights.ndim - 1) + weights.shape[-1:], weights.dtype), n, replacement)
        return Symbol((*weights.shape[:-1], n), np.int64)


def sizes(shape: Any) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


class SymbolStorage(Storage):
    """The storage of symbols, which have no memory."""

    module = Functions()
    array_type = Symbol
    leads = True
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


SymbolStorage.device = Place()
Storage.by_device[KEY] = SymbolStorage
Symbol.served_by(SymbolStorage)
