"""Greatest values."""
from __future__ import annotations

from math import pi, sqrt
from typing import TYPE_CHECKING

from .. import api as tg
from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import NUMBER, broadcast_all, euler_constant, same_as

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """F(x) = exp(−exp(−y)) for y = (x − loc)/scale. → torch.distributions.Gumbel

    >>> import tensorgrad as torch
    >>> torch.distributions.Gumbel(torch.tensor([1.]), torch.tensor([2.])).mean
    tensor([2.1544])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _expands = ("base_dist", "loc", "scale")

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info = tg.finfo(self.loc.dtype)
        low, high = info.tiny, 1 - info.eps
        if not (isinstance(loc, NUMBER) and isinstance(scale, NUMBER)):
            low, high = tg.full_like(self.loc, low), tg.full_like(self.loc, high)
        transforms = [ExpTransform().inv, AffineTransform(loc=0, scale=-tg.ones_like(self.scale)),
                      ExpTransform().inv, AffineTransform(loc=loc, scale=-self.scale)]
        super().__init__(Uniform(low, high, validate_args=validate_args), transforms, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    mode = same_as("loc")

    @property
    def stddev(self) -> Tensor:
        return pi / sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
