"""The positive half of a Cauchy distribution."""
from math import inf, log

from .. import api as tg
from . import constraints
from .cauchy import Cauchy
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """|X| for X from Cauchy(0, scale). → torch.distributions.HalfCauchy

    >>> import tensorgrad as torch
    >>> torch.distributions.HalfCauchy(torch.tensor([1.])).cdf(torch.tensor(1.))
    tensor([0.5000])
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _expands = ("base_dist",)

    def __init__(self, scale, validate_args=None):
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def scale(self):
        return self.base_dist.scale

    @property
    def mean(self):
        return self.scale.new_full(self._extended_shape(), inf)

    @property
    def mode(self):
        return tg.zeros_like(self.scale)

    @property
    def variance(self):
        return self.base_dist.variance

    def log_prob(self, value):
        self._check(value)
        value = tg.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return tg.where(value >= 0, self.base_dist.log_prob(value) + log(2), -inf)

    def cdf(self, value):
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob):
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - log(2)
