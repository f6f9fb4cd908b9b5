"""A choice among several outcomes, as a vector of zeros with a single 1."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import api as tg
from ..nn.functional import one_hot
from . import constraints
from ._parameters import CategoricalParameters
from .categorical import Categorical
from .distribution import Distribution
from .utils import EMPTY, same_as

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(CategoricalParameters, Distribution):
    """A Categorical whose values are vectors: P(eᵢ) = probs[…, i]. → torch.distributions.OneHotCategorical

    >>> import tensorgrad as torch
    >>> torch.distributions.OneHotCategorical(torch.tensor([0.2, 0.5, 0.3])).mode
    tensor([0., 1., 0.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True
    _expands = CategoricalParameters._expands

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self.param_shape[-1:], validate_args=validate_args)

    mean = same_as("probs")

    @property
    def mode(self) -> Tensor:
        return one_hot(self.probs.argmax(dim=-1), num_classes=self.event_shape[0]).to(self.probs)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        return one_hot(self._categorical.sample(sample_shape), self.event_shape[0]).to(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = tg.eye(n, dtype=self._param.dtype, device=self._param.device).view((n,) + (1,) * len(self._batch_shape)
                                                                                    + (n,))
        return values.expand((n,) + self._batch_shape + (n,)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """A OneHotCategorical whose draws have the gradient of probs (Bengio et al. 2013).

    → torch.distributions.OneHotCategoricalStraightThrough

    >>> import tensorgrad as torch
    >>> torch.distributions.OneHotCategoricalStraightThrough(torch.tensor([0., 1.])).rsample()
    tensor([0., 1.])
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        samples = self.sample(sample_shape)
        return samples + (self.probs - self.probs.detach())
