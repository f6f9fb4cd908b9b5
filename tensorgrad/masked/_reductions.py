"""Reductions over the elements that a mask keeps. https://pytorch.org/docs/stable/masked.html#reductions

An element that is left out is replaced by the identity of the operation. Where a mask keeps no element, sums are 0,
products 1, extremes the dtype's limits, and means NaN; PyTorch calls these values undefined.
"""
from __future__ import annotations

from typing import Any

from .. import api as tg
from .. import linalg
from .._tensor import Tensor
from ..api._kinds import Dtype, Ints1, Number
from ._masks import axes, is_sparse, kept, kept_strided, mask_for, parts, strided
from ._sparse import reduced

__all__ = ["amax", "amin", "argmax", "argmin", "logsumexp", "mean", "median", "norm", "prod", "std", "sum", "var"]


def _summed(dtype: Any, given: Any) -> Any:
    """Return the dtype of a sum: int64 for integers and bools, unless one is given."""
    return given or (dtype if dtype.is_floating_point or dtype.is_complex else tg.int64)


def sum(input: Tensor, dim: Ints1 | None = None, *, keepdim: bool | None = False, dtype: Dtype | None = None,
        mask: Tensor | None = None) -> Tensor:
    """Σ input, over the elements that the mask keeps; integers and bools add up as int64.

    Input: (*), any dtype; the mask broadcasts to its shape
    Output: (); with dim, the shape without those axes, or with 1 in their place if keepdim
    Errors: IndexError if dim is out of range, or the mask has more axes; RuntimeError if dim names an axis twice
    https://pytorch.org/docs → torch.masked.sum

    >>> import tensorgrad as torch
    >>> x = torch.tensor([[-3, -2, -1], [0, 1, 2]])
    >>> torch.masked.sum(x, 1, mask=torch.tensor([[True, False, True], [False, False, False]]))
    tensor([-4,  0])
    """
    dtype, dims = _summed(input.dtype, dtype), axes(dim, input.ndim)
    values, mask = parts(input, mask)
    if is_sparse(values):
        return reduced("sum", values, dims, bool(keepdim), dtype, mask)
    return tg.sum(kept("sum", values, mask), dims, bool(keepdim), dtype=dtype)


def prod(input: Tensor, dim: Ints1 | None = None, *, keepdim: bool | None = False, dtype: Dtype | None = None,
         mask: Tensor | None = None) -> Tensor:
    """∏ input, over the elements that the mask keeps; integers and bools are multiplied as int64.

    Input: (*), any dtype; the mask broadcasts to its shape
    Output: (); with dim, the shape without those axes, or with 1 in their place if keepdim
    Errors: IndexError if dim is out of range, or the mask has more axes; RuntimeError if dim names an axis twice
    https://pytorch.org/docs → torch.masked.prod

    >>> import tensorgrad as torch
    >>> x = torch.tensor([[-3, -2, -1], [0, 1, 2]])
    >>> torch.masked.prod(x, 1, mask=torch.tensor([[True, False, True], [False, False, False]]))
    tensor([3, 1])
    """
    dtype, dims = _summed(input.dtype, dtype), axes(dim, input.ndim)
    values, mask = parts(input, mask)
    if is_sparse(values):
        return reduced("prod", values, dims, bool(keepdim), dtype, mask)
    product = kept("prod", values, mask).to(dtype=dtype)
    for axis in reversed(dims):
        product = product.prod(axis, keepdim=bool(keepdim))
    return product


def amax(input: Tensor, dim: Ints1 | None = None, *, keepdim: bool | None = False, dtype: Dtype | None = None,
         mask: Tensor | None = None) -> Tensor:
    """The greatest of the elements that the mask keeps.

    Input: (*), any real dtype; the mask broadcasts to its shape
    Output: (); with dim, the shape without those axes, or with 1 in their place if keepdim
    Errors: NotImplementedError for bools with a mask; IndexError if dim is out of range, or the mask has more axes
    https://pytorch.org/docs → torch.masked.amax

    >>> import tensorgrad as torch
    >>> torch.masked.amax(torch.tensor([1., 5., 3.]), 0, mask=torch.tensor([True, False, True]))
    tensor(3.)
    """
    return _extreme("amax", input, dim, keepdim, dtype, mask)


def amin(input: Tensor, dim: Ints1 | None = None, *, keepdim: bool | None = False, dtype: Dtype | None = None,
         mask: Tensor | None = None) -> Tensor:
    """The least of the elements that the mask keeps.

    Input: (*), any real dtype; the mask broadcasts to its shape
    Output: (); with dim, the shape without those axes, or with 1 in their place if keepdim
    Errors: NotImplementedError for bools with a mask; IndexError if dim is out of range, or the mask has more axes
    https://pytorch.org/docs → torch.masked.amin

    >>> import tensorgrad as torch
    >>> torch.masked.amin(torch.tensor([4., 1., 3.]), 0, mask=torch.tensor([True, False, True]))
    tensor(3.)
    """
    return _extreme("amin", input, dim, keepdim, dtype, mask)


