"""The number of successes in several trials."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import api as tg
from . import constraints
from ._parameters import BinaryParameters, counted
from .distribution import Distribution
from .utils import EMPTY

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["Binomial"]


def clamp_by_zero(x: Tensor) -> Any:
    """max(x, 0), with the gradient ½ at 0."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(BinaryParameters, Distribution):
    """P(k) = (n over k)·pᵏ·(1 − p)ⁿ⁻ᵏ for n = total_count and p = probs. → torch.distributions.Binomial

    >>> import tensorgrad as torch
    >>> torch.distributions.Binomial(3, torch.tensor([0.5])).log_prob(torch.tensor([1.])).exp()
    tensor([0.3750])
    """

    arg_constraints = {"total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval,
                       "logits": constraints.real}
    has_enumerate_support = True
    _expands = ("total_count", "probs", "logits")

    def __init__(self, total_count: Tensor | int = 1, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        self.total_count, = self._set_parameters(probs, logits, total_count)
        super().__init__(self._param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with tg.no_grad():
            return tg.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n, logits = self.total_count, self.logits
        rest = n * clamp_by_zero(logits) + n * tg.log1p(tg.exp(-tg.abs(logits))) - tg.lgamma(n + 1)
        return value * logits - tg.lgamma(value + 1) - tg.lgamma(n - value + 1) - rest

    def entropy(self) -> Tensor:
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(tg.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return counted(1 + self._one_count("enumerate_support"), self._param.dtype, self, expand)

    def _one_count(self, asked):
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{asked}`.")
        return count
