"""The number of events in a time."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import api as tg
from . import constraints
from .exp_family import ExponentialFamily
from .utils import EMPTY, broadcast_all, same_as

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """P(k) = rateᵏ·exp(−rate) / k!. → torch.distributions.Poisson

    >>> import tensorgrad as torch
    >>> torch.distributions.Poisson(torch.tensor([4.])).log_prob(torch.tensor([2.]))
    tensor([-1.9206])
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _expands = ("rate",)

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self.rate, = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = same_as("rate")

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    variance = same_as("rate")

    def sample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        with tg.no_grad():
            return tg.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self):
        return tg.log(self.rate),

    def _log_normalizer(self, x):
        return tg.exp(x)
