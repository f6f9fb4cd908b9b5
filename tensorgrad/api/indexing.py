"""Reading and writing at places: x[i], x[i] = v, gather, scatter, masks.

https://pytorch.org/docs/stable/torch.html#indexing-slicing-joining-mutating-ops
"""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core import inplace as _inplace
from ..core.class_hooks import hooks as class_hooks
from ..core.class_hooks import is_own
from ..core.dispatch import SCALAR_TYPES, fresh, level_of, xp
from ..core.mode import mode
from ..core.tape import TensorBase, node_of
from ..ops.indexing import ARRAY
from ..runtime.numpy_state import compute
from ..storage.sparse import pattern_of
from ._arguments import (
    check_tensor,
    converted,
    integer,
    is_batched,
    is_hollow,
    normalize_dim,
    refuse,
    refuse_complex32,
    warn,
)
from ._kinds import Index, Indices, Ints, Number
from ._register import public
from ._sparse import rules
from .conversion import cast
from .subscripts import as_value, in_backend
from .subscripts import put as put_at

FULL = slice(None)


def _scalar(t: Any) -> str:
    return SCALAR_TYPES[t.dtype.name]


def _like(x: Any, maker: str, shape: Any, dtype: str) -> Any:
    return getattr(type(x._storage).xp, maker)(shape, dtype=dtype)


# ── index tensors as arguments ────────────────────────────────────────────────────────────────────────────────────────


@public(function=True, inplace=False)
def index_put(input: Tensor, indices: Indices, values: Tensor, accumulate: bool = False) -> Tensor:
    """x with values put (or added) at index tensors. https://pytorch.org/docs → torch.Tensor.index_put

    Input: input (*); indices, a tensor of int64, int32 or bool per axis, that broadcast to (K); values, of the input's
        dtype, that broadcast to (K, …)
    Errors: IndexError for an index out of range or of another dtype; RuntimeError if the dtypes differ, the shapes do
        not broadcast, or there are no indices; TypeError for indices that are no tensors

    >>> import tensorgrad as torch
    >>> torch.zeros(3).index_put((torch.tensor([0, 2]),), torch.tensor([5., 7.]))
    tensor([5., 0., 7.])
    """
    for other in (values, *(i for i in indices if i is not None)):
        input = level_of(other, input)
    return index_put_(xp.clone(input), indices, values, accumulate)


@public(function=True)
def index_put_(input: Tensor, indices: Indices, values: Tensor, accumulate: bool = False) -> Tensor:
    """`index_put` in place. https://pytorch.org/docs → torch.Tensor.index_put_"""
    check_tensor(values, "index_put_", "values", 2)
    for position, t in enumerate(indices):
        if not isinstance(t, TensorBase):
            raise TypeError(f"expected Tensor as element {position} in argument 0, but got {type(t).__name__}")
    if (len(indices) == 1 and input.array.ndim and not indices[0].array.ndim and indices[0].array.dtype.kind == "b"
            and values.array.size == 1):
        return input.masked_fill_(indices[0], values.reshape(()))
    if not indices:
        raise RuntimeError("index_put_(): there are no indices")
    put_at(input, tuple(in_backend(input, t) for t in indices), values, accumulate)
    return input


def _check_index(index: Any, name: str) -> None:
    if not isinstance(index, TensorBase):
        raise TypeError(f"{name}(): argument 'index' must be Tensor, not {type(index).__name__}")
    if name == "index_copy_" and index.array.dtype != np.int64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {_scalar(index)}")
    if name == "index_fill_" and index.array.dtype != np.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.array.dtype not in (np.int64, np.int32):
        raise RuntimeError(
            f"{name}(): Expected dtype int32 or int64 for index" if name == "index_select" else
            f"{'gather' if name == 'gather' else 'scatter'}(): Expected dtype int32/int64 for index"
            if name.startswith(("gather", "scatter")) else
            f"{name}(): Expected dtype int64 for index" if not name.startswith(("index_add", "index_reduce")) else
            f"{name.rstrip('_')}_(): Expected dtype int32/int64 for index but got: {_scalar(index)}")


