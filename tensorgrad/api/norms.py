"""Norms and distances of whole tensors.

Those of `torch.linalg` are in linalg.py. https://pytorch.org/docs/stable/torch.html#reduction-ops
"""
from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ..core.dispatch import xp
from ._arguments import check_tensor, normalize_dim
from ._halves import once_rounded
from ._kinds import Dtype, Ints1, Number
from ._register import public
from .linalg import matrix_norm
from .math import sub
from .reduction import vector_norm


@public(out="same")
def norm(input: Tensor, p: Number | str | None = "fro", dim: Ints1 | None = None, keepdim: bool = False,
         dtype: Dtype | None = None) -> Tensor:
    """The norm of a vector; 'fro' is the norm of all elements, 'nuc' the sum of a matrix's singular values.

    (Σ |x|^p)^(1/p); 'fro' is p = 2, ∞ the greatest |x|, −∞ the least, 0 the number of nonzero x.

    Input: (*), floating or complex; 'nuc' takes matrices (*, n, m)
    Output: (), real; with dim, the shape without those axes, or with 1 in their place if keepdim
    Errors: RuntimeError if the input is of integers or bools, p is another string, p is 'fro' and dim has more than two
        axes, p is 'nuc' and dim is not two axes, or p is negative or ∞ and there are no elements; IndexError if dim is
        out of range
    https://pytorch.org/docs → torch.norm

    >>> import tensorgrad as torch
    >>> torch.norm(torch.tensor([3., 4.])), torch.norm(torch.tensor([3., -4.]), p=float('inf'))
    (tensor(5.), tensor(4.))
    """
    if type(keepdim) is not bool:
        raise TypeError(f"linalg_vector_norm(): argument 'keepdim' (position 4) must be bool, not "
                        f"{type(keepdim).__name__}")
    if dtype is not None and input._storage.dense is not None and p != "nuc":
        raise (ValueError("dtype argument is not supported in frobenius norm") if p == "fro" else
               RuntimeError("norm_sparse currently does not support 'dtype' argument"))
    if p == "nuc":
        places = list(range(input.array.ndim)) if dim is None else [dim] if isinstance(dim, int) else dim
        if len(places) != 2 and input.array.ndim > 1:
            raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, places))}")
        return matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    if p in ("fro", None) and isinstance(dim, (tuple, list)) and len(dim) > 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    return vector_norm(input, 2.0 if p in ("fro", None) else p, dim, keepdim, dtype=dtype)


@public()
def dist(input: Tensor, other: Tensor, p: Number = 2) -> Tensor:
    """The norm of input − other.

    (Σ |input − other|^p)^(1/p).

    Input: two tensors that broadcast, floating or complex
    Output: (), real, in the unit of the inputs
    Errors: RuntimeError if the shapes do not broadcast, or both are of integers or bools; TypeError if one is no tensor
    https://pytorch.org/docs → torch.dist

    >>> import tensorgrad as torch
    >>> torch.dist(torch.tensor([1., 1.]), torch.tensor([4., 5.]))
    tensor(5.)
    """
    check_tensor(input, "dist", "input", 1)
    check_tensor(other, "dist", "other", 2)
    return _distance(input, other, p)


@once_rounded
def _distance(input: Any, other: Any, p: Number) -> Any:
    return vector_norm(sub(input, other), p)


@public(inplace=True, out="same")
def renorm(input: Tensor, p: Number, dim: int, maxnorm: Number) -> Tensor:
    """The tensor with slices along an axis scaled down if their norm exceeds `maxnorm`.

    A slice of norm s > maxnorm is multiplied by maxnorm / (s + 1e-7).

    Input: (*), at least two axes, floating or complex
    Output: (*)
    Errors: RuntimeError if p is not positive, maxnorm is negative, one of them is complex, there are fewer than two
        axes, or the input is of integers or bools; IndexError if dim is out of range
    https://pytorch.org/docs → torch.renorm

    >>> import tensorgrad as torch
    >>> torch.renorm(torch.tensor([[3., 4.], [0.3, 0.4]]), 2, 0, 1.)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    ndim = input.array.ndim
    if isinstance(p, complex) or p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported" if not isinstance(p, complex)
                           else "renorm: p must be real-valued")
    if isinstance(maxnorm, complex) or maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {ndim} dimensions")
    axis = normalize_dim(dim, ndim)
    return _scaled_down(input, p, tuple(a for a in range(ndim) if a != axis), maxnorm)


@once_rounded
def _scaled_down(input: Any, p: Number, others: tuple[int, ...], maxnorm: Number) -> Any:
    above = xp.greater(vector_norm(input.detach(), p, others, True), maxnorm)
    # slices that are not scaled, NaN included, have no gradient through the norm
    size = vector_norm(xp.where(above, input, 1), p, others, True)
    return xp.multiply(xp.contiguous(input), xp.where(above, xp.divide(maxnorm, xp.add(size, 1e-7)), 1))
