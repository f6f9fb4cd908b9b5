"""Masks, and the places where a tensor is not zero: masked_fill, masked_select, where, nonzero."""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core.casting import result_type
from ..core.dispatch import SCALAR_TYPES, fresh, xp
from ..core.tape import TensorBase
from ..interpret._batched_subscripts import examples_of
from ..messages.warn_once import warn
from ..ops.indexing import ARRAY
from ._arguments import broadcast_shape, each_example, in_batch, in_dtype, is_batched, is_hollow, refuse_complex32
from ._kinds import Number
from ._register import public
from .conversion import cast
from .indexing import _scalar
from .subscripts import as_value, getitem


def _check_mask(mask: Any, name: str) -> None:
    if mask.array.dtype.kind != "b":
        raise RuntimeError(f"{name}: expected BoolTensor for mask" if name == "masked_select" else
                           f"{name}_ only supports boolean masks, but got mask with dtype "
                           f"{SCALAR_TYPES[mask.dtype.name] if name == 'masked_scatter' else _c_name(mask)}")


def _c_name(t: Any) -> str:
    return {"int64": "long int", "uint8": "unsigned char", "float32": "float", "int32": "int",
            "float64": "double"}.get(t.dtype.name, t.dtype.name)


@public(inplace=True)
def masked_fill(input: Tensor, mask: Tensor, value: Tensor | Number) -> Tensor:
    """x with a value where the mask is true. https://pytorch.org/docs → torch.Tensor.masked_fill

    Input: input (*); mask, bool, that broadcasts to it; value (), or a number
    Output: the broadcast shape
    Errors: RuntimeError for a mask of another dtype, shapes that do not broadcast, a value with dimensions, or one that
        the dtype cannot hold

    >>> import tensorgrad as torch
    >>> x = torch.tensor([1., -2., 3.])
    >>> x.masked_fill(x < 0, 0)
    tensor([1., 0., 3.])
    """
    _check_mask(mask, "masked_fill")
    if isinstance(value, TensorBase):
        if value.array.ndim:
            raise RuntimeError(f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                               f"{value.array.ndim} dimension(s).")
        if value.dtype.is_complex and not input.dtype.is_complex:  # type: ignore[attr-defined]
            return masked_fill(input, mask, value.item())  # type: ignore[attr-defined]
        value = cast(value.to(input.device), dtypes.FROM_NUMPY[input.array.dtype])  # type: ignore[attr-defined]
    else:
        value = as_value(input, value)
    if mask.array.shape != input.array.shape:
        broadcast_shape(mask, input)
    return xp.masked_fill(input, value, mask)


