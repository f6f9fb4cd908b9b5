"""Waiting times."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import api as tg
from . import constraints
from .exp_family import ExponentialFamily
from .utils import EMPTY, broadcast_all

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """p(x) = rate·exp(−rate·x) for x ≥ 0. → torch.distributions.Exponential

    >>> import tensorgrad as torch
    >>> torch.distributions.Exponential(torch.tensor([2.])).icdf(torch.tensor(0.5))
    tensor([0.3466])
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _expands = ("rate",)
    _mean_carrier_measure = 0

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self.rate, = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return tg.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        return self.rate.new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 1 - tg.exp(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -tg.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1 - tg.log(self.rate)

    @property
    def _natural_params(self):
        return -self.rate,

    def _log_normalizer(self, x):
        return -tg.log(-x)
