"""The normal distribution."""
from __future__ import annotations

from collections.abc import Sequence
from math import log, pi, sqrt
from typing import TYPE_CHECKING

from .. import api as tg
from . import constraints
from .exp_family import ExponentialFamily
from .utils import EMPTY, broadcast_all, same_as, standard_normal

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["Normal"]


class Normal(ExponentialFamily):
    """p(x) = exp(−(x − loc)² / (2·scale²)) / (scale·√(2π)). → torch.distributions.Normal

    >>> import tensorgrad as torch
    >>> torch.distributions.Normal(torch.tensor([0.]), torch.tensor([1.])).log_prob(torch.tensor(1.))
    tensor([-1.4189])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _expands = ("loc", "scale")
    _mean_carrier_measure = 0

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = mode = same_as("loc")
    stddev = same_as("scale")

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def sample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with tg.no_grad():
            return tg.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        return self.loc + standard_normal(self._extended_shape(sample_shape), self.loc) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return -((value - self.loc) ** 2) / (2 * self.scale ** 2) - self.scale.log() - log(sqrt(2 * pi))

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 0.5 * (1 + tg.erf((value - self.loc) * self.scale.reciprocal() / sqrt(2)))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * tg.erfinv(2 * value - 1) * sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * log(2 * pi) + tg.log(self.scale)

    @property
    def _natural_params(self):
        return self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()

    def _log_normalizer(self, x, y):
        return -0.25 * x.pow(2) / y + 0.5 * tg.log(-pi / y)
