"""The positive half of a normal distribution."""
from math import pi, sqrt

from ._half import Half
from .normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """|X| for X from Normal(0, scale). → torch.distributions.HalfNormal

    >>> import tensorgrad as torch
    >>> torch.distributions.HalfNormal(torch.tensor([1.])).mean
    tensor([0.7979])
    """

    _expands = ("base_dist",)

    def __init__(self, scale, validate_args=None):
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    @property
    def mean(self):
        return self.scale * sqrt(2 / pi)

    @property
    def variance(self):
        return self.scale.pow(2) * (1 - 2 / pi)
