"""Functions of the standard whose arguments or results are not PyTorch's.

https://data-apis.org/array-api/2024.12/API_specification/
"""
from __future__ import annotations

from functools import wraps
from typing import Any, NamedTuple

from .. import api as tg

__all__ = ["all", "any", "arange", "argmax", "argmin", "argsort", "asarray", "astype", "broadcast_arrays", "clip",
           "concat", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "empty", "expand_dims", "eye",
           "flip", "from_dlpack", "full", "linspace", "max", "mean", "meshgrid", "min", "nonzero", "ones",
           "permute_dims", "prod", "repeat", "reshape", "roll", "searchsorted", "sort", "squeeze", "stack", "std",
           "sum", "take", "take_along_axis", "tile", "tril", "triu", "unique_all", "unique_counts", "unique_inverse",
           "unique_values", "unstack", "var", "zeros"]

_any, _all, _sum, _tuple, _int, _float, _bool = any, all, sum, tuple, int, float, bool


def _integral(function: Any) -> Any:
    """Wrap a rounding function to return integers unchanged."""
    @wraps(function)
    def rounded(x: Any, /) -> Any:
        return x if not (x.dtype.is_floating_point or x.dtype.is_complex) else function(x)
    return rounded


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    return _tuple(range(ndim)) if axis is None else axis if isinstance(axis, _tuple) else (axis,)


# ── creation ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Any:
    """Return a tensor of the values; `copy=False` requires sharing their memory (else ValueError)."""
    made = tg.asarray(obj, dtype=dtype, device=device, copy=copy)
    if (copy is False and not isinstance(obj, tg.Tensor) and not hasattr(obj, "__dlpack__")
            and not hasattr(obj, "__buffer__")):
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    return made


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Any:
    """Return a tensor that shares the memory of another library's array."""
    return tg.from_dlpack(x, device=device, copy=copy)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Any:
    """Return start, start + step, … before stop; empty if the step leads away from it."""
    start, stop = (0, start) if stop is None else (start, stop)
    if (step > 0) != (stop > start):
        return tg.empty(0, dtype=dtype or (tg.int64 if _all_ints(start, stop, step) else None), device=device)
    return tg.arange(start, stop, step, dtype=dtype, device=device)


def _all_ints(*numbers: Any) -> Any:
    return _all(isinstance(n, _int) for n in numbers)


def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: Any = True) -> Any:
    """Return num evenly spaced numbers from start to stop, which is included if `endpoint`."""
    if endpoint:
        return tg.linspace(start, stop, num, dtype=dtype, device=device)
    return tg.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Return zeros."""
    return tg.zeros(shape, dtype=dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Return ones."""
    return tg.ones(shape, dtype=dtype, device=device)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Return an uninitialized tensor."""
    return tg.empty(shape, dtype=dtype, device=device)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Return a tensor filled with a number."""
    return tg.full((shape,) if isinstance(shape, _int) else shape, fill_value, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: Any = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Any:
    """Return a matrix with ones on the k-th diagonal."""
    n_cols = n_rows if n_cols is None else n_cols
    rows, columns = tg.arange(n_rows, device=device), tg.arange(n_cols, device=device)
    return (columns[None, :] - rows[:, None] == k).to(dtype or tg.get_default_dtype())


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Any]:
    """Return the coordinates of a grid, a tensor for each axis."""
    return list(tg.meshgrid(*arrays, indexing=indexing))


def tril(x: Any, /, *, k: int = 0) -> Any:
    """The lower triangle, zeros above the k-th diagonal."""
    return tg.tril(x, k)


def triu(x: Any, /, *, k: int = 0) -> Any:
    """The upper triangle, zeros below the k-th diagonal."""
    return tg.triu(x, k)


