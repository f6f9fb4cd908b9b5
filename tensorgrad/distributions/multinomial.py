"""The counts of each outcome in several draws."""
from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from .. import api as tg
from . import constraints
from ._parameters import CategoricalParameters
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .utils import EMPTY, broadcast_all

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["Multinomial"]


class Multinomial(CategoricalParameters, Distribution):
    """P(x) = n!·∏ pᵢ^xᵢ / xᵢ! for n = total_count, an int, and p = probs. → torch.distributions.Multinomial

    >>> import tensorgrad as torch
    >>> torch.distributions.Multinomial(2, torch.tensor([0.5, 0.5])).log_prob(torch.tensor([1., 1.])).exp()
    tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _expands, _keeps = ("_categorical", "_binomial"), ("total_count",)

    def __init__(self, total_count: int = 1, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self.param_shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    def sample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        drawn = self._categorical.sample((self.total_count,) + tg.Size(sample_shape)).movedim(0, -1)
        counts = drawn.new_zeros(self._extended_shape(sample_shape))
        return counts.scatter_add_(-1, drawn, tg.ones_like(drawn)).type_as(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        logits = tg.where((value == 0) & (logits == -inf), 0.0, logits)
        return tg.lgamma(value.sum(-1) + 1) - tg.lgamma(value + 1).sum(-1) + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        n = tg.tensor(self.total_count)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        repeats = (tg.exp(self._binomial.log_prob(counts)) * tg.lgamma(counts + 1)).sum([0, -1])
        return n * self._categorical.entropy() - tg.lgamma(n + 1) + repeats
