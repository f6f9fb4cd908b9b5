"""A choice among several outcomes."""
from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING, Any

from .. import api as tg
from . import constraints
from ._parameters import TwoForms, counted, one_of
from .distribution import Distribution
from .utils import EMPTY

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["Categorical"]


class Categorical(TwoForms, Distribution):
    """P(i) = probs[…, i], normalized along the last dimension; or logits, unnormalized logarithms. →
    torch.distributions.Categorical

    >>> import tensorgrad as torch
    >>> d = torch.distributions.Categorical(torch.tensor([1., 1., 2.]))
    >>> d.probs, d.entropy()
    (tensor([0.2500, 0.2500, 0.5000]), tensor(1.0397))
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _expands, _keeps = TwoForms._expands, ("_num_events",)

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        one_of(probs, logits)
        given = logits if probs is None else probs
        if given.dim() < 1:
            raise ValueError(f"`{'logits' if probs is None else 'probs'}` parameter must be at least one-dimensional.")
        if probs is None:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        else:
            self.probs = probs / probs.sum(-1, keepdim=True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return self.probs.new_full(self._extended_shape(), nan)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        return self.probs.new_full(self._extended_shape(), nan)

    def sample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        rows = tg.multinomial(self.probs.reshape(-1, self._num_events), tg.Size(sample_shape).numel(), True)
        return rows.T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        value, logits = tg.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = tg.clamp(self.logits, min=tg.finfo(self.logits.dtype).min)         # −∞·0 would be nan
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return counted(self._num_events, tg.int64, self, expand)
