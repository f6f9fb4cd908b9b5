"""Two exponential distributions back to back."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import api as tg
from . import constraints
from .distribution import Distribution
from .utils import EMPTY, broadcast_all, same_as

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["Laplace"]


class Laplace(Distribution):
    """p(x) = exp(−|x − loc|/scale) / (2·scale). → torch.distributions.Laplace

    >>> import tensorgrad as torch
    >>> torch.distributions.Laplace(0., 1.).log_prob(torch.tensor([-1., 0.]))
    tensor([-1.6931, -0.6931])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _expands = ("loc", "scale")

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = mode = same_as("loc")

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        return 2 ** 0.5 * self.scale

    def rsample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        u = self.loc.new_empty(self._extended_shape(sample_shape)).uniform_(tg.finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * tg.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return -tg.log(2 * self.scale) - tg.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        distance = value - self.loc
        return 0.5 - 0.5 * distance.sign() * tg.expm1(-distance.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * tg.log1p(-2 * term.abs())

    def entropy(self) -> Tensor:
        return 1 + tg.log(2 * self.scale)
