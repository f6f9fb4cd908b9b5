"""The analogue of the normal distribution on a circle."""
from __future__ import annotations

from collections.abc import Sequence
from math import log, pi
from typing import TYPE_CHECKING, Any

from .. import api as tg
from . import constraints
from .distribution import Distribution
from .utils import EMPTY, broadcast_all, lazy_property, same_as

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["VonMises"]

# Abramowitz and Stegun 9.8.1 to 9.8.4: I₀ and I₁/x as polynomials of (x/3.75)² below 3.75, and √x·exp(−x)·I as
#     polynomials of 3.75/x above.
SMALL = ((1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813),
         (0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411))
LARGE = ((0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537, -0.01647633,
          0.00392377),
         (0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967, -0.02895312, 0.01787654,
          -0.00420059))


def polynomial(y: Tensor, coefficients: Any) -> Any:
    result = coefficients[-1]
    for c in coefficients[-2::-1]:
        result = c + y * result
    return result


def log_bessel(x: Tensor, order: Any = 0) -> Any:
    """ln I₀(x) or ln I₁(x)"""
    small = polynomial((x / 3.75) ** 2, SMALL[order])
    small = (x.abs() * small if order else small).log()
    large = x - 0.5 * x.log() + polynomial(3.75 / x, LARGE[order]).log()
    return tg.where(x < 3.75, small, large)


def wrapped_cauchy(concentration: Any) -> Any:
    """Return the parameter of the wrapped Cauchy distribution that proposes draws. (Best and Fisher 1979.)"""
    tau = 1 + (1 + 4 * concentration ** 2).sqrt()
    rho = (tau - (2 * tau).sqrt()) / (2 * concentration)
    return tg.where(concentration < 1e-5, 1 / concentration + concentration, (1 + rho ** 2) / (2 * rho))


class VonMises(Distribution):
    """p(x) = exp(concentration·cos(x − loc)) / (2π·I₀(concentration)) for angles x. → torch.distributions.VonMises

    >>> import tensorgrad as torch
    >>> torch.distributions.VonMises(torch.tensor([1.]), torch.tensor([2.])).log_prob(torch.tensor(1.))
    tensor([-0.6619])
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False
    _expands = ("loc", "concentration")

    def __init__(self, loc: Tensor, concentration: Tensor, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self.concentration * tg.cos(value - self.loc) - log(2 * pi) - log_bessel(self.concentration)

    @tg.no_grad()
    def sample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        # float32 hangs for small concentrations
        loc, concentration = self.loc.double(), self.concentration.double()
        r = wrapped_cauchy(concentration)
        shape = self._extended_shape(sample_shape)
        x = tg.zeros(shape, dtype=loc.dtype, device=loc.device)
        done = tg.zeros(shape, dtype=tg.bool, device=loc.device)
        while not done.all():
            u1, u2, u3 = tg.rand((3,) + shape, dtype=loc.dtype, device=loc.device).unbind()
            z = tg.cos(pi * u1)
            f = (1 + r * z) / (r + z)
            c = concentration * (r - f)
            accept = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
            x = tg.where(accept, (u3 - 0.5).sign() * f.acos(), x)
            done = done | accept
        return ((x + pi + loc) % (2 * pi) - pi).to(self.loc.dtype)

    mean = mode = same_as("loc")

    @lazy_property
    def variance(self) -> Tensor:
        return 1 - (log_bessel(self.concentration, 1) - log_bessel(self.concentration, 0)).exp()
