"""Like Beta, with a distribution function in closed form."""
from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

from .. import api as tg
from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["Kumaraswamy"]


def moment(a: Any, b: Any, n: Any) -> Any:
    """E[xⁿ] = b·B(1 + n/a, b)"""
    c = 1 + n / a
    return b * tg.exp(tg.lgamma(c) + tg.lgamma(b) - tg.lgamma(c + b))


class Kumaraswamy(TransformedDistribution):
    """F(x) = 1 − (1 − xᵃ)ᵇ for a = concentration1 and b = concentration0. → torch.distributions.Kumaraswamy

    >>> import tensorgrad as torch
    >>> torch.distributions.Kumaraswamy(torch.tensor([1.]), torch.tensor([3.])).mean
    tensor([0.2500])
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _expands = ("base_dist", "concentration1", "concentration0")

    def __init__(self, concentration1: Tensor | float, concentration0: Tensor | float,
                 validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = a, b = broadcast_all(concentration1, concentration0)
        base = Uniform(tg.full_like(b, 0), tg.full_like(b, 1), validate_args=validate_args)
        transforms = [PowerTransform(b.reciprocal()), AffineTransform(loc=1.0, scale=-1.0),
                      PowerTransform(a.reciprocal())]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return moment(self.concentration1, self.concentration0, 1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        log_mode = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        return tg.where((b < 1) | (a < 1), nan, log_mode).exp()

    @property
    def variance(self) -> Tensor:
        return moment(self.concentration1, self.concentration0, 2) - self.mean.pow(2)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = tg.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - tg.log(a) - tg.log(b)