@public(out="same apart")
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Select slices of one axis by number. https://pytorch.org/docs → torch.index_select

    Input: input (*, n, *); index (K) or (), int64 or int32, from 0 to n − 1
    Output: (*, K, *)
    Errors: IndexError for an index of more dimensions, a dim or, on the first axis, an index out of range; RuntimeError
        for an index out of range on another axis, or of another dtype

    >>> import tensorgrad as torch
    >>> torch.index_select(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([1, 1, 0]))
    tensor([[2, 2, 1],
            [4, 4, 3]])
    """
    _check_index(index, "index_select")
    if index.array.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if not input.array.ndim:
        if index.array.size != 1:
            raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.array.size} "
                               f"value(s)")
        if not is_hollow(index) and index.array.item() not in (0, -1):
            raise IndexError("index out of range in self")
        return xp.clone(input)
    d = normalize_dim(dim, input.array.ndim)
    index = xp.reshape(index, shape=(index.array.size,))
    n = input.array.shape[d]
    if index.array.size and (int(index.array.min()) < 0 or int(index.array.max()) >= n):
        if input._storage.dense is not None and (wrapped := _wrapped(input, index, d)) is not None:
            return xp.index_select(input, wrapped, axis=d)
        if not input.is_cpu:
            raise IndexError("index out of range")
        if not n:
            raise RuntimeError("index_select(): self indexing axis dim should be positive")
        if d and input.array.ndim > 1:
            wrong = next(int(i) for i in index.array if not 0 <= i < n)
            raise RuntimeError(f"INDICES element is out of DATA bounds, id={wrong} axis_dim={n}")
        raise IndexError("index out of range in self")
    return xp.index_select(input, index, axis=d)


def _wrapped(x: Any, index: Any, axis: int) -> Any:
    """Indices of a sparse_coo tensor's axis, where negative ones count from its end; None for a dense axis."""
    own: Any = pattern_of(x)
    if own.layout is not dtypes.sparse_coo or axis >= own.sparse_dim:
        return None
    n = x.array.shape[axis]
    for i in (int(index.array.min()), int(index.array.max())):
        if not -n <= i < n:
            raise IndexError(f"index_select(): index contains {i} that is out of range for tensor of size "
                             f"{list(x.array.shape)} at dimension {axis}")
    return fresh(index.array % n, type(index._storage))


def _check_gather(input: Any, dim: int, index: Any, name: str, src: Any = None) -> int:
    _check_index(index, name)
    d = normalize_dim(dim, input.array.ndim)
    if max(input.array.ndim, 1) != max(index.array.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor" if name == "gather"
                           else
                           "Index tensor must have the same number of dimensions as self tensor")
    if index.array.ndim and input.array.ndim:
        for k, (n, m) in enumerate(zip(index.array.shape, input.array.shape, strict=True)):
            if k != d and n > m and index.array.size:
                raise RuntimeError(f"Size does not match at dimension {k} expected index {list(index.array.shape)} to "
                                   f"be no larger than self {list(input.array.shape)} apart from dimension {d}"
                                   if name == "gather" else
                                   _too_large(input, d, index, src))
    n = input.array.shape[d] if input.array.ndim else 1
    if index.array.size:
        low, high = int(index.array.min()), int(index.array.max())
        if low < 0 or high >= n:
            wrong = next(k for k in index.reshape(-1).tolist() if not 0 <= k < n)
            raise RuntimeError(f"index {wrong} is out of bounds for dimension {d} with size {n}")
    return d


def _too_large(input: Any, d: int, index: Any, src: Any) -> str:
    """Return PyTorch's message for an index that is larger than the target tensor or the values."""
    than_src = f" and to be no larger size than src {list(src.array.shape)}" if isinstance(src, TensorBase) else ""
    return (f"Expected index {list(index.array.shape)} to be no larger than self {list(input.array.shape)} apart from "
            f"dimension {d}{than_src}")


def _with_axis(x: Any) -> Any:
    return x if x.array.ndim else xp.reshape(x, shape=(1,))


