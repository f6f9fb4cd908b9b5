"""Means of a few normal numbers."""
from __future__ import annotations

from collections.abc import Sequence
from math import inf, lgamma, log, nan, pi
from typing import TYPE_CHECKING

from .. import api as tg
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import EMPTY, broadcast_all, same_as, standard_normal

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["StudentT"]


class StudentT(Distribution):
    """p(x) ∝ (1 + y²/df)^(−(df + 1)/2) for y = (x − loc)/scale. → torch.distributions.StudentT

    >>> import tensorgrad as torch
    >>> torch.distributions.StudentT(torch.tensor([1., 3.])).variance
    tensor([nan, 3.])
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _expands = ("df", "loc", "scale", "_chi2")

    def __init__(self, df: Tensor | float, loc: Tensor | float = 0.0, scale: Tensor | float = 1.0,
                 validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return tg.where(self.df <= 1, nan, self.loc)

    mode = same_as("loc")

    @property
    def variance(self) -> Tensor:
        df, finite = self.df, self.df > 2
        limit = tg.where(df > 1, inf, tg.where(df <= 1, nan, df))
        df = tg.where(finite, df, 3.0)
        return tg.where(finite, self.scale.pow(2) * df / (df - 2), limit)

    def rsample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        normal = standard_normal(self._extended_shape(sample_shape), self.df)
        return self.loc + self.scale * (normal * tg.rsqrt(self._chi2.rsample(sample_shape) / self.df))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        df, y = self.df, (value - self.loc) / self.scale
        normalizer = self.scale.log() + 0.5 * df.log() + 0.5 * log(pi) + tg.lgamma(0.5 * df) - tg.lgamma(0.5 * (df + 1))
        return -0.5 * (df + 1) * tg.log1p(y ** 2 / df) - normalizer

    def entropy(self) -> Tensor:
        df = self.df
        lbeta = tg.lgamma(0.5 * df) + lgamma(0.5) - tg.lgamma(0.5 * (df + 1))
        return (self.scale.log() + 0.5 * (df + 1) * (tg.digamma(0.5 * (df + 1)) - tg.digamma(0.5 * df)) + 0.5 * df.log()
                + lbeta)
