"""Continuous relaxations of Bernoulli draws, which have gradients."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import constraints
from ._parameters import BinaryParameters
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import EMPTY, broadcast_all, clamp_probs, same_as, uniform

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(BinaryParameters, Distribution):
    """The logits of a RelaxedBernoulli: (logits + L) / temperature for L from the logistic distribution.

    → torch.distributions.relaxed_bernoulli.LogitRelaxedBernoulli
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    _expands, _keeps = BinaryParameters._expands, ("temperature",)

    def __init__(self, temperature: Tensor, probs: Tensor | float | None = None, logits: Tensor | float | None = None,
                 validate_args: bool | None = None) -> None:
        self.temperature = temperature
        self._set_parameters(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(uniform(shape, probs))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        diff = logits - value.mul(self.temperature)
        return self.temperature.log() + diff - 2 * diff.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """Numbers of [0, 1] that come close to 0 and 1 for small temperatures. → torch.distributions.RelaxedBernoulli

    (Maddison, Mnih, Teh 2017; Jang, Gu, Poole 2017.)

    >>> import tensorgrad as torch
    >>> torch.distributions.RelaxedBernoulli(torch.tensor([2.2]), torch.tensor([0.1, 0.2])).batch_shape
    torch.Size([2])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _expands = ("base_dist",)

    def __init__(self, temperature: Tensor, probs: Tensor | float | None = None, logits: Tensor | float | None = None,
                 validate_args: bool | None = None) -> None:
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(),
                         validate_args=validate_args)

    temperature = same_as("base_dist.temperature")
    logits = same_as("base_dist.logits")
    probs = same_as("base_dist.probs")