def _of_shape(x: Any, shape: tuple[int, ...]) -> Any:
    """Without that axis again."""
    return x if x.array.shape == shape else xp.reshape(x, shape=shape)


@public(out="same apart")
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """out[i][j] = input[index[i][j]][j] for dim 0, and so on. https://pytorch.org/docs → torch.gather

    Input: input and index (*), of one number of dimensions; index, int64 or int32, no larger than the input apart from
        dim, where it is from 0 to n − 1
    Output: the index's shape
    Errors: RuntimeError for an index out of range, of another dtype, too large, or of another number of dimensions;
        IndexError if dim is out of range

    >>> import tensorgrad as torch
    >>> torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[1], [0]]))
    tensor([[2],
            [3]])
    """
    if not index.array.size:
        normalize_dim(dim, input.array.ndim)
        return xp.index(xp.reshape(input, shape=(-1,)), index, template=(ARRAY,))
    d = _check_gather(input, dim, index, "gather")
    sparse_grad = sparse_grad and input.array.ndim > 0
    if sparse_grad:
        rules()
    taken = xp.gather_sparse if sparse_grad else xp.gather
    out = taken(_with_axis(input), _with_axis(index), axis=d)
    return out if index.array.ndim else xp.reshape(out, shape=())


@public(out="same")
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """`gather` with broadcasting; without dim, of all elements. https://pytorch.org/docs → torch.take_along_dim

    Input: input and indices, int64, of one number of dimensions, that broadcast apart from dim; with dim, indices
        beyond an end go on from the other one
    Output: the broadcast shape, with the size of indices along dim
    Errors: RuntimeError for indices of another dtype, of another number of dimensions, or, without dim, out of range
    """
    if indices.array.dtype != np.int64:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {_scalar(indices)}")
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1))
    if input.array.ndim != indices.array.ndim:
        raise RuntimeError("torch.take_along_dim(): input and indices should have the same number of dimensions, but "
                           f"got {input.array.ndim} dimensions for input, and {indices.array.ndim} dimensions for "
                           f"indices")
    d = normalize_dim(dim, input.array.ndim)
    a, b = list(input.array.shape), list(indices.array.shape)
    common = [1 if k == d else max(n, m) if 0 not in (n, m) else 0 for k, (n, m) in enumerate(zip(a, b, strict=True))]
    shape_a, shape_b = list(common), list(common)
    shape_a[d], shape_b[d] = a[d], b[d]
    if indices.array.size and a[d]:
        indices = xp.remainder(indices, a[d])
    return gather(input.expand(shape_a), d, indices.expand(shape_b))


@public(out="same apart")
def take(input: Tensor, index: Tensor) -> Tensor:
    """Elements by their number in the flattened tensor. https://pytorch.org/docs → torch.take

    Input: input (*), of m elements; index (*), int64, from −m to m − 1
    Output: the index's shape
    Errors: IndexError for an index out of range; RuntimeError for one of another dtype

    >>> import tensorgrad as torch
    >>> torch.take(torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, -1]))
    tensor([1, 4])
    """
    if index.array.dtype != np.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {_scalar(index)}")
    refuse_complex32(input, "take_cpu")
    flat = input.reshape(-1)
    n = flat.array.size
    if index.array.size and n == 0:
        raise IndexError("take(): tried to take from an empty tensor")
    _check_numbers(index, n)
    return xp.embedding(flat, index)


def _check_numbers(index: Any, n: int) -> None:
    if index.array.size and not (-n <= int(index.array.min()) and int(index.array.max()) < n):
        wrong = next(k for k in index.reshape(-1).tolist() if not -n <= k < n)
        raise IndexError(f"out of range: tried to access index {wrong} on a tensor of {n} elements.")


