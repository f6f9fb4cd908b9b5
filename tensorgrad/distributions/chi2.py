"""Sums of squares of normal numbers."""
from __future__ import annotations

from typing import TYPE_CHECKING

from . import constraints
from .gamma import Gamma

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of df squares: Gamma(df/2, ½). → torch.distributions.Chi2

    >>> import tensorgrad as torch
    >>> torch.distributions.Chi2(torch.tensor([3.])).variance
    tensor([6.])
    """

    arg_constraints = {"df": constraints.positive}
    _expands = Gamma._expands

    def __init__(self, df: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        return self.concentration * 2
