"""Power laws."""
from __future__ import annotations

from typing import TYPE_CHECKING

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .utils import broadcast_all, same_as

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .constraints import Constraint

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """P(X > x) = (scale/x)^alpha for x ≥ scale. → torch.distributions.Pareto

    >>> import tensorgrad as torch
    >>> torch.distributions.Pareto(torch.tensor([1.]), torch.tensor([3.])).mean
    tensor([1.5000])
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    _expands = ("base_dist", "scale", "alpha")

    def __init__(self, scale: Tensor | float, alpha: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        transforms = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(Exponential(self.alpha, validate_args=validate_args), transforms, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)             # infinite up to 1
        return a * self.scale / (a - 1)

    mode = same_as("scale")

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        return constraints.greater_than_eq(self.scale)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