@public(function=False)
def put_(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Write elements by their number in the flattened tensor. https://pytorch.org/docs → torch.Tensor.put_

    Input: input (*), of m elements; index, int64, from −m to m − 1; source, of the input's dtype and as many elements
        as index
    Errors: IndexError for an index out of range, or unless index and source have as many elements; RuntimeError for
        other dtypes
    """
    return _inplace.in_place(input, put, index, source, accumulate)


alerts: list[Any] = []     # of use_deterministic_algorithms: functions that refuse a function, by its name


@public(function=True)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy of input with elements of `source` at positions `index` of the flattened tensor.

    Input: as for `put_`
    Errors: as for `put_`
    https://pytorch.org/docs → torch.put
    """
    for alert in () if accumulate else alerts:
        alert("put_")
    if index.array.dtype != np.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {_scalar(index)}")
    if source.array.dtype != input.array.dtype:
        raise RuntimeError(f"put_(): self and source expected to have the same dtype, but got self.dtype = "
                           f"{_scalar(input)} and source.dtype = {_scalar(source)}")
    if index.array.size != source.array.size:
        raise IndexError(f"put_(): Expected source and index to have the same number of elements, but got "
                           f"source.numel() = {source.array.size}, index.numel() = {index.array.size}")
    refuse_complex32(input, "take_put_cpu")
    flat, index = input.reshape(-1), index.reshape(-1)
    n = flat.array.size
    _check_numbers(index, n)
    return xp.index_put(flat, source.reshape(-1), index, template=(ARRAY,),
                        accumulate=accumulate).reshape(input.array.shape)


def _value_for(input: Any, d: int, index: Any, value: Any, name: str) -> Any:
    if not isinstance(value, TensorBase):
        backend, value = type(input._storage), converted(value, input.dtype)
        return fresh(compute(backend.xp.full, index.array.shape, value, dtype=input.array.dtype), backend)
    if value.array.dtype != input.array.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    if index.array.size and max(index.array.ndim, 1) != max(value.array.ndim, 1):
        if value.array.ndim:
            normalize_dim(index.array.ndim - 1, value.array.ndim)
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    if any(n > m for n, m in zip(index.array.shape, value.array.shape, strict=False)):
        raise RuntimeError(_too_large(input, d, index, value))
    return value


def _unmoved(input: Any, src: Any) -> Any:
    """Return a copy of input whose history includes src, with a gradient of zeros."""
    out = xp.clone(input)
    if isinstance(src, TensorBase) and src.requires_grad and src.array.dtype == input.array.dtype:
        none = xp.get_slice(xp.reshape(src, shape=(src.array.size,)), index=(slice(0, 0),))
        out = xp.add(out, xp.sum(none))
    return out


@public(inplace=True, out="same")
def scatter(input: Tensor, dim: int, index: Tensor, src: Tensor | None = None, *, reduce: str | None = None,
            value: Number | None = None) -> Tensor:
    """x with src (or a value) put at index along an axis. https://pytorch.org/docs → torch.scatter

    `reduce`: 'add' or 'multiply'. Where an index repeats, any one of its elements may be kept without it.

    Input: index (*), int64 or int32, of the input's number of dimensions, no larger than it apart from dim, and no
        larger than src; src, of the input's dtype, or a number
    Output: the input's shape
    Errors: RuntimeError for an index out of range, of another dtype, too large, or of another number of dimensions, for
        a src of another dtype, or another reduce; IndexError if dim is out of range

    >>> import tensorgrad as torch
    >>> torch.scatter(torch.zeros(2, 3), 1, torch.tensor([[2], [0]]), 5.)
    tensor([[0., 0., 5.],
            [5., 0., 0.]])
    """
    given = src if src is not None else value
    if reduce is not None:
        if reduce not in ("add", "multiply"):
            raise RuntimeError("reduce argument must be either add or multiply.")
        if isinstance(given, TensorBase):
            warn("The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future "
                 "PyTorch release. Use torch.scatter_reduce instead for more reduction options.")
        if not isinstance(given, TensorBase):
            given = _value_for(input, 0, index, given, "scatter")
        return scatter_reduce(input, dim, index, given, "sum" if reduce == "add" else "prod")
    if not index.array.size:
        return _unmoved(input, given)
    d = _check_gather(input, dim, index, "scatter", given)
    given = _value_for(input, d, index, given, "scatter")
    out = xp.scatter(_with_axis(input), _with_axis(given), _with_axis(index), axis=d)
    return _of_shape(out, input.array.shape)


@public(inplace=True, out="same")
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """x with src added at index along an axis. https://pytorch.org/docs → torch.scatter_add

    Input: index and src as in `scatter`
    Errors: as for `scatter`
    """
    check_tensor(src, "scatter_add", "src", 4)
    if not index.array.size:
        return _unmoved(input, src)
    d = _check_gather(input, dim, index, "scatter_add", src)
    src = _value_for(input, d, index, src, "scatter")
    return _of_shape(xp.scatter_add(_with_axis(input), _with_axis(src), _with_axis(index), axis=d), input.array.shape)


@public(inplace=True, out="same")
def scatter_reduce(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *,
                   include_self: bool = True) -> Tensor:
    """x with src reduced into it at index: sum, prod, mean, amax or amin.

    https://pytorch.org/docs → torch.scatter_reduce

    Without `include_self` the input's own elements take no part where an index is.

    Input: index and src as in `scatter`
    Errors: as for `scatter`

    >>> import tensorgrad as torch
    >>> torch.scatter_reduce(torch.zeros(3), 0, torch.tensor([0, 2, 2]), torch.tensor([1., 2., 3.]), 'amax')
    tensor([1., 0., 3.])
    """
    from . import FUNCTIONS as f
    if reduce in ("amax", "amin"):
        refuse(input, "c", f"scatter_gather_tensor_cpu_reduce_{reduce}")
    if reduce == "mean":
        refuse(input, "b", "scatter_gather_tensor_cpu_reduce_mean")
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    dim = integer(dim, "dim")
    check_tensor(src, "scatter_reduce", "src", 4)
    if not index.array.size:
        return _unmoved(input, src)
    d = _check_gather(input, dim, index, "scatter_reduce", src)
    src = _value_for(input, d, index, src, "scatter")
    shape = input.array.shape
    input, index, src = _with_axis(input), _with_axis(index), _with_axis(src)
    if reduce in ("sum", "mean"):
        base = input if include_self else xp.scatter(input, xp.zeros_like(src), index, axis=d)
        out = xp.scatter_add(base, src, index, axis=d)
        if reduce == "mean":
            ones = xp.ones_like(src)
            start = getattr(xp, "ones_like" if include_self else "zeros_like")(input)
            count = xp.scatter_add(start, ones, index, axis=d)
            count = f["where"](count == 0, 1, count)
            out = f["div"](out, count, rounding_mode=None if input.array.dtype.kind in "fcV" else "floor")
        return _of_shape(out, shape)
    return _of_shape(xp.scatter_extreme(input, src, index, axis=d, reduce=reduce, include_self=include_self), shape)


# ── whole slices by number ────────────────────────────────────────────────────────────────────────────────────────────


def _slices(input: Any, dim: int, index: Any, source: Any, name: str) -> tuple[Any, Any, Any]:
    kept = source is not None and isinstance(source, TensorBase)
    if index.array.ndim > 1:
        raise IndexError(f"{name.rstrip('_')}_(): Index is supposed to be a vector, but got dim: {index.array.ndim} "
                         f"with type: {_scalar(index)} and size: {list(index.array.shape)}")
    d = normalize_dim(dim, input.array.ndim)
    if (name == "index_copy_" and kept and source.array.ndim and input.array.ndim
            and source.array.ndim != input.array.ndim):
        raise IndexError("index_copy_(): When source and destination are not scalars, their dimensionality must match. "
                         f"Source dimensionality ({source.array.ndim}), destination dimensionality "
                         f"({input.array.ndim})")
    _check_index(index, name)
    index = xp.reshape(index, shape=(index.array.size,))
    if kept:
        _check_source(input, source, d, index.array.size, name)
    n = input.array.shape[d] if input.array.ndim else 1
    least = -n if name == "index_fill_" else 0
    if index.array.size and not (least <= int(index.array.min()) and int(index.array.max()) < n):
        if name == "index_reduce_":
            raise IndexError("index out of range in self")
        wrong = next(int(i) for i in index.array.ravel() if not least <= i < n)
        kind, start = {"index_add": (RuntimeError, ""), "index_copy_": (IndexError, "index_copy_(): ")}.get(name,
                                                                                                            (IndexError,
                                                                                                             ""))
        raise kind(f"{start}index {wrong} is out of bounds for dimension {d} with size {n}")
    return d, index, source


def _check_source(input: Any, source: Any, d: int, count: int, name: str) -> None:
    """Refuse a value for slices of a tensor unless it has the tensor's dtype and the shape of those slices."""
    if source.array.dtype != input.array.dtype:
        raise RuntimeError(f"index_add_(): self ({_scalar(input)}) and source ({_scalar(source)}) must have the same "
                           f"scalar type"
                           if name == "index_add" else f"{name}(): self ({_scalar(input)}) and source "
                           f"({_scalar(source)}) must have the same scalar type" if name == "index_reduce_"
                           else f"{name}(): self and source expected to have the same dtype, but got (self) "
                           f"{_scalar(input)} and (source) {_scalar(source)}")
    if name == "index_add" and input.array.ndim and not source.array.ndim and count != 1:
        raise IndexError(f"Dimension specified as {d} but tensor has no dimensions")
    if name != "index_copy_" and source.array.ndim and (input.array.ndim or source.array.ndim > 1):
        _check_slices(input, source, d)
    rows = source.array.shape[d] if source.array.ndim else 1
    if rows != count:
        if name != "index_copy_":
            raise RuntimeError(f"{name.rstrip('_')}_(): Number of indices ({count}) should be equal to "
                               f"source.size(dim): ({rows}), for dim: {d}")
        raise IndexError(f"{name}(): Number of indices ({count}) should be equal to source.size(dim) ({rows})")
    if name == "index_copy_" and source.array.ndim and input.array.ndim:
        _check_slices(input, source, d)


def _check_slices(input: Any, source: Any, d: int) -> None:
    a, b = input.array.shape, source.array.shape
    if len(a) != len(b) or any(k != d and n != m for k, (n, m) in enumerate(zip(a, b, strict=True))):
        raise RuntimeError("source tensor shape must match self tensor shape, excluding the specified dimension. Got "
                           f"self.shape = {list(a)} source.shape = {list(b)}")


@public(inplace=True, out="same")
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor:
    """x with slices added at numbers of an axis. https://pytorch.org/docs → torch.index_add

    Input: input (*, n, *); index (K), int64 or int32, from 0 to n − 1; source (*, K, *), of the input's dtype
    Errors: RuntimeError for an index out of range, or dtypes or shapes that do not fit; IndexError for an index of more
        dimensions, or a dim out of range
    """
    d, index, source = _slices(input, dim, index, source, "index_add")
    source = source if alpha == 1 else xp.multiply(source, alpha)
    out = xp.index_put(_with_axis(input), _with_axis(source), index, template=(FULL,) * d + (ARRAY,), accumulate=True)
    return _of_shape(out, input.array.shape)


@public(inplace=True, out="same")
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """x with slices written at numbers of an axis. https://pytorch.org/docs → torch.index_copy

    Input: as for `index_add`
    Errors: IndexError for an index out of range, of more dimensions, or of another number of elements than source has
        slices; RuntimeError for dtypes or shapes that do not fit
    """
    d, index, source = _slices(input, dim, index, source, "index_copy_")
    out = xp.index_put(_with_axis(input), _with_axis(source), index, template=(FULL,) * d + (ARRAY,))
    return _of_shape(out, input.array.shape)


@public(inplace=True)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Tensor | Number) -> Tensor:
    """x with a value written at numbers of an axis. https://pytorch.org/docs → torch.index_fill

    Input: input (*, n, *); index (K) or (), int64, from −n to n − 1; value (), or a number
    Errors: IndexError for an index out of range or of another dtype, or a dim out of range; RuntimeError for an index
        or value of more dimensions, or a complex value in a real tensor
    """
    if isinstance(value, TensorBase) and value.array.ndim:
        raise RuntimeError(f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                           f"{value.array.ndim} dimension(s).")
    _check_index(index, "index_fill_")
    if index.array.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    d, index, _ = _slices(input, dim, index, None, "index_fill_")
    if isinstance(value, TensorBase):
        if value.dtype.is_complex and not input.dtype.is_complex:
            raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
        value = cast(value, dtypes.FROM_NUMPY[input.array.dtype])
    elif isinstance(value, complex) and not input.dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    else:
        value = as_value(input, value)
    backend = type(level_of(index, input)._storage)
    chosen = backend.xp.zeros(input.array.shape[d] if input.array.ndim else 1, dtype=bool)
    chosen[index.array] = True
    chosen = chosen.reshape([-1 if k == d else 1 for k in range(input.array.ndim)])
    return xp.masked_fill(input, value, fresh(chosen, backend))


