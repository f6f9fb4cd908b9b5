"""Mixtures of distributions of one family."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import api as tg
from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .utils import EMPTY, same_as

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """Σₖ P(k)·pₖ(x): the components are the last batch dimension. → torch.distributions.MixtureSameFamily

    ValueError if the first is no Categorical, or the two do not fit together.

    >>> import tensorgrad as torch
    >>> from tensorgrad.distributions import Categorical, MixtureSameFamily, Normal
    >>> MixtureSameFamily(Categorical(torch.tensor([0.5, 0.5])), Normal(torch.tensor([-1., 1.]), 1.)).variance
    tensor(2.)
    """

    arg_constraints = {}
    has_rsample = False
    _expands, _keeps = ("_mixture_distribution", "_component_distribution"), ("_num_component", "_event_ndims")

    def __init__(self, mixture_distribution: Any, component_distribution: Distribution,
                 validate_args: bool | None = None) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        mixed, batch_shape, event_shape = (mixture_distribution.batch_shape, component_distribution.batch_shape[:-1],
                                           component_distribution.event_shape)
        if any(1 != i != j != 1 for i, j in zip(reversed(mixed), reversed(batch_shape), strict=False)):
            raise ValueError(f"`mixture_distribution.batch_shape` ({mixed}) is not compatible with "
                             f"`component_distribution.batch_shape`({batch_shape})")
        self._num_component, components = mixture_distribution.param_shape[-1], component_distribution.batch_shape[-1]
        if self._num_component != components:
            raise ValueError(f"`mixture_distribution component` ({self._num_component}) does not equal "
                             f"`component_distribution.batch_shape[-1]` ({components})")
        self._event_ndims = len(event_shape)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    mixture_distribution = same_as("_mixture_distribution")
    component_distribution = same_as("_component_distribution")

    def _mixed(self, values):
        """Average values over the components."""
        probs = self._mixture_distribution.probs
        lead = 0 if probs.dim() == 2 else len(self._batch_shape) - len(self._mixture_distribution.batch_shape)
        probs = probs.reshape(probs.shape[:-1] + (1,) * lead + probs.shape[-1:] + (1,) * self._event_ndims)
        return tg.sum(probs * values, dim=-1 - self._event_ndims)

    def _pad(self, x):
        """Add a dimension for the components."""
        return x.unsqueeze(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._mixed(self._component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        component = self._component_distribution
        return self._mixed(component.variance) + self._mixed((component.mean - self._pad(self.mean)).pow(2))

    def cdf(self, x: Tensor) -> Tensor:
        return tg.sum(self._component_distribution.cdf(self._pad(x)) * self._mixture_distribution.probs, dim=-1)

    def log_prob(self, x: Tensor) -> Tensor:
        self._check(x)
        log_weights = tg.log_softmax(self._mixture_distribution.logits, dim=-1)
        return tg.logsumexp(self._component_distribution.log_prob(self._pad(x)) + log_weights, dim=-1)

    def sample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        with tg.no_grad():
            dim = len(sample_shape) + len(self._batch_shape)
            chosen = self._mixture_distribution.sample(sample_shape)
            samples = self._component_distribution.sample(sample_shape)
            index = chosen.reshape(chosen.shape + (1,) * (self._event_ndims + 1)).expand(chosen.shape + (1,)
                                                                                         + self._event_shape)
            return tg.gather(samples, dim, index).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
