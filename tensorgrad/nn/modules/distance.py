"""Distance and similarity of pairs of vectors."""
from __future__ import annotations

from typing import TYPE_CHECKING

from .. import functional as F
from .module import Module
from .utils import Functional, settings

if TYPE_CHECKING:
    from ..._tensor import Tensor

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Functional):
    """The p-norm of differences: `norm(x1 - x2 + eps, p)` over the last axis (torch.nn.PairwiseDistance).

    Parameters:
        p: float: 2.0, kept as `norm`
        eps: float: 1e-06
        keepdim: bool: False
    Input: (N, D) or (D), twice
    Output: (N) or (); (N, 1) or (1) with keepdim
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.PairwiseDistance()(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2))
    tensor([5.0000])
    """

    __constants__ = ["norm", "eps", "keepdim"]
    __init__ = settings(p=2.0, eps=1e-6, keepdim=False)
    extra_repr = Module.extra_repr

    def _keep(self, p, **others):
        super()._keep(norm=p, **others)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Functional):
    """The cosine of the angle between vectors: `x1 . x2 / max(|x1| * |x2|, eps)` (torch.nn.CosineSimilarity).

    Parameters:
        dim: int: 1, the axis of the vectors
        eps: float: 1e-08
    Input: (*, D, *), twice
    Output: (*, *), without that axis
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.CosineSimilarity()(torch.tensor([[3.0, 4.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([1.])
    """

    __init__ = settings(dim=1, eps=1e-8)
    extra_repr = Module.extra_repr

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
