"""Operations along an axis that keep its length, over the elements that a mask keeps.

https://pytorch.org/docs/stable/masked.html

Elements that are left out have the values which an identity in their place gives; PyTorch calls these undefined.
"""
from __future__ import annotations

from typing import Any

from .. import api as tg
from .._tensor import Tensor
from ..api._halves import once_rounded
from ..api._kinds import Dtype
from ._masks import axes, kept, kept_strided, parts, strided
from ._reductions import norm

__all__ = ["cumprod", "cumsum", "log_softmax", "logaddexp", "normalize", "softmax", "softmin"]


def _along(function: Any, name: str, like: str, input: Any, dim: Any, dtype: Any, mask: Any) -> Any:
    """Return a function along an axis of the values that are kept, with the identity of `like` elsewhere."""
    axis, *_ = axes(dim, input.ndim)
    return function(kept_strided(name, input, mask, like=like), axis, dtype=dtype or input.dtype)


def cumsum(input: Tensor, dim: int, *, dtype: Dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Sums of the elements that the mask keeps up to each place along an axis.

    Input: (*), any dtype; the mask broadcasts to its shape
    Output: (*), in the dtype of the input unless another is given
    Errors: IndexError if dim is out of range, or the mask has more axes
    https://pytorch.org/docs → torch.masked.cumsum

    >>> import tensorgrad as torch
    >>> torch.masked.cumsum(torch.tensor([1., 2., 3.]), 0, mask=torch.tensor([True, False, True]))
    tensor([1., 1., 4.])
    """
    return _along(tg.cumsum, "cumsum", "sum", input, dim, dtype, mask)


def cumprod(input: Tensor, dim: int, *, dtype: Dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Products of the elements that the mask keeps up to each place along an axis.

    Input: (*), any dtype; the mask broadcasts to its shape
    Output: (*), in the dtype of the input unless another is given
    Errors: IndexError if dim is out of range, or the mask has more axes
    https://pytorch.org/docs → torch.masked.cumprod

    >>> import tensorgrad as torch
    >>> torch.masked.cumprod(torch.tensor([2., 5., 3.]), 0, mask=torch.tensor([True, False, True]))
    tensor([2., 2., 6.])
    """
    return _along(tg.cumprod, "cumprod", "prod", input, dim, dtype, mask)


def softmax(input: Tensor, dim: int, *, dtype: Dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """exp x / Σ exp x along an axis, over the elements that the mask keeps; 0 elsewhere, and NaN if there are none.

    Input: (*), any floating dtype, or any with dtype=; the mask broadcasts to its shape
    Output: (*)
    Errors: IndexError if dim is out of range, or the mask has more axes
    https://pytorch.org/docs → torch.masked.softmax

    >>> import tensorgrad as torch
    >>> torch.masked.softmax(torch.tensor([-3., -2., -1.]), 0, mask=torch.tensor([True, False, True]))
    tensor([0.1192, 0.0000, 0.8808])
    """
    return _along(tg.softmax, "softmax", "amax", input, dim, dtype, mask)


def log_softmax(input: Tensor, dim: int, *, dtype: Dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """x − ln Σ exp x along an axis, over the elements that the mask keeps; −inf elsewhere.

    Input: (*), any floating dtype, or any with dtype=; the mask broadcasts to its shape
    Output: (*)
    Errors: IndexError if dim is out of range, or the mask has more axes
    https://pytorch.org/docs → torch.masked.log_softmax

    >>> import tensorgrad as torch
    >>> torch.masked.log_softmax(torch.tensor([-3., -2., -1.]), 0, mask=torch.tensor([True, False, True]))
    tensor([-2.1269,    -inf, -0.1269])
    """
    return _along(tg.log_softmax, "log_softmax", "amax", input, dim, dtype, mask)


def softmin(input: Tensor, dim: int, *, dtype: Dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """exp −x / Σ exp −x along an axis, over the elements that the mask keeps; 0 elsewhere, and NaN if there are none.

    Input: (*), any floating dtype, or any with dtype=; the mask broadcasts to its shape
    Output: (*)
    Errors: IndexError if dim is out of range, or the mask has more axes
    https://pytorch.org/docs → torch.masked.softmin

    >>> import tensorgrad as torch
    >>> torch.masked.softmin(torch.tensor([-3., -2., -1.]), 0, mask=torch.tensor([True, False, True]))
    tensor([0.8808, 0.0000, 0.1192])
    """
    return _along(lambda x, axis, dtype: tg.softmax(-x, axis, dtype=dtype), "softmin", "amin", input, dim, dtype, mask)


def normalize(input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Dtype | None = None,
              mask: Tensor | None = None) -> Tensor:
    """x / max(‖x‖, eps) along an axis, over the elements that the mask keeps; 0 elsewhere.

    Input: (*), any floating dtype; the mask broadcasts to its shape
    Output: (*)
    Errors: IndexError if dim is out of range, or the mask has more axes
    https://pytorch.org/docs → torch.masked.normalize

    >>> import tensorgrad as torch
    >>> torch.masked.normalize(torch.tensor([3., 7., 4.]), 2, 0, mask=torch.tensor([True, False, True]))
    tensor([0.6000, 0.0000, 0.8000])
    """
    values, mask = parts(input, mask)
    strided(values, "normalize")
    compute = once_rounded(_normalized) if dtype in (None, values.dtype) else _normalized
    least = values.new_full((), eps, dtype=(dtype or values.dtype).to_real())      # as in PyTorch, 0 in float16
    return compute(values, mask, ord, dim, least, dtype)


def _normalized(values: Any, mask: Any, ord: float, dim: int, eps: Tensor, dtype: Dtype | None) -> Any:
    length = norm(values, ord, dim, keepdim=True, dtype=dtype or values.dtype, mask=mask)
    return kept("sum", values, mask) / tg.maximum(length, eps)


def logaddexp(input: Tensor, other: Tensor, *, dtype: Dtype | None = None, input_mask: Tensor | None = None,
              other_mask: Tensor | None = None) -> Tensor:
    """ln(exp x + exp y), where a term that its mask leaves out is 0.

    Input: (*), any real dtype, and one that broadcasts with it; each mask broadcasts to its tensor
    Output: the common shape, in the dtype of the input unless another is given
    Errors: IndexError if a mask has more axes than its tensor
    https://pytorch.org/docs → torch.masked.logaddexp

    >>> import tensorgrad as torch
    >>> x, y, mask = torch.tensor([-100., -200.]), torch.tensor([-1., -2.]), torch.tensor([True, False])
    >>> torch.masked.logaddexp(x, y, input_mask=mask, other_mask=mask)
    tensor([-1., -inf])
    """
    terms = [parts(input, input_mask), parts(other, other_mask)]
    if any(values.layout is not tg.strided for values, _ in terms):
        raise ValueError(f"masked logaddexp expects strided tensors (got {terms[0][0].layout} tensor for input, "
                         f"{terms[1][0].layout} for other)")
    x, y = (kept("logaddexp", values, mask) for values, mask in terms)
    return tg.logaddexp(x, y).to(dtype=dtype or input.dtype)
