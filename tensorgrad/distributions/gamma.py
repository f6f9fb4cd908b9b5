"""Waiting times for several events; sums of exponential numbers."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import api as tg
from . import constraints
from .exp_family import ExponentialFamily
from .utils import EMPTY, broadcast_all

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """p(x) = rateᵃ·xᵃ⁻¹·exp(−rate·x) / Γ(a) for x ≥ 0 and a = concentration. → torch.distributions.Gamma

    >>> import tensorgrad as torch
    >>> torch.distributions.Gamma(torch.tensor([2.]), torch.tensor([4.])).log_prob(torch.tensor(0.5))
    tensor([0.0794])
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _expands = ("concentration", "rate")
    _mean_carrier_measure = 0

    def __init__(self, concentration: Tensor | float, rate: Tensor | float,
                 validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = tg._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        tiny = tg.finfo(value.dtype).tiny
        return value if (value >= tiny).all() else value.clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        value = tg.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check(value)
        a, rate = self.concentration, self.rate
        return tg.xlogy(a, rate) + tg.xlogy(a - 1, value) - rate * value - tg.lgamma(a)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return tg.igamma(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - tg.log(self.rate) + tg.lgamma(a) + (1 - a) * tg.digamma(a)

    @property
    def _natural_params(self):
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x, y):
        return tg.lgamma(x + 1) + (x + 1) * tg.log(-y.reciprocal())