@public(inplace=True, out="same")
def index_reduce(input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *,
                 include_self: bool = True) -> Tensor:
    """x with slices reduced into it: prod, mean, amax or amin. https://pytorch.org/docs → torch.index_reduce

    Without `include_self` the input's own slices take no part where an index is.

    Input: as for `index_add`
    Errors: RuntimeError for another reduce, or dtypes or shapes that do not fit; IndexError for an index out of range
        or of more dimensions; UserWarning in every call
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    d, index, source = _slices(input, dim, index, source, "index_reduce_")
    warn("index_reduce() is in beta and the API may change at any time.")
    refuse(input, "c", {"amax": "maximum_cpu", "amin": "minimum_cpu"}.get(reduce, "index_func_"))
    if not include_self:
        refuse(input, "b", "index_reduce_func_exclude_input_init")
    source = _with_axis(source)
    wide = index.reshape([-1 if k == d else 1 for k in range(max(input.array.ndim, 1))]).expand(source.array.shape)
    return scatter_reduce(input, d, wide if input.array.ndim else index, source if input.array.ndim else source, reduce,
                          include_self=include_self)


# ── filling ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@public()
def fill_(input: Tensor, value: Tensor | Number) -> Tensor:
    """Set all elements to a value. https://pytorch.org/docs → torch.Tensor.fill_

    Input: (*); value (), or a number
    Errors: RuntimeError for a value with dimensions, or one that the dtype cannot hold
    """
    if isinstance(value, TensorBase):
        if value.array.ndim:
            raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.array.ndim} "
                               f"dimensions.")
        return input.copy_(value.expand(input.array.shape))  # type: ignore[attr-defined]
    if is_own(input):
        return class_hooks.written(input, fill, (value,), {})  # type: ignore[no-any-return]
    sparse = input._storage.dense is not None
    if sparse and input.layout is dtypes.sparse_coo:
        input._storage.hooks["refuse"]("fill_.Scalar", input)
    value = converted(value, input.dtype, single=input.array.size == 1)
    if sparse or mode.record and node_of(input) is not None:
        return _inplace.in_place(input, lambda x: xp.filled(x, value=value))
    _inplace.check_mode(input)
    _inplace.write(input, value, one_value=True)
    return input


@public(function=True, name="fill", method=False)
def fill(input: Tensor, value: Tensor | Number) -> Tensor:
    """A tensor like input, all of one value. https://pytorch.org/docs → torch.fill

    Input: as for `fill_`
    Output: the input's shape and dtype
    Errors: as for `fill_`
    """
    return fill_(xp.clone(input), value)


@public()
def zero_(input: Tensor) -> Tensor:
    """Set all elements to zero. https://pytorch.org/docs → torch.Tensor.zero_"""
    if input._storage.dense is not None:
        return _inplace.in_place(input, xp.filled, value=0)
    if is_own(input):
        return class_hooks.written(input, zero, (), {})  # type: ignore[no-any-return]
    return fill_(input, 0)


