"""A trial that succeeds or fails."""
from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING

from .. import api as tg
from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from ._parameters import BinaryParameters, counted
from .exp_family import ExponentialFamily
from .utils import EMPTY, broadcast_all, same_as

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["Bernoulli"]


class Bernoulli(BinaryParameters, ExponentialFamily):
    """P(1) = probs, P(0) = 1 − probs. → torch.distributions.Bernoulli

    >>> import tensorgrad as torch
    >>> torch.distributions.Bernoulli(torch.tensor([0.3])).log_prob(torch.tensor(1.))
    tensor([-1.2040])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _expands = BinaryParameters._expands
    _mean_carrier_measure = 0

    def __init__(self, probs: Tensor | float | None = None, logits: Tensor | float | None = None,
                 validate_args: bool | None = None) -> None:
        self._set_parameters(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    mean = same_as("probs")

    @property
    def mode(self) -> Tensor:
        return tg.where(self.probs == 0.5, nan, (self.probs >= 0.5).to(self.probs))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        with tg.no_grad():
            return tg.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return counted(2, self._param.dtype, self, expand)

    @property
    def _natural_params(self):
        return tg.logit(self.probs),

    def _log_normalizer(self, x):
        return tg.log1p(tg.exp(x))
