"""How a row of the op samples is written: an op's inputs, each with its shape and domain, and its parameters.

    Sample(real(2, 3), positive(3), axis=1)                      two arrays and a parameter
    Sample(real(3, 4), None, 0.5).without("complex")             an input left out, a number; checks that do not apply

Values are drawn so that formulas are smooth around them: all elements of an array differ by more than the steps of
    central
differences, and none is next to 0.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

CHECKS = {
    "gradient": "first gradients against central differences",
    "second": "gradients of gradients against central differences",
    "complex": "the same for complex numbers",
    "dtype": "results and gradients have the dtype of the inputs",
    "half": "float16 and bfloat16",
    "strided": "inputs that are not contiguous",
    "device": "the bare formulas on a simulated device",
    "memory": "whose memory results and gradients lie in, and what is left in it",
    "batch": "vmap, whose results are stacked",
    "shapes": "shapes without values",
    "graph": "steps of graphs, and of symbolic models",
    "formulas": "gradient formulas on arrays that have operators and the functions of the table alone",
}
# of ops of sparse arrays, or with sparse gradients: neither has strides, nor a shape alone that tells what it takes
OF_DENSE_ARRAYS = "device", "memory", "batch", "shapes", "formulas"


@dataclass(frozen=True)
class Values:
    """An input array: floating point numbers between two bounds (f), complex ones (c), integers (i) or bools (b)."""

    shape: tuple[int, ...]
    low: float = -2.0
    high: float = 2.0
    kind: str = "f"
    order: str = ""          # along the last axis: 'distinct' integers, 'ascending' numbers
    learnt: bool = True      # whether an input that can have a gradient is to have one; one that is not stays real
    diagonal: float = 0.0    # added to the diagonals of matrices

    def draw(self, rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        """The array.

        Of the given floating point dtype, if it is one of such numbers; kind f becomes complex with a complex dtype.
        """
        if self.kind == "b":
            return rng.random(self.shape) < 0.5
        if self.kind == "i":
            return self._integers(rng)
        real = self._apart(rng)
        wide = np.result_type(dtype, np.complex64)
        if self.kind == "c":
            return np.asarray(real + 1j * self._apart(rng), wide)
        if dtype.kind == "c":
            return np.asarray(real + 1j * self._apart(rng), wide) if self.learnt else real.astype(np.finfo(wide).dtype)
        return real.astype(dtype)

    def _integers(self, rng: np.random.Generator) -> np.ndarray:
        if self.order == "distinct":
            rows = [rng.permutation(np.arange(self.low, self.high))[:self.shape[-1]]
                    for _ in range(math.prod(self.shape[:-1]))]
            return np.array(rows, "int64").reshape(self.shape)
        return rng.integers(int(self.low), int(self.high), self.shape)

    def _apart(self, rng: np.random.Generator) -> np.ndarray:
        """Numbers in random order, one from the middle of each of as many equal parts of the interval, and none next to
        0.
        """
        count = math.prod(self.shape)
        spots = (np.arange(count) + rng.uniform(0.25, 0.75, count)) / max(count, 1)
        values = self.low + (self.high - self.low) * rng.permutation(spots)
        gap = 0.02 * (self.high - self.low)
        values = np.where(np.abs(values) < gap, values + np.copysign(gap, values), values).reshape(self.shape)
        values = values + self.diagonal * np.eye(*self.shape[-2:]) if self.diagonal else values
        return np.sort(values) if self.order == "ascending" else values


@dataclass(frozen=True)
class Row:
    """A way to call an op: inputs, of which `Values` are drawn, and parameters."""

    inputs: tuple[Any, ...]
    params: dict[str, Any]
    skipped: frozenset[str] = frozenset()
    first: Callable[[Any], Any] = lambda x: x

    def without(self, *checks: str) -> Row:
        """Return the sample without some checks, which do not apply to it."""
        assert set(checks) <= set(CHECKS), checks
        return replace(self, skipped=self.skipped | set(checks))

    def through(self, function: Callable[[Any], Any]) -> Row:
        """Return the sample with `function` applied to the first input, a tensor: to make it symmetric, for
        instance.
        """
        return replace(self, first=function)

    def reshaped(self, shape: tuple[int, ...]) -> Row:
        """The sample with all its arrays in one shape."""
        return replace(self, inputs=tuple(replace(each, shape=shape) if isinstance(each, Values) else each
                                          for each in self.inputs))

    def prepared(self, inputs: Sequence[Any]) -> list[Any]:
        """The op's inputs, of tensors of the drawn arrays."""
        return [self.first(inputs[0]), *inputs[1:]]

    def draw(self, dtype: Any = "float64") -> list[Any]:
        """The inputs: arrays, and what is no array as it is. The same ones each time."""
        rng = np.random.default_rng(11)
        return [each.draw(rng, np.dtype(dtype)) if isinstance(each, Values) else each for each in self.inputs]

    def __repr__(self) -> str:
        shown = [list(each.shape) if hasattr(each, "shape") else each for each in self.inputs]
        return f"({', '.join([*map(str, shown), *(f'{name}={value}' for name, value in self.params.items())])})"


def Sample(*inputs: Any, **params: Any) -> Row:
    """A row of the table, as the rows write it."""
    return Row(inputs, params)


# ── domains ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def real(*shape: int) -> Values:
    """Numbers in (−2, 2), none of them next to 0."""
    return Values(shape)


def between(low: float, high: float, *shape: int) -> Values:
    """Numbers in (low, high)."""
    return Values(shape, low, high)


def positive(*shape: int) -> Values:
    """Numbers in (0.1, 3)."""
    return Values(shape, 0.1, 3.0)


def fixed(*shape: int) -> Values:
    """Numbers in (0.1, 2) that get no gradient: weights, probabilities."""
    return Values(shape, 0.1, 2.0, learnt=False)


def square(*shape: int) -> Values:
    """Matrices that are far from singular."""
    return Values(shape, diagonal=4.0)


def ascending(*shape: int) -> Values:
    """Numbers in order along the last axis."""
    return Values(shape, order="ascending")


def complex_(*shape: int) -> Values:
    """Complex numbers, whatever the dtype."""
    return Values(shape, kind="c")


def whole(low: int, high: int, *shape: int) -> Values:
    """Integers from low up to high, which is not one of them."""
    return Values(shape, low, high, "i")


def index(n: int, *shape: int) -> Values:
    """Indices below n, some of them twice."""
    return Values(shape, 0, n, "i")


def places(n: int, *shape: int) -> Values:
    """Indices below n that differ along the last axis."""
    return Values(shape, 0, n, "i", "distinct")


def mask(*shape: int) -> Values:
    """Bools."""
    return Values(shape, kind="b")
