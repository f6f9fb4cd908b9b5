"""Formulas of sizes that vary, for the numbers of a graph, fitted to the numbers at several sizes.

A formula is a polynomial of the sizes of degree two at most, or the floor of a fraction of one size. At each of the
sizes its value must be the number.
"""
from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement
from math import prod
from typing import NamedTuple

import numpy as np

Point = dict[str, int]              # the size that each symbol has
DIVISORS = range(2, 17)


class Formula(NamedTuple):
    """(Σ coefficient · product of sizes + offset) // divisor.

    >>> half = Formula((((1, ("n",))),), 1, 2)
    >>> half.at({"n": 8}), str(half)
    (4, '(n + 1) // 2')
    """

    terms: tuple[tuple[int, tuple[str, ...]], ...]
    offset: int = 0
    divisor: int = 1

    def at(self, point: Point) -> int:
        """Return the number at these sizes."""
        return (sum(c * prod(point[name] for name in names) for c, names in self.terms) + self.offset) // self.divisor

    def __str__(self) -> str:
        parts = ["*".join(([] if c == 1 else [str(c)]) + list(names)) for c, names in self.terms]
        text = " + ".join(parts + [str(self.offset)] * (self.offset != 0)).replace("+ -", "- ")
        return text if self.divisor == 1 else f"({text}) // {self.divisor}"


def formula_of(values: Sequence[int], points: Sequence[Point]) -> Formula | None:
    """Return a formula with these values at these points; None if no formula of the kinds fits.

    >>> points = [{"n": n, "m": m} for n, m in [(3, 5), (2, 2), (7, 11), (4, 9), (30, 17), (5, 3), (8, 6)]]
    >>> str(formula_of([2 * p["n"] * p["m"] for p in points], points))
    '2*n*m'
    """
    symbols = list(points[0])
    products = [names for degree in (1, 2) for names in combinations_with_replacement(symbols, degree)]
    for names in products:                      # the usual numbers: one product
        sizes = [prod(point[name] for name in names) for point in points]
        other = next((i for i, size in enumerate(sizes) if size != sizes[0]), None)
        if other is None or (values[other] - values[0]) % (sizes[other] - sizes[0]):
            continue
        factor = (values[other] - values[0]) // (sizes[other] - sizes[0])
        if factor and all(values[0] + factor * (size - sizes[0]) == v for size, v in zip(sizes, values, strict=True)):
            return Formula(((factor, names),), values[0] - factor * sizes[0])
    return polynomial(values, points, products) or next(
        (found for name in symbols if (found := floor(values, points, name)) is not None), None)


def polynomial(values: Sequence[int], points: Sequence[Point], products: list[tuple[str, ...]]) -> Formula | None:
    """Return the sum of products that has these values; None unless there are more points than unknowns."""
    if len(points) <= len(products) + 1:
        return None
    rows = np.array([[prod(point[name] for name in names) for names in products] + [1] for point in points], float)
    found = np.linalg.lstsq(rows, np.array(values, float), rcond=None)[0]
    *factors, offset = (int(round(number)) for number in found)
    made = Formula(tuple((c, names) for c, names in zip(factors, products, strict=True) if c), offset)
    return made if agrees(made, values, points) else None


def floor(values: Sequence[int], points: Sequence[Point], name: str) -> Formula | None:
    """Return the floor of a fraction of one size, if just one has these values."""
    sizes = [point[name] for point in points]
    far = max(range(len(sizes)), key=sizes.__getitem__)
    for divisor in DIVISORS:
        factor = round(values[far] * divisor / sizes[far])
        low = max(divisor * v - factor * size for v, size in zip(values, sizes, strict=True))
        high = min(divisor * (v + 1) - 1 - factor * size for v, size in zip(values, sizes, strict=True))
        if factor and low == high:
            return Formula(((factor, (name,)),), low, divisor)
    return None


def fraction_of(values: Sequence[float], points: Sequence[Point]) -> tuple[Formula, Formula] | None:
    """Return the formulas of the numerator and the denominator of 1 / n or n / (n - 1) with these values.

    >>> points = [{"n": n} for n in (3, 2, 7, 4, 30)]
    >>> [str(part) for part in fraction_of([8 * p["n"] / (8 * p["n"] - 1) for p in points], points)]
    ['8*n', '8*n - 1']
    """
    for top in (0, 1):
        if all(value > top for value in values):
            whole = [round(1 / (value - top)) for value in values]      # the denominator
            if all(value == (n + 1 if top else 1) / n for value, n in zip(values, whole, strict=True) if n):
                below = formula_of(whole, points)
                if below is not None:
                    return (below._replace(offset=below.offset + 1) if top else Formula((), 1)), below
    return None


def agrees(made: Formula, values: Sequence[int], points: Sequence[Point]) -> bool:
    return all(made.at(point) == value for value, point in zip(values, points, strict=True))