def argmax(input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype: Dtype | None = None,
           mask: Tensor | None = None) -> Tensor:
    """The place of the greatest of the elements that the mask keeps, in the dtype of the input.

    Input: (*), any real dtype; the mask broadcasts to its shape
    Output: (), the place in the flattened input; with dim, the shape without that axis, or with 1 for it if keepdim
    Errors: NotImplementedError for bools with a mask; IndexError if dim is out of range, or the mask has more axes
    https://pytorch.org/docs → torch.masked.argmax

    >>> import tensorgrad as torch
    >>> torch.masked.argmax(torch.tensor([1., 5., 3.]), dtype=torch.int64, mask=torch.tensor([True, False, True]))
    tensor(2)
    """
    return _place("argmax", input, dim, keepdim, dtype, mask)


def argmin(input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype: Dtype | None = None,
           mask: Tensor | None = None) -> Tensor:
    """The place of the least of the elements that the mask keeps, in the dtype of the input.

    Input: (*), any real dtype; the mask broadcasts to its shape
    Output: (), the place in the flattened input; with dim, the shape without that axis, or with 1 for it if keepdim
    Errors: NotImplementedError for bools with a mask; IndexError if dim is out of range, or the mask has more axes
    https://pytorch.org/docs → torch.masked.argmin

    >>> import tensorgrad as torch
    >>> torch.masked.argmin(torch.tensor([4., 1., 3.]), dtype=torch.int64, mask=torch.tensor([True, False, True]))
    tensor(2)
    """
    return _place("argmin", input, dim, keepdim, dtype, mask)


def _extreme(name: str, input: Any, dim: Any, keepdim: Any, dtype: Any, mask: Any) -> Any:
    values, mask = parts(input, mask)
    if is_sparse(values):
        return reduced(name, values, axes(dim, values.ndim), bool(keepdim), dtype, mask)
    values = kept(name, values, mask)
    return getattr(tg, name)(values, axes(dim, values.ndim), bool(keepdim)).to(dtype=dtype or values.dtype)


def _place(name: str, input: Any, dim: Any, keepdim: Any, dtype: Any, mask: Any) -> Any:
    values = kept_strided(name, input, mask)
    return getattr(tg, name)(values, dim, bool(keepdim)).to(dtype=dtype or values.dtype)


def mean(input: Tensor, dim: Ints1 | None = None, *, keepdim: bool | None = False, dtype: Dtype | None = None,
         mask: Tensor | None = None) -> Tensor:
    """Σ input / n, over the n elements that the mask keeps; NaN if there are none.

    Input: (*), any floating or complex dtype, or any with dtype=; the mask broadcasts to its shape
    Output: (); with dim, the shape without those axes, or with 1 in their place if keepdim
    Errors: ValueError if the dtype is integer or bool; IndexError if dim is out of range, or the mask has more axes
    https://pytorch.org/docs → torch.masked.mean

    >>> import tensorgrad as torch
    >>> torch.masked.mean(torch.tensor([[1., 2.], [3., 4.]]), 0, mask=torch.tensor([[True, False], [True, False]]))
    tensor([2., nan])
    """
    source, dtype = "Input" if dtype is None else "Optional", dtype or input.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or "
                         f"complex dtype. Got: {dtype}")
    values, mask = parts(input, mask)
    if values.layout is tg.sparse_csr:
        return reduced("mean", values, axes(dim, values.ndim), bool(keepdim), dtype, mask)
    if values.layout is not tg.strided:
        raise ValueError(f"masked mean expects strided or sparse_csr tensor (got {values.layout} tensor)")
    mask = None if mask is None else mask_for(values, mask)
    return sum(values, dim, keepdim=keepdim, dtype=dtype, mask=mask) / _count(values, mask, dim, keepdim)


def _count(input: Any, mask: Any, dim: Any, keepdim: Any) -> Any:
    """Return how many elements are kept along the axes."""
    if mask is not None:
        return mask.sum(dim=dim, keepdim=bool(keepdim))
    return sum(tg.ones((), dtype=tg.int64, device=input.device).expand(input.shape), dim, keepdim=keepdim)


