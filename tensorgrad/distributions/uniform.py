"""Uniform numbers in an interval."""
from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING, Any

from .. import api as tg
from . import constraints
from .distribution import Distribution
from .utils import EMPTY, broadcast_all, uniform

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["Uniform"]


class Uniform(Distribution):
    """p(x) = 1 / (high − low) for low ≤ x < high. → torch.distributions.Uniform

    >>> import tensorgrad as torch
    >>> torch.distributions.Uniform(0., 5.).cdf(torch.tensor([1., 5.]))
    tensor([0.2000, 1.0000])
    """

    has_rsample = True
    _expands = ("low", "high")

    def __init__(self, low: Tensor | float, high: Tensor | float, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    @property
    def arg_constraints(self) -> Any:
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return nan * self.high

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / 12 ** 0.5

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        return self.low + uniform(self._extended_shape(sample_shape), self.low) * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        inside = self.low.le(value).type_as(self.low) * self.high.gt(value).type_as(self.low)
        return tg.log(inside) - tg.log(self.high - self.low)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return tg.log(self.high - self.low)