def zero(input: Any) -> Any:
    return fill(input, 0)


@public(function=False)
def fill_diagonal_(input: Tensor, fill_value: Number, wrap: bool = False) -> Tensor:
    """The main diagonal set to a value. https://pytorch.org/docs → torch.Tensor.fill_diagonal_

    `wrap` starts the diagonal again after each n + 1 rows of a tall matrix.

    Input: (m, n), or more dimensions of one size
    Errors: RuntimeError for less than 2 dimensions, or more of unlike sizes
    """
    shape = input.array.shape
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    step = sum(input.stride())
    count = min(shape)
    input.as_strided((count,), (step,)).fill_(fill_value)
    if wrap and len(shape) == 2 and shape[0] > shape[1] + 1:
        for top in range(shape[1] + 1, shape[0], shape[1] + 1):
            input[top:].fill_diagonal_(fill_value)  # type: ignore[attr-defined]
    return input


# ── slices put into copies ────────────────────────────────────────────────────────────────────────────────────────────


@public()
def select_scatter(input: Tensor, src: Tensor, dim: int, index: Index) -> Tensor:
    """Copy x, with src in place of one slice. https://pytorch.org/docs → torch.select_scatter

    Input: input (*, n, *); src (*), without the axis dim
    Errors: RuntimeError for a src of another shape; IndexError for a dim or index out of range
    """
    return _scattered(input, src, lambda x: x.select(dim, index))


