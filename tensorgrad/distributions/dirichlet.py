"""Points of the simplex: probabilities that add up to 1."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import api as tg
from ..autograd.function import Function, once_differentiable
from ..nn.functional import one_hot
from . import constraints
from .exp_family import ExponentialFamily

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["Dirichlet"]


def _Dirichlet_backward(x: Tensor, concentration: Tensor, grad_output: Tensor) -> Tensor:
    """Return the gradient of the concentration for draws x, whose gradient is `grad_output`."""
    total = concentration.sum(-1, True).expand_as(concentration)
    along = (x * grad_output).sum(-1, True)
    return tg._dirichlet_grad(x, concentration, total) * (grad_output - along)  # type: ignore[no-any-return]


class _Dirichlet(Function):
    """Draws, differentiable with respect to the concentration."""

    @staticmethod
    def forward(ctx: Any, concentration: Any) -> Tensor:
        x = tg._sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Any) -> Any:
        return _Dirichlet_backward(*ctx.saved_tensors, g)


class Dirichlet(ExponentialFamily):
    """p(x) ∝ ∏ xᵢ^(concentrationᵢ − 1) where Σ xᵢ = 1. → torch.distributions.Dirichlet

    >>> import tensorgrad as torch
    >>> torch.distributions.Dirichlet(torch.tensor([1., 2., 3.])).mean
    tensor([0.1667, 0.3333, 0.5000])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _expands = ("concentration",)

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return _Dirichlet.apply(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        a = self.concentration
        return tg.xlogy(a - 1, value).sum(-1) + tg.lgamma(a.sum(-1)) - tg.lgamma(a).sum(-1)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        excess = (self.concentration - 1).clamp(min=0)
        mode = excess / excess.sum(-1, True)
        # all concentrations below 1: the density is infinite at each corner
        corner = one_hot(mode.argmax(dim=-1), mode.shape[-1]).to(mode)
        return tg.where((self.concentration < 1).all(dim=-1, keepdim=True), corner, mode)

    @property
    def variance(self) -> Tensor:
        a, total = self.concentration, self.concentration.sum(-1, True)
        return a * (total - a) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        a, total = self.concentration, self.concentration.sum(-1)
        return (tg.lgamma(a).sum(-1) - tg.lgamma(total) - (a.size(-1) - total) * tg.digamma(total)
                - ((a - 1) * tg.digamma(a)).sum(-1))

    @property
    def _natural_params(self):
        return self.concentration,

    def _log_normalizer(self, x):
        return x.lgamma().sum(-1) - tg.lgamma(x.sum(-1))
