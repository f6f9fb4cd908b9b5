"""Heavy tails: neither mean nor variance."""
from __future__ import annotations

from collections.abc import Sequence
from math import inf, log, nan, pi
from typing import TYPE_CHECKING

from .. import api as tg
from . import constraints
from .distribution import Distribution
from .utils import EMPTY, broadcast_all, same_as

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """p(x) = 1 / (π·scale·(1 + y²)) for y = (x − loc)/scale. → torch.distributions.Cauchy

    >>> import tensorgrad as torch
    >>> torch.distributions.Cauchy(0., 1.).cdf(torch.tensor([-1., 0., 1.]))
    tensor([0.2500, 0.5000, 0.7500])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _expands = ("loc", "scale")

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc.new_full(self._extended_shape(), nan)

    mode = same_as("loc")

    @property
    def variance(self) -> Tensor:
        return self.loc.new_full(self._extended_shape(), inf)

    def rsample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        return self.loc + self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_() * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return -log(pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return tg.atan((value - self.loc) / self.scale) / pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return tg.tan(pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return log(4 * pi) + self.scale.log()
