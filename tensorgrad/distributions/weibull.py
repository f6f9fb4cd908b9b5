"""Times to failure."""
from __future__ import annotations

from typing import TYPE_CHECKING

from .. import api as tg
from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """P(X > x) = exp(−(x/scale)^concentration). → torch.distributions.Weibull

    >>> import tensorgrad as torch
    >>> torch.distributions.Weibull(torch.tensor([1.]), torch.tensor([2.])).mean
    tensor([0.8862])
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _expands = ("base_dist", "scale", "concentration", "concentration_reciprocal")

    def __init__(self, scale: Tensor | float, concentration: Tensor | float,
                 validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(tg.ones_like(self.scale), validate_args=validate_args)
        transforms = [PowerTransform(self.concentration_reciprocal), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * tg.exp(tg.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> Tensor:
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration.reciprocal()

    @property
    def variance(self) -> Tensor:
        r = self.concentration_reciprocal
        return self.scale.pow(2) * (tg.exp(tg.lgamma(1 + 2 * r)) - tg.exp(2 * tg.lgamma(1 + r)))

    def entropy(self) -> Tensor:
        r = self.concentration_reciprocal
        return euler_constant * (1 - r) + tg.log(self.scale * r) + 1