@public(inplace=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """x with the next element of source where the mask is true. https://pytorch.org/docs → torch.Tensor.masked_scatter

    Input: input (*); mask, bool, that broadcasts with it; source, of the input's dtype, with at least as many elements
        as are true
    Output: the broadcast shape
    Errors: RuntimeError for other dtypes, too few elements, or shapes that do not broadcast
    """
    if in_batch(mask):
        return each_example(masked_scatter, input, mask, source)
    _check_mask(mask, "masked_scatter")
    refuse_complex32(input, "masked_scatter")
    if source.array.dtype != input.array.dtype:
        raise RuntimeError(f"masked_scatter: expected self and source to have same dtypes but got{_scalar(input)} and "
                           f"{_scalar(source)}")
    shape = broadcast_shape(mask, input)
    input, mask = input.expand(shape), mask.expand(shape)
    if is_hollow(mask):
        return xp.clone(input)
    places = [fresh(i, type(input._storage)) for i in (mask.array.nonzero() if shape else ())]
    count = places[0].array.size if places else int(mask.item())
    if source.array.size < count:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    values = source.reshape(-1)[:count]
    if not places:
        return values.reshape(()) if count else xp.clone(input)
    return xp.index_put(input, values, *places, template=(ARRAY,) * len(places))


@public(out="same apart")
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask is true. https://pytorch.org/docs → torch.masked_select

    Input: input (*); mask, bool, that broadcasts with it
    Output: (K), for K true elements
    Errors: RuntimeError for a mask of another dtype, or shapes that do not broadcast

    >>> import tensorgrad as torch
    >>> x = torch.tensor([1., -2., 3.])
    >>> torch.masked_select(x, x > 0)
    tensor([1., 3.])
    """
    _check_mask(mask, "masked_select")
    if is_batched(mask):
        raise RuntimeError("vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support "
                           "this because for each batch this would return a differently shaped Tensor. Please file an "
                           "issue at https://github.com/pytorch/pytorch/issues if you need this feature.")
    shape = broadcast_shape(mask, input)
    out = getitem(input.expand(shape), mask.expand(shape))
    return out.reshape(-1)


@public(method=False, out=False)
def where(condition: Tensor, input: Tensor | Number | None = None, other: Tensor | Number | None = None, *,
          out: Tensor | None = None) -> Tensor | tuple[Tensor, ...]:
    """input where the condition holds, other elsewhere; alone, the places where it holds.

    Input: condition, bool, input and other, or numbers, in shapes that broadcast
    Output: the broadcast shape, in the promoted dtype; without input and other, a tuple of int64 tensors (K), one per
        axis
    Errors: RuntimeError for a condition of another dtype, or shapes that do not broadcast; TypeError for a condition
        that is no tensor
    https://pytorch.org/docs → torch.where

    >>> import tensorgrad as torch
    >>> x = torch.tensor([1., -2., 3.])
    >>> torch.where(x > 0, x, 0.)
    tensor([1., 0., 3.])
    """
    if input is None and other is None:
        if type(condition._storage).rank:
            raise examples_of("where")
        return nonzero(condition, as_tuple=True)
    if not isinstance(condition, TensorBase):
        raise TypeError(f"where(): argument 'condition' (position 1) must be Tensor, not {type(condition).__name__}")
    if condition.array.dtype.kind != "b":
        if condition.array.dtype == np.uint8:
            warn("where received a uint8 condition tensor. This behavior is deprecated and will be removed in "
                 "a future version of PyTorch. Use a boolean condition instead.", again=True)
            condition = cast(condition, dtypes.bool)
        else:
            raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype "
                               f"{_scalar(condition)}")
    dtype = result_type(input, other)
    result = xp.where(condition, *(in_dtype(v, dtype) if isinstance(v, TensorBase)
                                   else condition.new_tensor(v, dtype=dtype) for v in (input, other)))
    if out is not None:
        from ..core.inplace import check_overlap
        from ._register import write_out
        for t in (condition, input, other):
            if isinstance(t, TensorBase) and isinstance(out, TensorBase) and t._storage is out._storage:
                check_overlap(out.array, t.array)
        return write_out(result, out, name="where")
    return result


Tensor.where = lambda self, condition, other: where(condition, self, other)  # type: ignore[attr-defined]


@public(out="same apart")
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """The places of the elements that are not zero: a row each, or a tensor per axis.

    https://pytorch.org/docs → torch.nonzero

    Input: (*), of d dimensions
    Output: (K, d), int64, for K elements that are not zero; with as_tuple, d tensors (K), and one for d = 0

    >>> import tensorgrad as torch
    >>> torch.nonzero(torch.tensor([[0, 5], [7, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    backend = type(input._storage)
    array = input.array
    if as_tuple:
        return tuple(fresh(backend.xp.ascontiguousarray(i), backend)
                     for i in (array if array.ndim else array.reshape(1)).nonzero())
    found = array.nonzero() if array.ndim else ()
    if not array.ndim:
        return fresh(backend.xp.zeros((int(bool(input)), 0), dtype="int64"), backend)
    return fresh(backend.xp.stack(found, 0).T, backend)


@public()
def argwhere(input: Tensor) -> Tensor:
    """The places of the elements that are not zero, a row each. https://pytorch.org/docs → torch.argwhere

    Input: (*), of d dimensions
    Output: (K, d), int64
    """
    return nonzero(input)
