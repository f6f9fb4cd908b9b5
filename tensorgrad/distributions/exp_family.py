"""Exponential families: p(x; θ) = exp(⟨t(x), θ⟩ − F(θ) + k(x))."""
from __future__ import annotations

from typing import TYPE_CHECKING

from .. import api as tg
from ..autograd import grad
from .distribution import Distribution

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Distributions whose entropy follows from F, the log normalizer, and its gradient. →
    torch.distributions.ExponentialFamily

    A subclass defines its natural parameters θ, F(θ), and E[k(x)], the mean carrier measure.
    """

    @property
    def _natural_params(self):
        raise NotImplementedError(f"{self.__class__} does not implement _natural_params")

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError(f"{self.__class__} does not implement _log_normalizer")

    @property
    def _mean_carrier_measure(self):
        raise NotImplementedError(f"{self.__class__} does not implement _mean_carrier_measure")

    def _normalized(self):
        """θ, F(θ) and ∇F(θ)"""
        params = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*params)
        return params, normalizer, grad(normalizer.sum(), params, create_graph=True)

    def entropy(self) -> Tensor:
        """F(θ) − ⟨θ, ∇F(θ)⟩ − E[k(x)]."""
        carrier = self._mean_carrier_measure
        params, normalizer, slopes = self._normalized()
        inner = [(p * g).reshape(self._batch_shape + (-1,)).sum(-1) for p, g in zip(params, slopes, strict=True)]
        return tg.sub(normalizer, carrier) - sum(inner)