def astype(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Any:
    """Cast the tensor to a dtype; always a copy unless `copy` is False."""
    return x.to(dtype=dtype, device=x.device if device is None else device, copy=copy)


# ── statistics ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _upcast(x: Any, dtype: Any) -> Any:
    """Cast to the dtype of a sum or product: int64 or uint64 for smaller integers."""
    if dtype is not None:
        return x.to(dtype)
    if x.dtype in (tg.uint8, tg.uint16, tg.uint32):
        return x.to(tg.uint64)
    return x.to(tg.int64) if x.dtype in (tg.int8, tg.int16, tg.int32, tg.bool) else x


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:  # noqa: A001
    """Σ x."""
    x = _upcast(x, dtype)
    return x.clone() if axis == () else tg.sum(x, _axes(axis, x.ndim) or None, keepdims)


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    """Π x."""
    x = _upcast(x, dtype)
    if axis == ():
        return x.clone()
    for a in sorted((a % x.ndim for a in _axes(axis, x.ndim)), reverse=True):
        x = tg.prod(x, a, keepdims)
    return x


def mean(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """Σ x / n."""
    return x.clone() if axis == () else tg.mean(x, _axes(axis, x.ndim) or None, keepdims)


def std(x: Any, /, *, axis: Any = None, correction: Any = 0.0, keepdims: Any = False) -> Any:
    """√var."""
    return tg.zeros_like(x) if axis == () else tg.std(x, _axes(axis, x.ndim), correction=correction, keepdim=keepdims)


def var(x: Any, /, *, axis: Any = None, correction: Any = 0.0, keepdims: Any = False) -> Any:
    """Σ (x − mean)² / (n − correction)."""
    return tg.zeros_like(x) if axis == () else tg.var(x, _axes(axis, x.ndim), correction=correction, keepdim=keepdims)


def max(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:  # noqa: A001
    """The greatest element."""
    return x.clone() if axis == () else tg.amax(x, _axes(axis, x.ndim), keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:  # noqa: A001
    """The least element."""
    return x.clone() if axis == () else tg.amin(x, _axes(axis, x.ndim), keepdims)


def any(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:  # noqa: A001
    """Return True where any element along the axes is nonzero."""
    x = x.to(tg.bool)
    return x if axis == () else tg.any(x, _axes(axis, x.ndim) or None, keepdims)


def all(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:  # noqa: A001
    """Return True where all elements along the axes are nonzero."""
    x = x.to(tg.bool)
    return x if axis == () else tg.all(x, _axes(axis, x.ndim) or None, keepdims)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """Count the nonzero elements."""
    return sum((x != 0).to(tg.int64), axis=axis, keepdims=keepdims)


def cumulative_sum(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: Any = False) -> Any:
    """Σ of the elements up to each one; with `include_initial`, a 0 before them."""
    return _cumulative(tg.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: Any = False) -> Any:
    """Π of the elements up to each one; with `include_initial`, a 1 before them."""
    return _cumulative(tg.cumprod, 1, x, axis, dtype, include_initial)


def _cumulative(function: Any, initial: int, x: Any, axis: Any, dtype: Any, include_initial: Any) -> Any:
    if axis is None:
        if x.ndim != 1:
            raise ValueError("axis must be specified for arrays that have not exactly one axis")
        axis = 0
    out = function(_upcast(x, dtype), axis)
    if not include_initial:
        return out
    shape = [1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)]
    return tg.cat([tg.full(shape, initial, dtype=out.dtype, device=out.device), out], axis)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """x[i + 1] − x[i], n times."""
    return tg.diff(x, n, axis, prepend, append)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:  # noqa: A002
    """x, kept within [min, max]."""
    low, high = (bound.to(x.dtype) if isinstance(bound, tg.Tensor) else bound for bound in (min, max))
    if low is None and high is None:
        return x.clone()
    mixed = isinstance(low, tg.Tensor) != isinstance(high, tg.Tensor)
    if mixed:
        low, high = (b if b is None or isinstance(b, tg.Tensor) else tg.full((), b, dtype=x.dtype, device=x.device)
                     for b in (low, high))
    return tg.clip(x, low, high).to(x.dtype)


# ── searching, sorting, sets ──────────────────────────────────────────────────────────────────────────────────────────


def argmax(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """Return the index of the greatest element."""
    return _whole(tg.argmax, x, axis, keepdims)


def argmin(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """Return the index of the least element."""
    return _whole(tg.argmin, x, axis, keepdims)


def _whole(function: Any, x: Any, axis: Any, keepdims: Any) -> Any:
    found = function(x, axis, keepdims) if axis is not None else function(x)
    return found.reshape((1,) * x.ndim) if axis is None and keepdims else found


def nonzero(x: Any, /) -> Any:
    """Return the indices of the nonzero elements, a tensor for each axis."""
    if not x.ndim:
        raise ValueError("zero-dimensional arrays are not supported by nonzero")
    return tg.nonzero(x, as_tuple=True)


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """Return the indices at which to insert the elements of x2 into the sorted x1."""
    return tg.searchsorted(x1, x2, right=side == "right", sorter=sorter)


def sort(x: Any, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Any:
    """Sort along an axis."""
    return tg.sort(x, dim=axis, descending=descending, stable=stable).values


def argsort(x: Any, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Any:
    """Return the indices that sort along an axis."""
    return tg.sort(x, dim=axis, descending=descending, stable=stable).indices


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Any
    inverse_indices: Any


def unique_all(x: Any, /) -> UniqueAll:
    """Return the distinct values, the first index of each, the index of each element's value, and the counts."""
    values, inverse, counts = tg.unique(x, return_inverse=True, return_counts=True)
    order = tg.argsort(inverse.reshape(-1), stable=True)
    return UniqueAll(values, order[tg.cumsum(counts, 0) - counts], inverse, counts)


def unique_counts(x: Any, /) -> UniqueCounts:
    """Return the distinct values and their counts."""
    return UniqueCounts(*tg.unique(x, return_counts=True))


def unique_inverse(x: Any, /) -> UniqueInverse:
    """Return the distinct values, and the index of each element's value among them."""
    return UniqueInverse(*tg.unique(x, return_inverse=True))


def unique_values(x: Any, /) -> Any:
    """Return the distinct values."""
    return tg.unique(x)


# ── shapes and indices ────────────────────────────────────────────────────────────────────────────────────────────────


def broadcast_arrays(*arrays: Any) -> list[Any]:
    """Broadcast the tensors to their common shape."""
    return list(tg.broadcast_tensors(*arrays))


def concat(arrays: Any, /, *, axis: Any = 0) -> Any:
    """Concatenate the tensors along an axis; None flattens them first."""
    return tg.cat([a.reshape(-1) for a in arrays] if axis is None else list(arrays), 0 if axis is None else axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Any:
    """Stack the tensors along a new axis."""
    return tg.stack(list(arrays), axis)


def unstack(x: Any, /, *, axis: int = 0) -> Any:
    """Split the tensor into its slices along an axis."""
    return tg.unbind(x, axis)


def expand_dims(x: Any, /, *, axis: int = 0) -> Any:
    """Insert an axis of length 1."""
    return tg.unsqueeze(x, axis)


def squeeze(x: Any, /, axis: Any) -> Any:
    """Remove the given axes of length 1; ValueError if an axis is longer."""
    axes = _axes(axis, x.ndim)
    if _any(x.shape[a] != 1 for a in axes):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return tg.squeeze(x, axes)


def permute_dims(x: Any, /, axes: Any) -> Any:
    """Permute the axes."""
    return tg.permute(x, axes)


def flip(x: Any, /, *, axis: Any = None) -> Any:
    """Reverse the order along axes."""
    return tg.flip(x, _axes(axis, x.ndim))


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Any:
    """Shift the elements along axes, circularly."""
    return tg.roll(x, shift, axis)


def reshape(x: Any, /, shape: Any, *, copy: Any = None) -> Any:
    """Reshape the tensor; ValueError if that needs a copy and `copy` is False."""
    out = x.reshape(shape)
    if copy is False and out.numel() and out.data_ptr() != x.data_ptr():
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return out.clone() if copy and out.data_ptr() == x.data_ptr() else out


def repeat(x: Any, repeats: Any, /, *, axis: Any = None) -> Any:
    """Repeat each element."""
    return tg.repeat_interleave(x, repeats, axis)


def tile(x: Any, repetitions: Any, /) -> Any:
    """Repeat the whole tensor along each axis."""
    return tg.tile(x, repetitions)


def take(x: Any, indices: Any, /, *, axis: Any = None) -> Any:
    """Return the elements at the indices along an axis."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError("axis must be specified when the array has not exactly one axis")
        axis = 0
    return x[(slice(None),) * (axis % x.ndim) + (indices,)]


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """Return the elements at the indices along an axis, with separate indices for each 1-d slice."""
    return tg.take_along_dim(x, indices.to(tg.int64), axis)
