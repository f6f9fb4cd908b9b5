"""Reductions of runs along an axis. https://pytorch.org/docs → torch.segment_reduce"""
from __future__ import annotations

from math import inf, prod
from typing import Any

from .._tensor import Tensor
from ..core.dispatch import SCALAR_TYPES, fresh, xp
from ._arguments import normalize_dim
from ._kinds import Number
from ._register import public

START = {"sum": 0.0, "mean": 0.0, "max": -inf, "min": inf, "prod": 1.0}


@public(method=False)
def segment_reduce(data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None,
                   offsets: Tensor | None = None, axis: int = 0, unsafe: bool = False,
                   initial: Number | None = None) -> Tensor:
    """The sum, mean, max, min or product of each run of neighbours along an axis.

    `initial` takes part in each run.

    Input: data (…, n, …), floating point; lengths (…, S), integers whose rows add up to n, or offsets (…, S + 1), where
        the runs begin and the last ends
    Output: (…, S, …)
    Errors: RuntimeError for another reduce, without lengths and offsets, for lengths that are negative or do not add up
        to n, or unless axis is their last; IndexError if axis is out of range; NotImplementedError for data of integers
    https://pytorch.org/docs → torch.segment_reduce

    >>> import tensorgrad as torch
    >>> torch.segment_reduce(torch.tensor([1., 2., 3.]), "sum", lengths=torch.tensor([2, 0, 1]))
    tensor([3., 0., 3.])
    """
    d = normalize_dim(axis, data.array.ndim)
    if reduce not in START:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    lengths, ends = _runs(data, lengths, indices, offsets, d, unsafe)
    if not data.is_floating_point():
        raise NotImplementedError(f"\"_segment_reduce_cpu\" not implemented for '{SCALAR_TYPES[data.dtype.name]}'")
    rows, runs, rest = prod(data.array.shape[:d]), lengths.shape[-1], data.array.shape[d + 1:]
    flat = data.reshape(-1, *rest)
    index = fresh(_numbers(type(data._storage).xp, lengths, ends, data.array.shape[d]), type(data._storage))
    if (chosen := index >= 0).all():
        values = flat
    else:
        values, index = flat[chosen], index[chosen]
    out = _reduced(values, index, rows * runs, reduce, initial)
    return out.reshape(*data.array.shape[:d], runs, *rest)


def _runs(data: Any, lengths: Any, indices: Any, offsets: Any, axis: int, unsafe: bool) -> tuple[Any, Any]:
    """The lengths and ends of the runs, as arrays, checked."""
    if offsets is None and lengths is None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet." if indices is not None else
                           "segment_reduce(): Either lengths or offsets must be defined.")
    name, given = ("offsets", offsets) if offsets is not None else ("lengths", lengths)
    if given.array.ndim != axis + 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}.")
    if given.array.dtype.kind not in "iu":
        raise NotImplementedError(f"\"_segment_reduce_{name}_cpu_kernel1\" not implemented for "
                                  f"'{SCALAR_TYPES[given.dtype.name]}'")
    array = given.array
    if name == "offsets":
        return array[..., 1:] - array[..., :-1], array[..., 1:]
    if not unsafe:
        if array.size and array.min() < 0:
            raise RuntimeError("lengths contains negative value!")
        if bool((array.sum(-1) != data.array.shape[axis]).any()):
            raise RuntimeError("segment_reduce(): Expected all rows of lengths along axis to sum to "
                               "data.size(lengths.dim()-1) when !unsafe.")
    return array, array.cumsum(-1)


def _numbers(xp: Any, lengths: Any, ends: Any, size: int) -> Any:
    """Return the number of the run of each place of the flattened axes, counted through all rows; −1 outside of
    runs.
    """
    runs = lengths.shape[-1]
    place = xp.arange(size).reshape(-1, 1)
    within = (place >= (ends - lengths)[..., None, :]) & (place < ends[..., None, :])
    number = xp.where(within.any(-1), within.argmax(-1), -1).reshape(lengths.size // max(runs, 1), size)
    first = xp.arange(len(number)).reshape(-1, 1) * runs
    return xp.where(number < 0, -1, number + first).reshape(-1)


def _reduced(values: Any, index: Any, count: int, reduce: str, initial: Any) -> Any:
    rest, start = values.shape[1:], START[reduce] if initial is None else initial
    if reduce in ("sum", "mean"):
        out = xp.embedding_add(values, index, rows=count)
        out = out + start if start else out
        if reduce == "sum":
            return out
        lengths = xp.embedding_add(values.new_ones(index.shape), index, rows=count).reshape(-1, *[1] * len(rest))
        return out / lengths if initial is None else out / lengths.clamp(min=1)
    wide = index.reshape(-1, *[1] * len(rest)).expand(values.shape)
    out = xp.scatter_extreme(values.new_full((count, *rest), START[reduce]), values, wide, axis=0,
                             reduce={"max": "amax", "min": "amin"}.get(reduce, "prod"), include_self=reduce == "prod",
                             equal_nan=True)
    if initial is None:
        return out
    if reduce == "prod":
        return out * initial
    return xp.where(out < initial if reduce == "max" else out > initial, values.new_tensor(initial), out)