def var(input: Tensor, dim: Ints1 | None = None, unbiased: bool | None = None, *, correction: Number | None = None,
        keepdim: bool | None = False, dtype: Dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Σ |x − x̄|² / max(0, n − correction), over the n elements that the mask keeps, whose mean is x̄.

    Input: (*), any dtype, integers becoming float32; the mask broadcasts to its shape
    Output: (); with dim, the shape without those axes, or with 1 in their place if keepdim
    Errors: IndexError if dim is out of range, or the mask has more axes
    https://pytorch.org/docs → torch.masked.var

    >>> import tensorgrad as torch
    >>> torch.masked.var(torch.tensor([1., 9., 3.]), 0, mask=torch.tensor([True, False, True]))
    tensor(2.)
    """
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(input: Tensor, dim: Ints1 | None = None, unbiased: bool | None = None, *, correction: Number | None = None,
        keepdim: bool | None = False, dtype: Dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """The root of `var`: √(Σ |x − x̄|² / max(0, n − correction)).

    Input: (*), any dtype, integers becoming float32; the mask broadcasts to its shape
    Output: (); with dim, the shape without those axes, or with 1 in their place if keepdim
    Errors: IndexError if dim is out of range, or the mask has more axes
    https://pytorch.org/docs → torch.masked.std

    >>> import tensorgrad as torch
    >>> torch.masked.std(torch.tensor([1., 9., 3.]), 0, mask=torch.tensor([True, False, True]))
    tensor(1.4142)
    """
    return tg.sqrt(_variance(input, dim, unbiased, correction, keepdim, dtype, mask))


def _variance(input: Any, dim: Any, unbiased: Any, correction: Any, keepdim: Any, dtype: Any, mask: Any) -> Any:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    correction = float(correction if correction is not None else unbiased in (None, True))

    def floating(kind: Any) -> Any:
        return kind if kind.is_floating_point or kind.is_complex else tg.float32
    values, mask = parts(input, mask)
    dtype = dtype or floating(values.dtype)
    strided(values, "std/var")
    mask = None if mask is None else mask_for(values, mask)
    count = _count(values, mask, dim, keepdim=True)
    apart = values - sum(values, dim, keepdim=True, dtype=dtype, mask=mask) / count
    computed = floating(dtype)
    total = sum(apart * apart.conj(), dim, keepdim=keepdim, dtype=computed, mask=mask)
    if not keepdim:
        count = count.reshape(total.shape)
    if correction:
        count = (count.to(computed.to_real()) - correction).clamp(min=0)
    return (total / count).to(dtype=dtype)


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Dtype | None = None,
           mask: Tensor | None = None) -> Tensor:
    """The median along an axis of the elements that the mask keeps: the lower of two; NaN if there are none.

    Input: (*), any real dtype; the mask broadcasts to its shape
    Output: the shape without the axis, or with 1 in its place if keepdim
    Errors: ValueError if the mask keeps no element of a row of integers; IndexError if dim is out of range
    https://pytorch.org/docs → torch.masked.median

    >>> import tensorgrad as torch
    >>> torch.masked.median(torch.tensor([7., 1., 5., 3.]), 0, mask=torch.tensor([True, False, True, True]))
    tensor(5.)
    """
    values, mask = parts(input, mask)
    dtype, (axis, *_) = dtype or values.dtype, axes(dim, values.ndim)
    floating = values.dtype.is_floating_point
    values = values if floating else values.to(dtype=tg.float32)
    strided(values, "median")
    found = tg.nanmedian(kept("median", values, mask), axis, keepdim).values
    if floating:
        return found
    if found.isnan().any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return found.to(dtype=dtype)


def norm(input: Tensor, ord: Number | None = 2.0, dim: Ints1 | None = None, *, keepdim: bool | None = False,
         dtype: Dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """(Σ |x|ᵖ)^(1/p), p = ord, over the elements that the mask keeps.

    Input: (*), any floating or complex dtype; the mask broadcasts to its shape
    Output: (); with dim, the shape without those axes, or with 1 in their place if keepdim
    Errors: IndexError if dim is out of range, or the mask has more axes
    https://pytorch.org/docs → torch.masked.norm

    >>> import tensorgrad as torch
    >>> torch.masked.norm(torch.tensor([3., 7., 4.]), 2, 0, mask=torch.tensor([True, False, True]))
    tensor(5.)
    """
    values = kept_strided("norm", input, mask, ord)
    return linalg.vector_norm(values, ord, axes(dim, values.ndim), bool(keepdim), dtype=dtype or values.dtype)


def logsumexp(input: Tensor, dim: Ints1 | None = None, *, keepdim: bool = False, dtype: Dtype | None = None,
              mask: Tensor | None = None) -> Tensor:
    """ln Σ exp x, over the elements that the mask keeps; −inf if there are none.

    Input: (*), any dtype but bool; the mask broadcasts to its shape
    Output: (); with dim, the shape without those axes, or with 1 in their place if keepdim; in the dtype of the input
    Errors: IndexError if dim is out of range, or the mask has more axes
    https://pytorch.org/docs → torch.masked.logsumexp

    >>> import tensorgrad as torch
    >>> torch.masked.logsumexp(torch.tensor([0., 9., 0.]), 0, mask=torch.tensor([True, False, True]))
    tensor(0.6931)
    """
    values = kept_strided("logsumexp", input, mask)
    return tg.logsumexp(values, axes(dim, values.ndim), keepdim).to(dtype=dtype or input.dtype)
