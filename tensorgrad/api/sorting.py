"""Sorting, selecting by rank, searching. https://pytorch.org/docs/stable/torch.html#comparison-ops"""
from __future__ import annotations

from typing import Any

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core.dispatch import SCALAR_TYPES, xp
from ..core.undefined import undefined
from ..size import whole
from . import return_types
from ._arguments import in_dtype, integer, normalize_dim, promoted, refuse
from ._kinds import Index, Number
from ._register import public
from .reduction import along, keeps_with_dim


def _on_line(op: str, input: Any, dim: int, **params: Any) -> list[Any]:
    """Return values and indices of an op along an axis; a 0-d tensor counts as a line of one element."""
    axis = normalize_dim(dim, input.array.ndim)
    if input.array.ndim:
        return getattr(xp, op)(input, axis=axis, **params)
    return [xp.reshape(part, ()) for part in getattr(xp, op)(xp.reshape(input, (1,)), axis=0, **params)]


# ── sorted ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@public(out="same")
def sort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = False) -> return_types.sort:
    """The elements in order along an axis, and where each came from; equal ones keep their order, NaN is the greatest.

    Input: (*, n, *), real, n at dim
    Output: values and indices (int64), each (*, n, *)
    Errors: IndexError if dim is out of range; RuntimeError if the input is complex
    https://pytorch.org/docs → torch.sort

    >>> import tensorgrad as torch
    >>> torch.sort(torch.tensor([3, 1, 2]), descending=True)
    torch.return_types.sort(
    values=tensor([3, 2, 1]),
    indices=tensor([0, 2, 1]))
    """
    normalize_dim(dim, input.array.ndim)
    if input.dtype.is_complex:
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    return return_types.sort(*_on_line("sort_dim", input, dim, descending=bool(descending)))


@public(out="same")
def argsort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
    """The permutation that sorts an axis.

    Input: (*, n, *), real, n at dim
    Output: (*, n, *), int64
    Errors: IndexError if dim is out of range; RuntimeError if the input is complex
    https://pytorch.org/docs → torch.argsort

    >>> import tensorgrad as torch
    >>> torch.argsort(torch.tensor([3, 1, 2]))
    tensor([1, 2, 0])
    """
    return sort(input, dim, descending)[1]


@public(out="same")
def msort(input: Tensor) -> Tensor:
    """The elements in order along the first axis.

    Input: (n, *), real
    Output: (n, *)
    Errors: RuntimeError if the input is complex
    https://pytorch.org/docs → torch.msort

    >>> import tensorgrad as torch
    >>> torch.msort(torch.tensor([[3, 1], [2, 4]]))
    tensor([[2, 1],
            [3, 4]])
    """
    return sort(input, 0)[0]


# ── chosen by rank ────────────────────────────────────────────────────────────────────────────────────────────────────


@public(out="same")
def topk(input: Tensor, k: Index, dim: int = -1, largest: bool = True, sorted: bool = True) -> return_types.topk:
    """The k greatest elements along an axis (or the least), in order, and where they are.

    Input: (*, n, *), real, not bool, n at dim
    Output: values and indices (int64), each (*, k, *)
    Errors: RuntimeError if k is not in 0 … n, or the input is complex or bool; IndexError if dim is out of range
    https://pytorch.org/docs → torch.topk

    >>> import tensorgrad as torch
    >>> torch.topk(torch.tensor([1., 5., 3.]), 2).values
    tensor([5., 3.])
    """
    if dtypes.letter(input.array.dtype) in "bc":
        raise RuntimeError(
            f"{'topk does not support bool' if input.array.dtype.kind == 'b' else ' topk does not support complex'} "
            f"dtypes on CPU")
    axis = normalize_dim(dim, input.array.ndim)
    if not 0 <= k <= (input.array.shape[axis] if input.array.ndim else 1):
        raise RuntimeError("selected index k out of range")
    return return_types.topk(*_on_line("topk", input, axis, k=whole(k), largest=bool(largest), sorted=bool(sorted)))


@public(out="same apart")
def kthvalue(input: Tensor, k: Index, dim: int = -1, keepdim: bool = False) -> return_types.kthvalue:
    """The k-th least element along an axis, and where it is.

    Input: (*, n, *), real, n at dim
    Output: values and indices (int64), each (*, *), or (*, 1, *) if keepdim
    Errors: RuntimeError if k is not in 1 … n; IndexError if dim is out of range or that axis is empty;
        NotImplementedError if the input is complex
    https://pytorch.org/docs → torch.kthvalue

    >>> import tensorgrad as torch
    >>> torch.kthvalue(torch.tensor([4., 1., 3.]), 2).values
    tensor(3.)
    """
    axis = normalize_dim(dim, input.array.ndim)
    n = input.array.shape[axis] if input.array.ndim else 1
    if n and not 1 <= k <= n:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis}")
    refuse(input, "b", "kthvalue_cpu")
    return return_types.kthvalue(*along("kthvalue", input, dim, keepdim, "kthvalue", k=int(k)))


