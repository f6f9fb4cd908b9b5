"""The positive half of a Cauchy distribution."""
from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from .. import api as tg
from ._half import Half
from .cauchy import Cauchy
from .utils import same_as

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """|X| for X from Cauchy(0, scale). → torch.distributions.HalfCauchy

    >>> import tensorgrad as torch
    >>> torch.distributions.HalfCauchy(torch.tensor([1.])).cdf(torch.tensor(1.))
    tensor([0.5000])
    """

    _expands = ("base_dist",)

    variance = same_as("base_dist.variance")

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale.new_full(self._extended_shape(), inf)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return super().log_prob(tg.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device))
