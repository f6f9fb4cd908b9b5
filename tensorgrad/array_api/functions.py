"""Functions of the standard whose arguments or results are not PyTorch's. https://data-apis.org/array-api/2024.12/API_specification/"""
from __future__ import annotations

from functools import wraps
from typing import Any, NamedTuple

from .. import api as tg

__all__ = ["all", "any", "arange", "argmax", "argmin", "argsort", "asarray", "astype", "broadcast_arrays", "clip", "concat", "count_nonzero",
           "cumulative_prod", "cumulative_sum", "diff", "empty", "expand_dims", "eye", "flip", "from_dlpack", "full", "linspace", "max", "mean",
           "meshgrid", "min", "nonzero", "ones", "permute_dims", "prod", "repeat", "reshape", "roll", "searchsorted", "sort", "squeeze", "stack",
           "std", "sum", "take", "take_along_axis", "tile", "tril", "triu", "unique_all", "unique_counts", "unique_inverse", "unique_values",
           "unstack", "var", "zeros"]

_any, _all, _sum, _tuple, _int, _float, _bool = any, all, sum, tuple, int, float, bool


def _integral(function: Any) -> Any:
    """Rounding, which leaves integers as they are."""
    @wraps(function)
    def rounded(x: Any, /) -> Any:
        return x if not (x.dtype.is_floating_point or x.dtype.is_complex) else function(x)
    return rounded


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    return _tuple(range(ndim)) if axis is None else axis if isinstance(axis, _tuple) else (axis,)


# ── creation ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Any:
    """A tensor of the values; with `copy=False`, only in their memory (ValueError if that cannot be)."""
    made = tg.asarray(obj, dtype=dtype, device=device, copy=copy)
    if copy is False and not isinstance(obj, tg.Tensor) and not hasattr(obj, "__dlpack__") and not hasattr(obj, "__buffer__"):
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    return made


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Any:
    """A tensor in the memory of another library's array."""
    return tg.from_dlpack(x, device=device, copy=copy)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Any:
    """start, start + step, … before stop; none if the step leads away from it."""
    start, stop = (0, start) if stop is None else (start, stop)
    if (step > 0) != (stop > start):
        return tg.empty(0, dtype=dtype or (tg.int64 if _all_ints(start, stop, step) else None), device=device)
    return tg.arange(start, stop, step, dtype=dtype, device=device)


def _all_ints(*numbers: Any) -> Any:
    return _all(isinstance(n, _int) for n in numbers)


