"""The Bernoulli's likelihood, normalized on the whole interval from 0 to 1."""
from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING

from .. import api as tg
from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from ._parameters import BinaryParameters, one_of
from .exp_family import ExponentialFamily
from .utils import EMPTY, broadcast_all, clamp_probs, lazy_property, logits_to_probs, uniform

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(BinaryParameters, ExponentialFamily):
    """p(x) ∝ pˣ·(1 − p)¹⁻ˣ on [0, 1]. → torch.distributions.ContinuousBernoulli

    Formulas divide by 1 − 2p: for probs between the two `lims`, series around ½ replace them.

    >>> import tensorgrad as torch
    >>> torch.distributions.ContinuousBernoulli(torch.tensor([0.3])).mean
    tensor([0.4302])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _expands, _keeps = BinaryParameters._expands, ("_lims",)
    _mean_carrier_measure = 0

    def __init__(self, probs: Tensor | float | None = None, logits: Tensor | float | None = None,
                 lims: tuple[float, float] = (0.499, 0.501), validate_args: bool | None = None) -> None:
        one_of(probs, logits)
        if probs is not None:
            probs, = broadcast_all(probs)
            if validate_args is not None and not self.arg_constraints["probs"].check(probs).all():
                raise ValueError("The parameter probs has invalid values")
            probs = clamp_probs(probs)
        self._set_parameters(probs, logits)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)

    @lazy_property
    def probs(self) -> Tensor:
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside(self, x, shift=0.0):
        """Return (mask of probs outside of `lims`, probs with those inside replaced by a value outside)."""
        outside = (x <= self._lims[0] - shift) | (x > self._lims[1] - shift)
        return outside, tg.where(outside, x, self._lims[0] - shift)

    def _cont_bern_log_norm(self):
        """ln C(p): ln |(2·artanh(1 − 2p)) / (1 − 2p)|"""
        outside, p = self._outside(self.probs)
        below, above = tg.where(p <= 0.5, p, 0.0), tg.where(p >= 0.5, p, 1.0)
        exact = (tg.log(tg.abs(tg.log1p(-p) - tg.log(p))) - tg.where(p <= 0.5, tg.log1p(-2 * below),
                                                                     tg.log(2 * above - 1)))
        square = (self.probs - 0.5).pow(2)
        return tg.where(outside, exact, log(2) + (4 / 3 + 104 / 45 * square) * square)

    @property
    def mean(self) -> Tensor:
        outside, p = self._outside(self.probs)
        x = self.probs - 0.5
        exact = p / (2 * p - 1) + 1 / (tg.log1p(-p) - tg.log(p))
        return tg.where(outside, exact, 0.5 + (1 / 3 + 16 / 45 * x.pow(2)) * x)

    @property
    def variance(self) -> Tensor:
        outside, p = self._outside(self.probs)
        square = (self.probs - 0.5).pow(2)
        exact = p * (p - 1) / (1 - 2 * p).pow(2) + 1 / (tg.log1p(-p) - tg.log(p)).pow(2)
        return tg.where(outside, exact, 1 / 12 - (1 / 15 - 128 / 945 * square) * square)

    def sample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        with tg.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        outside, p = self._outside(self.probs)
        exact = (tg.pow(p, value) * tg.pow(1 - p, 1 - value) + p - 1) / (2 * p - 1)
        inside = tg.where(outside, exact, value)
        return tg.where(value <= 0, 0.0, tg.where(value >= 1, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        outside, p = self._outside(self.probs)
        exact = (tg.log1p(-p + value * (2 * p - 1)) - tg.log1p(-p)) / (tg.log(p) - tg.log1p(-p))
        return tg.where(outside, exact, value)

    def entropy(self) -> Tensor:
        fail, succeed = tg.log1p(-self.probs), tg.log(self.probs)
        return self.mean * (fail - succeed) - self._cont_bern_log_norm() - fail

    @property
    def _natural_params(self):
        return self.logits,

    def _log_normalizer(self, x):
        outside, y = self._outside(x, shift=0.5)
        exact = tg.log(tg.abs(tg.expm1(y))) - tg.log(tg.abs(y))
        return tg.where(outside, exact, 0.5 * x + x.pow(2) / 24 - x.pow(4) / 2880)
