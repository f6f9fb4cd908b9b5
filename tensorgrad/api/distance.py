"""Distances and similarities of vectors. https://pytorch.org/docs/stable/nn.functional.html#distance-functions"""
from __future__ import annotations

from typing import Any

import numpy as np

from .._tensor import Tensor
from ..core.dispatch import SCALAR_TYPES, xp
from ..ops.linalg import unlike
from ..storage.out_of_memory import check_room
from ._arguments import normalize_dim, promoted
from ._halves import once_rounded
from ._register import public
from .creation import as_tensor
from .shape import broadcast_shapes


@public(method=False, name="cosine_similarity")
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x₁·x₂ / (max(|x₁|, ε) max(|x₂|, ε)) along an axis.

    Input: (*, d), (*, d), which broadcast; floating point, dtypes promote; d is the axis `dim`
    Output: (*), from −1 to 1
    Errors: IndexError if dim is out of range; RuntimeError if the shapes do not broadcast, or for integers
    https://pytorch.org/docs → torch.nn.functional.cosine_similarity

    >>> import tensorgrad as torch
    >>> torch.cosine_similarity(torch.tensor([[1., 0.]]), torch.tensor([[1., 1.]]))
    tensor([0.7071])
    """
    common = promoted(x1, x2)
    if not common[0].is_floating_point():
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {_c_name(common[0])}")
    # each has its length in its own dtype
    x1, x2 = (x if x.is_floating_point() else wide for x, wide in zip((x1, x2), common, strict=True))
    if wrong := unlike(x1.shape, x2.shape):
        raise wrong
    axis = normalize_dim(dim, max(x1.ndim, x2.ndim))
    shape = broadcast_shapes(x1.shape, x2.shape)
    x1, x2 = x1.expand(shape), x2.expand(shape)
    if not shape:
        x1, x2 = x1.reshape(1), x2.reshape(1)
    return _cosine(x1, x2, axis, eps)


@once_rounded
def _cosine(x1: Any, x2: Any, axis: int, eps: float) -> Any:
    return xp.sum((x1 / _length(x1, axis, eps)) * (x2 / _length(x2, axis, eps)), axis=(axis,))


def _c_name(t: Any) -> str:
    return SCALAR_TYPES[t.dtype.name]


def _length(x: Any, axis: int, eps: float) -> Any:
    """Return the norm along an axis, clamped from below to ε; its gradient is that of the unclamped norm."""
    norm = xp.vector_norm(x, axis=(axis,), keepdims=True)
    return norm + (norm.detach().clamp(min=eps) - norm.detach())


@public(method=False)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of x₁ − x₂ + ε along the last axis.

    Input: (*, d), (*, d), which broadcast
    Output: (*), or (*, 1) with keepdim
    Errors: RuntimeError if the shapes do not broadcast
    https://pytorch.org/docs → torch.nn.functional.pairwise_distance

    >>> import tensorgrad as torch
    >>> torch.pairwise_distance(torch.tensor([[0., 0.]]), torch.tensor([[3., 4.]]))
    tensor([5.0000])
    """
    if not max(x1.ndim, x2.ndim):
        return xp.vector_norm(x1 - x2 + eps, ord=p, axis=(), keepdims=keepdim)
    return xp.vector_norm(x1 - x2 + eps, ord=p, axis=(max(x1.ndim, x2.ndim, 1) - 1,), keepdims=keepdim)


@public(method=False)
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm distance of every pair of rows.

    Input: (n, d), floating point
    Output: (n·(n − 1)/2), the pairs (0, 1), (0, 2), …, (n − 2, n − 1)
    Errors: RuntimeError if the input is not 2-D or not floating point, or p is negative
    https://pytorch.org/docs → torch.nn.functional.pdist

    >>> import tensorgrad as torch
    >>> torch.pdist(torch.tensor([[0., 0.], [3., 4.], [0., 1.]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not input.is_floating_point():
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    n = input.shape[0]
    check_room((n * (n - 1) // 2,), 8, "pdist")
    rows, later = np.arange(n), np.arange(n)[::-1]          # of each row, how many come after it
    first = np.repeat(rows, later)
    second = np.arange(first.size) - np.repeat(later.cumsum() - later - rows - 1, later)
    left, right = (xp.embedding(input, as_tensor(places, device=input.device)) for places in (first, second))
    return xp.vector_norm(left - right, ord=p, axis=(1,))
