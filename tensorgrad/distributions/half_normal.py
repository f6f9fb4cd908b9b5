"""The positive half of a normal distribution."""
from math import inf, log, pi, sqrt

from .. import api as tg
from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform

__all__ = ["HalfNormal"]


class HalfNormal(TransformedDistribution):
    """|X| for X from Normal(0, scale). → torch.distributions.HalfNormal

    >>> import tensorgrad as torch
    >>> torch.distributions.HalfNormal(torch.tensor([1.])).mean
    tensor([0.7979])
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _expands = ("base_dist",)

    def __init__(self, scale, validate_args=None):
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def scale(self):
        return self.base_dist.scale

    @property
    def mean(self):
        return self.scale * sqrt(2 / pi)

    @property
    def mode(self):
        return tg.zeros_like(self.scale)

    @property
    def variance(self):
        return self.scale.pow(2) * (1 - 2 / pi)

    def log_prob(self, value):
        self._check(value)
        return tg.where(value >= 0, self.base_dist.log_prob(value) + log(2), -inf)

    def cdf(self, value):
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob):
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - log(2)
