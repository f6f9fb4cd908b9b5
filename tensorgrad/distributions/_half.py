"""The positive half of a distribution that is symmetric about zero."""
from __future__ import annotations

from math import inf, log
from typing import TYPE_CHECKING, Any

from .. import api as tg
from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform
from .utils import same_as

if TYPE_CHECKING:
    from .._tensor import Tensor


class Half(TransformedDistribution):
    """|X| for X from a symmetric distribution: twice its density above zero, none below."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _expands = ("base_dist",)

    scale = same_as("base_dist.scale")

    def __init__(self, whole: Any, validate_args: bool | None = None) -> None:
        super().__init__(whole, AbsTransform(), validate_args=validate_args)

    @property
    def mode(self) -> Tensor:
        return tg.zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return tg.where(value >= 0, self.base_dist.log_prob(value) + log(2), -inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Any) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - log(2)