def _middle(input: Any, dim: Any, keepdim: bool, name: str) -> Any:
    if dim is not None:
        normalize_dim(dim, input.array.ndim)
    if dtypes.letter(input.array.dtype) in "bc":
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{SCALAR_TYPES[input.dtype.name]}'")
    if dim is not None:
        return getattr(return_types, name)(*along(f"{name}_dim", input, dim, keepdim, name))
    if keepdim:
        raise TypeError(f"{name}() received an invalid combination of arguments: keepdim needs a dim")
    if not input.array.size:
        return (xp.add(xp.sum(input), float("nan")) if input.array.dtype.kind in "fV"
                else input.new_full((), dtypes.iinfo(input.dtype).min))
    return getattr(xp, f"{name}_of_all")(input)


@public(out="same")
@keeps_with_dim
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | return_types.median:
    """The middle element, the lower of two: of all, or along an axis with its place; NaN if there is one.

    Input: (*), real, not bool
    Output: (); with dim, values and indices (int64) of the shape without that axis, or with 1 in its place if keepdim
    Errors: IndexError if dim is out of range or that axis is empty; NotImplementedError if the input is complex or
        bool; TypeError if dim is a tuple
    https://pytorch.org/docs → torch.median

    >>> import tensorgrad as torch
    >>> torch.tensor([4., 1., 3., 2.]).median()
    tensor(2.)
    """
    return _middle(input, dim, keepdim, "median")


@public(out="same")
@keeps_with_dim
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | return_types.nanmedian:
    """The median of the elements that are numbers.

    Input: (*), real, not bool
    Output: (); with dim, values and indices (int64) of the shape without that axis, or with 1 in its place if keepdim
    Errors: IndexError if dim is out of range or that axis is empty; NotImplementedError if the input is complex or
        bool; TypeError if dim is a tuple
    https://pytorch.org/docs → torch.nanmedian

    >>> import tensorgrad as torch
    >>> torch.nanmedian(torch.tensor([4., float('nan'), 3.]))
    tensor(3.)
    """
    return _middle(input, dim, keepdim, "nanmedian")


@public(out="same")
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> return_types.mode:
    """The most frequent element along an axis, the least of several, and where it is last.

    Input: (*, n, *), real, n at dim
    Output: values and indices (int64), each (*, *), or (*, 1, *) if keepdim
    Errors: IndexError if dim is out of range or that axis is empty; NotImplementedError if the input is complex
    https://pytorch.org/docs → torch.mode

    >>> import tensorgrad as torch
    >>> torch.mode(torch.tensor([2, 1, 2, 1, 2])).values
    tensor(2)
    """
    return return_types.mode(*along("mode", input, dim, keepdim, "mode"))


# ── places in sorted sequences ────────────────────────────────────────────────────────────────────────────────────────


@public(method=False, out="same")
def searchsorted(sorted_sequence: Tensor, input: Tensor | Number, *, out_int32: bool = False, right: bool = False,
                 side: str | None = None, sorter: Tensor | None = None) -> Tensor:
    """The index along the last axis at which each value would keep the order: before equal elements, or after.

    sequence[out − 1] < value ≤ sequence[out], or sequence[out − 1] ≤ value < sequence[out] if right=True
    (side='right').

    Input: sorted_sequence (n) and any values (*), or (*, n) and (*, m)
    Output: the values' shape, int64 from 0 to n, or int32 if out_int32
    Errors: RuntimeError if the shapes do not fit, side is neither 'left' nor 'right' or contradicts right=True, or
        sorter is no int64 tensor of the sequence's shape with indices in range
    https://pytorch.org/docs → torch.searchsorted

    >>> import tensorgrad as torch
    >>> torch.searchsorted(torch.tensor([1, 3, 5, 7]), torch.tensor([3, 6]), right=True)
    tensor([2, 3])
    """
    if isinstance(input, complex) and sorted_sequence.array.ndim == 1:
        raise NotImplementedError("\"searchsorted_out_cpu\" not implemented for "
                                  f"'{SCALAR_TYPES[dtypes.default_complex().name]}'")
    values = (input if isinstance(input, Tensor) else sorted_sequence.new_tensor(input,
                                                                                 dtype=None if isinstance(input, int)
                                                                                 else dtypes.float64))
    _check_search(sorted_sequence, values, right, side, sorter)
    refuse(sorted_sequence, "bc" if values.array.dtype.kind == "b" else "c", "searchsorted_out_cpu")
    if sorter is not None:
        sorted_sequence = xp.take_along_axis(sorted_sequence, sorter, axis=sorted_sequence.array.ndim - 1)
    sequence, values = promoted(sorted_sequence, values) if values.array.ndim else (sorted_sequence, values)
    if sequence.array.dtype != values.array.dtype:
        sequence, values = (in_dtype(t, dtypes.float64) for t in (sequence, values))
    found = xp.search_sorted(sequence, values, right=bool(right or side == "right"))
    return in_dtype(found, dtypes.int32) if out_int32 else found