def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: Any = True) -> Any:
    """num numbers evenly spaced from start to stop, which is one of them or not."""
    if endpoint:
        return tg.linspace(start, stop, num, dtype=dtype, device=device)
    return tg.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Zeros."""
    return tg.zeros(shape, dtype=dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Ones."""
    return tg.ones(shape, dtype=dtype, device=device)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Memory that nobody filled."""
    return tg.empty(shape, dtype=dtype, device=device)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """One number everywhere."""
    return tg.full((shape,) if isinstance(shape, _int) else shape, fill_value, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: Any = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Any:
    """Ones on the k-th diagonal."""
    n_cols = n_rows if n_cols is None else n_cols
    rows, columns = tg.arange(n_rows, device=device), tg.arange(n_cols, device=device)
    return (columns[None, :] - rows[:, None] == k).to(dtype or tg.get_default_dtype())


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Any]:
    """The coordinates of a grid, one tensor an axis."""
    return list(tg.meshgrid(*arrays, indexing=indexing))


def tril(x: Any, /, *, k: int = 0) -> Any:
    """The lower triangle, zeros above the k-th diagonal."""
    return tg.tril(x, k)


def triu(x: Any, /, *, k: int = 0) -> Any:
    """The upper triangle, zeros below the k-th diagonal."""
    return tg.triu(x, k)


def astype(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Any:
    """The tensor in another dtype; a copy in any case unless `copy` is False."""
    return x.to(dtype=dtype, device=x.device if device is None else device, copy=copy)


# ── statistics ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _upcast(x: Any, dtype: Any) -> Any:
    """Sums and products of small integers are of int64, or uint64."""
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
    """Whether any element is not zero."""
    x = x.to(tg.bool)
    return x if axis == () else tg.any(x, _axes(axis, x.ndim) or None, keepdims)


def all(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:  # noqa: A001
    """Whether all elements are not zero."""
    x = x.to(tg.bool)
    return x if axis == () else tg.all(x, _axes(axis, x.ndim) or None, keepdims)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """How many elements are not zero."""
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
        low, high = (b if b is None or isinstance(b, tg.Tensor) else tg.full((), b, dtype=x.dtype, device=x.device) for b in (low, high))
    return tg.clip(x, low, high).to(x.dtype)


# ── searching, sorting, sets ──────────────────────────────────────────────────────────────────────────────────────────


def argmax(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """Where the greatest element is."""
    return _whole(tg.argmax, x, axis, keepdims)


def argmin(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """Where the least element is."""
    return _whole(tg.argmin, x, axis, keepdims)


def _whole(function: Any, x: Any, axis: Any, keepdims: Any) -> Any:
    found = function(x, axis, keepdims) if axis is not None else function(x)
    return found.reshape((1,) * x.ndim) if axis is None and keepdims else found


def nonzero(x: Any, /) -> Any:
    """The indices of the elements that are not zero, one tensor an axis."""
    if not x.ndim:
        raise ValueError("zero-dimensional arrays are not supported by nonzero")
    return tg.nonzero(x, as_tuple=True)


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """Where to put the elements of x2 into the sorted x1."""
    return tg.searchsorted(x1, x2, right=side == "right", sorter=sorter)


def sort(x: Any, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Any:
    """In order."""
    return tg.sort(x, dim=axis, descending=descending, stable=stable).values


def argsort(x: Any, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Any:
    """The indices that put the elements in order."""
    return tg.sort(x, dim=axis, descending=descending, stable=stable).indices


class UniqueAll(NamedTuple):
    """What `unique_all` finds."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """What `unique_counts` finds."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """What `unique_inverse` finds."""

    values: Any
    inverse_indices: Any


def unique_all(x: Any, /) -> UniqueAll:
    """The different elements, where each is first, which each element is, and how many there are."""
    values, inverse, counts = tg.unique(x, return_inverse=True, return_counts=True)
    order = tg.argsort(inverse.reshape(-1), stable=True)
    return UniqueAll(values, order[tg.cumsum(counts, 0) - counts], inverse, counts)


def unique_counts(x: Any, /) -> UniqueCounts:
    """The different elements, and how many there are of each."""
    return UniqueCounts(*tg.unique(x, return_counts=True))


def unique_inverse(x: Any, /) -> UniqueInverse:
    """The different elements, and which of them each element is."""
    return UniqueInverse(*tg.unique(x, return_inverse=True))


def unique_values(x: Any, /) -> Any:
    """The different elements."""
    return tg.unique(x)


# ── shapes and indices ────────────────────────────────────────────────────────────────────────────────────────────────


def broadcast_arrays(*arrays: Any) -> list[Any]:
    """The tensors in their common shape."""
    return list(tg.broadcast_tensors(*arrays))


def concat(arrays: Any, /, *, axis: Any = 0) -> Any:
    """One after the other along an axis; None: as lines."""
    return tg.cat([a.reshape(-1) for a in arrays] if axis is None else list(arrays), 0 if axis is None else axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Any:
    """One beside the other along a new axis."""
    return tg.stack(list(arrays), axis)


def unstack(x: Any, /, *, axis: int = 0) -> Any:
    """The slices along an axis."""
    return tg.unbind(x, axis)


def expand_dims(x: Any, /, *, axis: int = 0) -> Any:
    """A new axis of length 1."""
    return tg.unsqueeze(x, axis)


def squeeze(x: Any, /, axis: Any) -> Any:
    """Without the given axes of length 1; ValueError if one is longer."""
    axes = _axes(axis, x.ndim)
    if _any(x.shape[a] != 1 for a in axes):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return tg.squeeze(x, axes)


def permute_dims(x: Any, /, axes: Any) -> Any:
    """The axes in another order."""
    return tg.permute(x, axes)


def flip(x: Any, /, *, axis: Any = None) -> Any:
    """In reverse order along axes."""
    return tg.flip(x, _axes(axis, x.ndim))


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Any:
    """Moved on along axes; what falls off comes back at the other end."""
    return tg.roll(x, shift, axis)


def reshape(x: Any, /, shape: Any, *, copy: Any = None) -> Any:
    """Another shape; ValueError if that needs a copy that must not be made."""
    out = x.reshape(shape)
    if copy is False and out.numel() and out.data_ptr() != x.data_ptr():
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return out.clone() if copy and out.data_ptr() == x.data_ptr() else out


def repeat(x: Any, repeats: Any, /, *, axis: Any = None) -> Any:
    """Each element, several times."""
    return tg.repeat_interleave(x, repeats, axis)


def tile(x: Any, repetitions: Any, /) -> Any:
    """The whole, several times."""
    return tg.tile(x, repetitions)


def take(x: Any, indices: Any, /, *, axis: Any = None) -> Any:
    """The elements at the indices along an axis."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError("axis must be specified when the array has not exactly one axis")
        axis = 0
    return x[(slice(None),) * (axis % x.ndim) + (indices,)]


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """Elements by indices of their own for each line along an axis."""
    return tg.take_along_dim(x, indices.to(tg.int64), axis)
