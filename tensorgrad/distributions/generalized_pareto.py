"""Excesses over a threshold."""
from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import TYPE_CHECKING, Any

from .. import api as tg
from . import constraints
from .distribution import Distribution
from .utils import EMPTY, broadcast_all, same_as, uniform

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """P(X > x) = (1 + c·z)^(−1/c) for z = (x − loc)/scale and c = concentration; exp(−z) for c = 0. →
    torch.distributions.GeneralizedPareto

    >>> import tensorgrad as torch
    >>> torch.distributions.GeneralizedPareto(0., 1., torch.tensor([0., 0.5])).mean
    tensor([1., 2.])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True
    _expands = ("loc", "scale", "concentration")

    def __init__(self, loc: Tensor | float, scale: Tensor | float, concentration: Tensor | float,
                 validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        upper = tg.where(self.concentration < 0, self.loc - self.scale / self.concentration, inf)
        return constraints.interval(self.loc, upper)

    def _shape(self):
        """Return (mask of zero concentrations, the concentration with 1 in their place)."""
        flat = tg.isclose(self.concentration, tg.zeros_like(self.concentration))
        return flat, tg.where(flat, 1.0, self.concentration)

    def rsample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z, (flat, c) = (value - self.loc) / self.scale, self._shape()
        y = 1 / c + tg.ones_like(z)
        return -self.scale.log() - tg.where(flat, z, tg.where(y == 0, y, y * tg.log1p(c * z)))

    def log_survival_function(self, value: Tensor) -> Any:
        """ln P(X > value)."""
        self._check(value)
        z, (flat, c) = (value - self.loc) / self.scale, self._shape()
        return tg.where(flat, -z, -tg.log1p(c * z) / c)

    def log_cdf(self, value: Tensor) -> Any:
        """ln P(X ≤ value)."""
        return tg.log1p(-tg.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        return tg.exp(self.log_cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        flat, c = self._shape()
        log_rest = tg.log1p(-value)
        return tg.where(flat, self.loc - self.scale * log_rest, self.loc + self.scale / c * tg.expm1(-c * log_rest))

    @property
    def mean(self) -> Tensor:
        c, finite = self.concentration, self.concentration < 1
        return tg.where(finite, self.loc + self.scale / (1 - tg.where(finite, c, 0.5)), nan)

    @property
    def variance(self) -> Tensor:
        finite = self.concentration < 0.5
        c = tg.where(finite, self.concentration, 0.25)
        return tg.where(finite, self.scale ** 2 / ((1 - c) ** 2 * (1 - 2 * c)), nan)

    mode = same_as("loc")

    def entropy(self) -> Tensor:
        return tg.broadcast_to(tg.log(self.scale) + self.concentration + 1, self._batch_shape)
