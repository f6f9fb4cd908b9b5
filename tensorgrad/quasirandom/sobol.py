"""Sobol sequences in Gray code order, and their random shifts and scramblings. The points are PyTorch's, bit for bit.

A dimension has a direction number vₖ for each bit k. Point n + 1 is point n, XOR vₖ for the lowest zero bit k of n:
one accumulated XOR draws any number of points.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ..api import FUNCTIONS, Tensor, get_default_dtype
from ..api.creation import from_numpy
from ..generator import Generator
from . import directions


class SobolEngine:
    """A Sobol sequence in the unit cube [0, 1)ᵈ.

    Points of the sequence have small discrepancy: the mean of a smooth function over n of them approaches its integral
    faster than over n random points, and fastest over the first 2ᵐ points (`draw_base2`).

    Input: dimension, 1 … 21201, of which those above 1111 need the package scipy; scramble, to randomize the sequence
        and keep its evenness; seed of that
    Errors: ValueError for another dimension; ImportError without scipy
    https://pytorch.org/docs → torch.quasirandom.SobolEngine

    >>> import tensorgrad as torch
    >>> sobol = torch.quasirandom.SobolEngine(dimension=2)
    >>> sobol.draw(4)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500],
            [0.2500, 0.7500]])
    """

    MAXBIT = 30
    MAXDIM = directions.MAXDIM

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        numbers = direction_numbers(dimension, self.MAXBIT)
        shift = np.zeros(dimension, np.int64)
        if scramble:
            shift, numbers = scrambled(numbers, seed)
        self.sobolstate, self.shift = from_numpy(numbers), from_numpy(shift)
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2 ** self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Return the next n points.

        Output: (n, dimension)
        https://pytorch.org/docs → torch.quasirandom.SobolEngine.draw
        """
        dtype = get_default_dtype() if dtype is None else dtype
        first = [self._first_point.to(dtype)] if self.num_generated == 0 else []
        points = self._advance(n - len(first))
        result = from_numpy(points).to(dtype).mul_(2.0 ** -self.MAXBIT)
        result = FUNCTIONS["cat"]([*first, result], dim=-2) if first else result
        self.num_generated += n
        return result if out is None else out.resize_as_(result).copy_(result)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Return the next 2ᵐ points; ValueError unless the number of points drawn is then a power of two.

        https://pytorch.org/docs → torch.quasirandom.SobolEngine.draw_base2
        """
        n = 2 ** m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError("The balance properties of Sobol' points require n to be a power of 2. "
                             f"{self.num_generated} points have been previously generated, then: "
                             f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                             f"'SobolEngine.draw()' instead.")
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Start again from the first point. https://pytorch.org/docs → torch.quasirandom.SobolEngine.reset"""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip n points. https://pytorch.org/docs → torch.quasirandom.SobolEngine.fast_forward"""
        self._advance(n if self.num_generated else n - 1, skip=True)
        self.num_generated += n
        return self

    def _advance(self, n: int, skip: bool = False) -> Any:
        """Return the n points after the last one as integers, and make the last of them the state."""
        begin = max(self.num_generated - 1, 0)
        count = np.arange(begin, begin + n)
        lowest_zero = np.frexp((count ^ (count + 1)).astype(np.float64))[1] - 1
        if n and begin + n > (1 << self.MAXBIT) - 1:
            raise RuntimeError(f"a Sobol sequence has 2**{self.MAXBIT} points: reset() starts it again")
        quasi, numbers = self.quasi.array, self.sobolstate.array
        if skip:
            odd = np.bincount(lowest_zero, minlength=self.MAXBIT) % 2 == 1
            quasi ^= np.bitwise_xor.reduce(numbers[:, odd], axis=1)
            return None
        points = np.bitwise_xor.accumulate(np.concatenate([quasi[None], numbers.T[lowest_zero]]), axis=0)[1:]
        if n:
            self.quasi = from_numpy(points[-1].copy())
        return points

    def __repr__(self) -> str:
        shown = [f"dimension={self.dimension}"]
        if self.scramble:
            shown.append("scramble=True")
        if self.seed is not None:
            shown.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(shown)})"


def direction_numbers(dimension: int, bits: int) -> Any:
    """Return the direction numbers, (dimension, bits): mₖ, continued by the polynomial's recurrence, times 2^(bits−k).

    With the polynomial xˢ + a₁xˢ⁻¹ + … + 1, mₖ is mₖ₋ₛ XOR 2ˢmₖ₋ₛ XOR the 2ʲaⱼmₖ₋ⱼ.
    """
    parts = [np.ones((1, bits), np.int64)]
    for polynomials, numbers in directions.blocks(dimension):
        degree = numbers.shape[1]
        made = np.zeros((len(numbers), bits), np.int64)
        made[:, :min(degree, bits)] = numbers
        for k in range(degree, bits):
            made[:, k] = made[:, k - degree]
            for j in range(1, degree + 1):
                made[:, k] ^= (polynomials >> (degree - j) & 1) * (made[:, k - j] << j)
        parts.append(made)
    return np.concatenate(parts) << np.arange(bits)[::-1]


def scrambled(numbers: Any, seed: int | None) -> tuple[Any, Any]:
    """Return a random shift, and the direction numbers under a random lower triangular matrix of bits per dimension."""
    dimension, bits = numbers.shape
    generator = None if seed is None else Generator().manual_seed(seed)
    randint = FUNCTIONS["randint"]
    shift = randint(2, (dimension, bits), generator=generator).array @ (1 << np.arange(bits))
    matrices = np.tril(randint(2, (dimension, bits, bits), generator=generator).array)
    matrices[:, range(bits), range(bits)] = 1
    places = np.arange(bits)[::-1]                      # the first bit of a row is the highest
    digits = numbers[:, None, :] >> places[:, None] & 1
    return shift, (1 << places) @ (matrices @ digits % 2)
