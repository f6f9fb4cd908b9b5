"""Means of a few normal numbers."""
from math import inf, lgamma, log, nan, pi

from .. import api as tg
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import EMPTY, broadcast_all, same_as, standard_normal

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

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self):
        return tg.where(self.df <= 1, nan, self.loc)

    mode = same_as("loc")

    @property
    def variance(self):
        df, finite = self.df, self.df > 2
        limit = tg.where(df > 1, inf, tg.where(df <= 1, nan, df))
        df = tg.where(finite, df, 3.0)
        return tg.where(finite, self.scale.pow(2) * df / (df - 2), limit)

    def rsample(self, sample_shape=EMPTY):
        normal = standard_normal(self._extended_shape(sample_shape), self.df)
        return self.loc + self.scale * (normal * tg.rsqrt(self._chi2.rsample(sample_shape) / self.df))

    def log_prob(self, value):
        self._check(value)
        df, y = self.df, (value - self.loc) / self.scale
        normalizer = self.scale.log() + 0.5 * df.log() + 0.5 * log(pi) + tg.lgamma(0.5 * df) - tg.lgamma(0.5 * (df + 1))
        return -0.5 * (df + 1) * tg.log1p(y ** 2 / df) - normalizer

    def entropy(self):
        df = self.df
        lbeta = tg.lgamma(0.5 * df) + lgamma(0.5) - tg.lgamma(0.5 * (df + 1))
        return self.scale.log() + 0.5 * (df + 1) * (tg.digamma(0.5 * (df + 1)) - tg.digamma(0.5 * df)) + 0.5 * df.log() + lbeta