def _check_search(sequence: Any, values: Any, right: bool, side: Any, sorter: Any) -> None:
    shape, wanted = sequence.array.shape, values.array.shape
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if right and side == "left":
        raise RuntimeError("torch.searchsorted(): side and right can't be set to opposites, got side of left while "
                           "right was True")
    if len(shape) != 1 and not wanted:
        raise RuntimeError("torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is "
                           f"1, but we got boundaries tensor dim({len(shape)}) and input value's dim(0) numel(1)")
    if not shape:
        raise RuntimeError("torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 "
                           "dimension")
    if len(shape) != 1 and shape[:-1] != wanted[:-1]:
        raise RuntimeError("torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions "
                           f"of boundaries tensor and input value tensor must match, but we got boundaries tensor "
                           f"{list(shape)} and input value tensor {list(wanted)}")
    if sorter is not None:
        if sorter.array.shape != shape:
            raise RuntimeError("torch.searchsorted(): boundary and sorter must have the same size, but got boundary "
                               f"tensor {list(shape)}and got sorter tensor {list(sorter.array.shape)}")
        if sorter.dtype is not dtypes.int64:
            raise RuntimeError("torch.searchsorted(): sorter must be a tensor of long dtype but got dtype "
                               f"{SCALAR_TYPES[sorter.dtype.name]}")
        if sorter.array.size and (int(sorter.array.min()) < 0 or int(sorter.array.max()) >= shape[-1]):
            raise RuntimeError("torch.searchsorted(): sorter index out of range")


@public(method=False, out="same")
def bucketize(input: Tensor | Number, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The number of the bucket, between sorted boundaries, of each value.

    boundaries[out − 1] < value ≤ boundaries[out], or boundaries[out − 1] ≤ value < boundaries[out] if right=True.

    Input: any values (*); boundaries (n), sorted
    Output: (*), int64 from 0 to n, or int32 if out_int32
    Errors: RuntimeError if boundaries are not 1-d
    https://pytorch.org/docs → torch.bucketize

    >>> import tensorgrad as torch
    >>> torch.bucketize(torch.tensor([0.5, 2., 9.]), torch.tensor([1., 2., 3.]))
    tensor([0, 1, 3])
    """
    if boundaries.array.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.array.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


# ── distinct elements ─────────────────────────────────────────────────────────────────────────────────────────────────


def _asked_for(values: Any, inverse: Any, counts: Any, return_inverse: bool, return_counts: bool) -> Any:
    found = (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))
    return found if len(found) > 1 else values


def _distinct_slices(input: Any, dim: int, neighbours: bool) -> list[Any]:
    if not input.array.ndim:
        raise IndexError(f"Dimension specified as {integer(dim, 'dim')} but tensor has no dimensions")
    axis, shape = normalize_dim(dim, input.array.ndim), input.array.shape
    if 0 in shape[:axis] + shape[axis + 1:]:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    values, inverse, counts = xp.distinct_slices(input.movedim(axis, 0), neighbours=neighbours)
    return [values.movedim(0, axis), inverse, counts]


@public()
def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           dim: int | None = None) -> Any:
    """The distinct elements, or slices along an axis, sorted; on demand where each element went and how often each
    occurs.

    Input: (*), any dtype
    Output: (k) distinct elements, or the input's shape with k slices at dim; on demand the places (int64, the input's
        shape, or as long as dim) and the counts (int64, (k))
    Errors: IndexError if dim is out of range, or given for a 0-d tensor; RuntimeError if dim is given and another axis
        is empty
    https://pytorch.org/docs → torch.unique

    >>> import tensorgrad as torch
    >>> torch.unique(torch.tensor([3, 1, 3]), return_inverse=True, return_counts=True)
    (tensor([1, 3]), tensor([1, 0, 1]), tensor([1, 2]))
    """
    refuse(input, "c", "unique" if dim is None else "unique_dim")
    if dim is None:
        found = undefined("_unique2", xp.distinct(input), input, step="Unique2Backward0")
    else:
        found = undefined("unique_dim", _distinct_slices(input, dim, False), input, step="UniqueDimBackward0")
    return _asked_for(*found, return_inverse, return_counts)


@public()
def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Any:
    """The elements, or slices along an axis, without those that repeat the one before.

    Input: (*), any dtype
    Output: (k) elements, or the input's shape with k slices at dim; on demand the places (int64, the input's shape, or
        as long as dim) and the counts (int64, (k))
    Errors: IndexError if dim is out of range, or given for a 0-d tensor; RuntimeError if dim is given and another axis
        is empty
    https://pytorch.org/docs → torch.unique_consecutive

    >>> import tensorgrad as torch
    >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 2, 1]))
    tensor([1, 2, 1])
    """
    refuse(input, "c", "unique" if dim is None else "unique_dim")
    if dim is not None:
        found = _distinct_slices(input, dim, True)
    else:
        values, inverse, counts = xp.distinct_slices(xp.reshape(input, (input.array.size,)), neighbours=True)
        found = [values, xp.reshape(inverse, input.array.shape), counts]
    undefined("unique_consecutive", found, input, step="UniqueConsecutiveBackward0")
    return _asked_for(*found, return_inverse, return_counts)
