"""Random correlation matrices, as their Cholesky factors."""
from __future__ import annotations

from collections.abc import Sequence
from math import log, pi
from typing import TYPE_CHECKING

from .. import api as tg
from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import EMPTY, broadcast_all

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Factors L of correlation matrices with p(L·Lᵀ) ∝ det(L·Lᵀ)^(concentration − 1). → torch.distributions.LKJCholesky

    1 is uniform; more concentrates on the identity. (Lewandowski, Kurowicka, Joe 2009: the onion method.)

    >>> import tensorgrad as torch
    >>> torch.distributions.LKJCholesky(3, 0.5).log_prob(torch.eye(3))
    tensor(-2.5310)
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _expands, _keeps = ("concentration", "_beta"), ("dim",)

    def __init__(self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        self.concentration, = broadcast_all(concentration)
        like = {"dtype": self.concentration.dtype, "device": self.concentration.device}
        row = tg.cat([tg.zeros(1, **like), tg.arange(dim - 1, **like)])
        # of the squared off-diagonal rows
        self._beta = Beta(row + 0.5, (self.concentration + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * row)
        super().__init__(self.concentration.shape, tg.Size((dim, dim)), validate_args)

    def sample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        square = self._beta.sample(sample_shape).unsqueeze(-1)
        normal = tg.randn(self._extended_shape(sample_shape), dtype=square.dtype, device=square.device).tril(-1)
        direction = normal / normal.norm(dim=-1, keepdim=True)
        direction[..., 0, :].fill_(0)
        rows = tg.sqrt(square) * direction
        diagonal = tg.clamp(1 - tg.sum(rows ** 2, dim=-1), min=tg.finfo(rows.dtype).tiny).sqrt()
        return rows + tg.diag_embed(diagonal)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n = self.dim - 1
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = tg.arange(2, self.dim + 1, device=self.concentration.device)
        power = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        alpha = self.concentration + 0.5 * n
        normalizer = 0.5 * n * log(pi) + tg.mvlgamma(alpha - 0.5, n) - tg.lgamma(alpha) * n
        return tg.sum(power * diagonal.log(), dim=-1) - normalizer
