"""Numbers that depend on the sizes of dynamic axes.

A model is traced several times, with other sizes along its dynamic axes. A number that is equal in all traces is a
constant; any other is a `Varying`, and is expressed by the sizes of the inputs: as a multiple of their product, or as a
sum of multiples of them, that is right in each trace.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from math import prod
from typing import Any, NamedTuple

import numpy as np


class Varying:
    """An integer that differs between traces. Arithmetic applies to its values of all traces."""

    __slots__ = ("values",)

    def __init__(self, values: Sequence[int]) -> None:
        self.values = tuple(values)

    def _with(self, other: Any, function: Callable[[int, int], int]) -> Any:
        others = other.values if isinstance(other, Varying) else (other,) * len(self.values)
        return varying([function(a, b) for a, b in zip(self.values, others, strict=True)])

    def __add__(self, other: Any) -> Any:       return self._with(other, lambda a, b: a + b)
    def __sub__(self, other: Any) -> Any:       return self._with(other, lambda a, b: a - b)
    def __mul__(self, other: Any) -> Any:       return self._with(other, lambda a, b: a * b)
    def __floordiv__(self, other: Any) -> Any:  return self._with(other, lambda a, b: a // b)
    def __rsub__(self, other: Any) -> Any:      return self._with(other, lambda a, b: b - a)
    def __neg__(self) -> Any:                   return self * -1
    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Varying) and self.values == other.values

    def __hash__(self) -> int:
        return hash(self.values)

    def __repr__(self) -> str:
        return f"Varying{self.values}"


class Unequal(Exception):
    """A value other than an integer differs between traces."""


def varying(values: Sequence[int]) -> Any:
    """Return the number if it is equal in all traces, else a Varying."""
    return values[0] if all(v == values[0] for v in values) else Varying(values)


def merged(values: Sequence[Any]) -> Any:
    """Merge a step's parameter from its values in the traces. Unequal if they differ in more than integers."""
    first = values[0]
    if len(values) == 1 or all(v is first for v in values):
        return first
    if any(type(v) is not type(first) for v in values):
        raise Unequal
    if isinstance(first, int) and not isinstance(first, bool):
        return varying(values)
    if isinstance(first, (tuple, list)):
        if any(len(v) != len(first) for v in values):
            raise Unequal
        return type(first)(merged(parts) for parts in zip(*values, strict=True))
    if isinstance(first, dict):
        return {key: merged([v[key] for v in values]) for key in first}
    if isinstance(first, slice):
        return slice(*(merged([getattr(v, part) for v in values]) for part in ("start", "stop", "step")))
    same = (all(np.array_equal(v, first) for v in values) if isinstance(first, np.ndarray)
            else all(v == first or v != v and first != first for v in values))
    if not same:
        raise Unequal
    return first


class Formula(NamedTuple):
    """A number as (constant + Σ factor · Π sizes) / divisor. Each term lists the sizes that it multiplies."""

    constant: int
    terms: tuple[tuple[int, tuple[int, ...]], ...]
    divisor: int


def formula(number: Varying, sizes: Sequence[Sequence[int]]) -> Formula | None:
    """Express a number by sizes, each given by its values in all traces: a multiple of a product, or a sum of
    multiples; None if neither fits."""
    for count in (1, 2, 3):
        for chosen in combinations_with_replacement(range(len(sizes)), count):
            products = [prod(sizes[k][t] for k in chosen) for t in range(len(number.values))]
            ratio = Fraction(number.values[0], products[0]) if products[0] else None
            if ratio and all(ratio * p == v for p, v in zip(products, number.values, strict=True)):
                return Formula(0, ((ratio.numerator, chosen),), ratio.denominator)
    return _affine(number, sizes)


def _affine(number: Varying, sizes: Sequence[Sequence[int]]) -> Formula | None:
    """Express a number as a sum of multiples of the sizes; in trace k + 1, only size k differs from trace 0."""
    slopes = []
    for k, size in enumerate(sizes):
        change = size[k + 1] - size[0]
        slopes.append(Fraction(number.values[k + 1] - number.values[0], change))
    constant = number.values[0] - sum(a * size[0] for a, size in zip(slopes, sizes, strict=True))
    for t, value in enumerate(number.values):
        if constant + sum(a * size[t] for a, size in zip(slopes, sizes, strict=True)) != value:
            return None
    divisor = int(np.lcm.reduce([f.denominator for f in (*slopes, Fraction(constant))]))
    return Formula(int(constant * divisor), tuple((int(a * divisor), (k,)) for k, a in enumerate(slopes) if a), divisor)
