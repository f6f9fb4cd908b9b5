"""The positive half of a normal distribution."""
from __future__ import annotations

from math import pi, sqrt
from typing import TYPE_CHECKING

from ._half import Half
from .normal import Normal

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """|X| for X from Normal(0, scale). → torch.distributions.HalfNormal

    >>> import tensorgrad as torch
    >>> torch.distributions.HalfNormal(torch.tensor([1.])).mean
    tensor([0.7979])
    """

    _expands = ("base_dist",)

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * sqrt(2 / pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / pi)
