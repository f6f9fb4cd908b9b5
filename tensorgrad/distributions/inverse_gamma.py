"""Reciprocals of gamma numbers: the conjugate prior of a variance."""
from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from .. import api as tg
from . import constraints
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform
from .utils import same_as

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """1/X for X from Gamma(concentration, rate). → torch.distributions.InverseGamma

    >>> import tensorgrad as torch
    >>> torch.distributions.InverseGamma(torch.tensor([2.]), torch.tensor([3.])).mean
    tensor([3.])
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _expands = ("base_dist",)

    def __init__(self, concentration: Tensor | float, rate: Tensor | float,
                 validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    concentration = same_as("base_dist.concentration")
    rate = same_as("base_dist.rate")

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return tg.where(a > 1, self.rate / (a - 1), inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return tg.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
