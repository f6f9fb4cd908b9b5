"""Ratios of variances."""
from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING

from .. import api as tg
from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .utils import EMPTY, broadcast_all

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """(X₁/df1) / (X₂/df2) for X₁ and X₂ from Chi2(df1) and Chi2(df2). → torch.distributions.FisherSnedecor

    >>> import tensorgrad as torch
    >>> torch.distributions.FisherSnedecor(torch.tensor([1.]), torch.tensor([4.])).mean
    tensor([2.])
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _expands = ("df1", "df2", "_gamma1", "_gamma2")

    def __init__(self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        df2 = tg.where(self.df2 <= 2, nan, self.df2)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return tg.where(self.df1 <= 2, nan, mode)

    @property
    def variance(self) -> Tensor:
        df2 = tg.where(self.df2 <= 4, nan, self.df2)
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        x1, x2 = self._gamma1.rsample(sample_shape), self._gamma2.rsample(sample_shape)
        tiny = tg.finfo(x2.dtype).tiny
        return (x1 / x2.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        shape = (a + b).lgamma() - a.lgamma() - b.lgamma()
        return shape + (a * ratio.log() + (a - 1) * tg.log(value)) - (a + b) * tg.log1p(ratio * value)