@public(out="same")
def slice_scatter(input: Tensor, src: Tensor, dim: int = 0, start: Index | None = None, end: Index | None = None,
                  step: Index = 1) -> Tensor:
    """A copy of x with src in the place of a slice. https://pytorch.org/docs → torch.slice_scatter

    Input: input (*); src, in the shape of the slice
    Errors: as for `select_scatter`
    """
    d = normalize_dim(dim, input.array.ndim)
    return _scattered(input, src, lambda x: x[(FULL,) * d + (slice(start, end, step),)])


@public()
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of x with src on a diagonal. https://pytorch.org/docs → torch.diagonal_scatter

    Input: input (*); src, in the shape of the diagonal
    Errors: RuntimeError for a src of another shape; IndexError for dimensions out of range
    """
    return _scattered(input, src, lambda x: x.diagonal(offset, dim1, dim2))


@public(method=True)
def as_strided_scatter(input: Tensor, src: Tensor, size: Ints, stride: Ints,
                       storage_offset: Index | None = None) -> Tensor:
    """A copy of x with src in the place of a strided view. https://pytorch.org/docs → torch.as_strided_scatter

    Input: input (*); src (size)
    Errors: RuntimeError for a src of another shape
    """
    if not input.is_contiguous():           # the view refers to the input's whole storage
        whole = level_of(src, input).as_strided((input.untyped_storage().size() // input.element_size(),), (1,), 0)
        offset = input.storage_offset() if storage_offset is None else storage_offset
        return as_strided_scatter(whole, src, size, stride, offset).as_strided(input.shape, input.stride(),
                                                                               input.storage_offset())
    return _scattered(input, src, lambda x: x.as_strided(size, stride, storage_offset))


def _scattered(input: Any, src: Any, look: Any) -> Any:
    whole = level_of(src, input)
    out = _spaced_copy(whole) if _has_gaps(input) and not is_batched(whole) else xp.clone(whole)
    part = look(out)
    if part.array.shape != src.array.shape:
        raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = "
                           f"{list(src.array.shape)}, slice size = {list(part.array.shape)}")
    part.copy_(src)
    return out


def _has_gaps(input: Any) -> bool:
    """Return True if no elements overlap, but memory between them belongs to other elements."""
    if input.array.flags.c_contiguous or not input.array.size:
        return False
    reach = 1
    for step, n in sorted((s, n) for s, n in zip(input.stride(), input.array.shape, strict=True) if n > 1):
        if step < reach:
            return False
        reach += step * (n - 1)
    return reach > input.array.size


def _spaced_copy(input: Any) -> Any:
    """Copy with the original's strides and offset, including the elements before and between its own."""
    start, shape, strides = input.storage_offset(), input.shape, input.stride()
    size = start + 1 + sum(s * (n - 1) for n, s in zip(shape, strides, strict=True))
    return xp.clone(input.as_strided((size,), (1,), 0)).as_strided(shape, strides, start)


