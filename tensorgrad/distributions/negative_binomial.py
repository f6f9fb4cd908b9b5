"""The number of successes before a number of failures."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import api as tg
from ..nn.functional import logsigmoid
from . import constraints
from ._parameters import BinaryParameters
from .distribution import Distribution
from .gamma import Gamma
from .utils import EMPTY, lazy_property

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["NegativeBinomial"]


class NegativeBinomial(BinaryParameters, Distribution):
    """P(k) = Γ(n + k) / (k!·Γ(n))·(1 − p)ⁿ·pᵏ for n = total_count and p = probs. → torch.distributions.NegativeBinomial

    >>> import tensorgrad as torch
    >>> torch.distributions.NegativeBinomial(2., torch.tensor([0.25])).log_prob(torch.tensor([1.])).exp()
    tensor([0.2812])
    """

    arg_constraints = {"total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0),
                       "logits": constraints.real}
    support = constraints.nonnegative_integer
    _expands = ("total_count", "probs", "logits")

    def __init__(self, total_count: Tensor | float, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        self.total_count, = self._set_parameters(probs, logits, total_count)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * tg.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / tg.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self):
        return Gamma(concentration=self.total_count, rate=tg.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        with tg.no_grad():
            return tg.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n = self.total_count
        likelihood = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        normalizer = -tg.lgamma(n + value) + tg.lgamma(1 + value) + tg.lgamma(n)
        return likelihood - normalizer.masked_fill(n + value == 0, 0)
