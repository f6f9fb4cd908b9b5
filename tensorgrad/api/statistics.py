"""Quantiles, covariances, histograms. https://pytorch.org/docs/stable/torch.html#reduction-ops"""
from __future__ import annotations

from math import prod
from typing import Any

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core.dispatch import SCALAR_TYPES, xp
from ..core.undefined import undefined
from ..messages.warn_once import warn
from ..storage.out_of_memory import check_room
from . import return_types
from ._arguments import C_NAMES, anywhere, each_example, floating, in_batch, in_dtype, integer, normalize_dim
from ._halves import once_rounded
from ._kinds import Floats, Index, Ints, Number, Tensors
from ._register import public
from .sequences import linspace

_upto = range      # the name is an argument of histograms

# ── quantiles ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@public(out="same")
def quantile(input: Tensor, q: Tensor | float, dim: int | None = None, keepdim: bool = False, *,
             interpolation: str = "linear") -> Tensor:
    """The value below which a share q of the elements is; several q make a new first axis.

    interpolation: 'linear', 'lower', 'higher', 'midpoint' or 'nearest', for a rank between two elements. NaN if there
        is one.

    Input: (*), float32 or float64; q a number or (k), of that dtype, in [0, 1]
    Output: (), or (k); with dim, the shape without that axis, or with 1 in its place if keepdim, after the k; in the
        input's unit
    Errors: RuntimeError if the input is empty or of another dtype, q has more than one axis, another dtype or a value
        outside [0, 1], or interpolation is none of the five; IndexError if dim is out of range; TypeError if it is a
        tuple
    https://pytorch.org/docs → torch.quantile

    >>> import tensorgrad as torch
    >>> torch.quantile(torch.tensor([1., 2., 3., 4.]), torch.tensor([0., 0.5]))
    tensor([1.0000, 2.5000])
    """
    return _quantile(input, q, dim, keepdim, interpolation, "quantile()")


@public(out="same")
def nanquantile(input: Tensor, q: Tensor | float, dim: int | None = None, keepdim: bool = False, *,
                interpolation: str = "linear") -> Tensor:
    """The quantile of the elements that are numbers.

    Input: (*), float32 or float64; q a number or (k), of that dtype, in [0, 1]
    Output: (), or (k); with dim, the shape without that axis, or with 1 in its place if keepdim, after the k; in the
        input's unit
    Errors: RuntimeError if the input is empty or of another dtype, q has more than one axis, another dtype or a value
        outside [0, 1], or interpolation is none of linear, lower, higher, midpoint, nearest; IndexError if dim is out
        of range
    https://pytorch.org/docs → torch.nanquantile

    >>> import tensorgrad as torch
    >>> torch.nanquantile(torch.tensor([1., float('nan'), 3.]), 0.5)
    tensor(2.)
    """
    return _quantile(input, q, dim, keepdim, interpolation, "nanquantile()")


def _quantile(input: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str, name: str) -> Any:
    shares = (q if isinstance(q, Tensor) else input.new_tensor(q, dtype=input.dtype if input.dtype.is_floating_point
                                                               else None))
    _check_quantile(input, q, shares, interpolation)
    ndim = input.array.ndim
    axis = None if dim is None or not ndim else normalize_dim(dim, ndim)
    line = xp.reshape(input, (input.array.size,)) if axis is None else xp.swapaxes(input, axis, ndim - 1)
    last = line.array.ndim - 1
    found = _between(xp.sort_dim(line, axis=last)[0], xp.reshape(shares, (shares.array.size,)), interpolation,
                     name == "nanquantile()")
    if axis is not None:
        found = xp.reshape(found, (*found.array.shape[:-1], 1, found.array.shape[-1]))
        found = xp.swapaxes(found, axis, last)
    shape = (1,) * ndim if axis is None else found.array.shape[:-1]
    if not keepdim:
        shape = () if axis is None else shape[:axis] + shape[axis + 1:]
    if not shares.array.ndim:
        return xp.reshape(found, shape)
    return xp.reshape(xp.permute_dims(found, axes=(found.array.ndim - 1, *range(found.array.ndim - 1))),
                      (shares.array.size, *shape))


def _between(ordered: Any, shares: Any, interpolation: str, ignore_nan: bool) -> Any:
    """Interpolate sorted lines (the last axis) at fractions of their length, a line of results each."""
    last, n = ordered.array.ndim - 1, ordered.array.shape[-1]
    nans = xp.sum(xp.isnan(ordered), axis=(last,), keepdims=True)
    if ignore_nan:
        ranks = xp.multiply(shares, xp.maximum(xp.subtract(n - 1, nans), 0))
    else:
        ranks = xp.where(xp.greater(nans, 0), n - 1, xp.multiply(shares, n - 1))     # NaN is sorted last
    if interpolation in ("lower", "higher", "nearest"):
        ranks = {"lower": xp.floor, "higher": xp.ceil, "nearest": xp.round}[interpolation](ranks)
        return xp.take_along_axis(ordered, in_dtype(ranks, dtypes.int64), axis=last)
    low = xp.floor(ranks)
    weight = xp.subtract(ranks, low) if interpolation == "linear" else 0.5
    below, above = (xp.take_along_axis(ordered, in_dtype(r, dtypes.int64), axis=last) for r in (low, xp.ceil(ranks)))
    return xp.lerp(below, above, weight)


def _check_quantile(input: Any, q: Any, shares: Any, interpolation: str) -> None:
    if not input.array.size:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if shares.array.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if input.dtype not in (dtypes.float32, dtypes.float64):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if shares.array.dtype != input.array.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError("quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but "
                           f"got {interpolation}")
    if isinstance(q, Tensor):
        if shares.array.size and not (float(shares.array.min()) >= 0 and float(shares.array.max()) <= 1):
            raise RuntimeError("quantile() q values must be in the range [0, 1]")
    elif not 0 <= q <= 1:
        raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")


# ── covariances ───────────────────────────────────────────────────────────────────────────────────────────────────────


@public()
def cov(input: Tensor, *, correction: int = 1, fweights: Tensor | None = None,
        aweights: Tensor | None = None) -> Tensor:
    """The covariances of variables (rows) from observations (columns), which may be weighted.

    C = Σ (x − x̄)(x − x̄)ᴴ / (n − correction), a sum over the n observations. fweights say how often each was made,
    aweights how much each matters. A UserWarning tells of n ≤ correction.

    Input: (variables, n), or (n) for one variable; weights (n): fweights integer, aweights floating
    Output: (variables, variables), or () for one; in the product of their units
    Errors: RuntimeError if there are more than two axes, the input is bool, or weights are of another shape, of another
        kind or negative
    https://pytorch.org/docs → torch.cov

    >>> import tensorgrad as torch
    >>> torch.cov(torch.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    correction = integer(correction, "correction")
    if input.array.ndim > 2:
        raise RuntimeError(f"cov(): expected input to have two or fewer dimensions but got an input with "
                           f"{input.array.ndim} dimensions")
    if input.array.dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = floating(input) if input.array.ndim == 2 else xp.reshape(floating(input), (1, input.array.size))
    count = x.array.shape[1]
    weight = _weights(fweights, aweights, count)
    if weight is None:
        total, freedom = count, count - correction
        away = xp.subtract(x, xp.mean(x, axis=(1,), keepdims=True))
    else:
        total = weight.sum()
        freedom = (total - correction if aweights is None else total - correction * (weight * aweights).sum() / total
                   if correction else total)
        away = xp.subtract(x, xp.divide(xp.sum(x * weight, axis=(1,), keepdims=True), total))
    if anywhere(freedom <= 0) if isinstance(freedom, Tensor) else freedom <= 0:
        warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of "
             "observations.",
             again=True)
        freedom = 0
    weighted = away if weight is None else away * weight
    found = xp.divide(xp.matmul(away, xp.t(xp.conj(weighted) if away.dtype.is_complex else weighted)), freedom)
    return xp.reshape(found, ()) if found.array.size == 1 else found


def _weights(fweights: Any, aweights: Any, count: int) -> Any:
    """The product of how often each observation counts and how much it matters."""
    for name, w, kinds, what in (("fweights", fweights, "iu", "integral"),
                                 ("aweights", aweights, "fV", "floating point")):
        if w is None:
            continue
        if w.array.ndim > 1:
            raise RuntimeError(f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
                               f"{w.array.ndim} dimensions")
        if w.array.dtype.kind not in kinds:
            raise RuntimeError(f"cov(): expected {name} to have {what} dtype but got {name} with "
                               f"{SCALAR_TYPES[w.dtype.name]} dtype")
        if w.array.size != count:
            raise RuntimeError(f"cov(): expected {name} to have the same numel as there are observations in the input "
                               f"but got {w.array.size} != {count}")
        if count and float(w.min()) < 0:
            raise RuntimeError(f"cov(): {name} cannot be negative")
    return aweights if fweights is None else fweights if aweights is None else fweights * aweights


@public()
def corrcoef(input: Tensor) -> Tensor:
    """Pearson's correlations of variables (rows), from observations (columns).

    C[i, j] / √(C[i, i] C[j, j]), of the covariances C; a number from -1 to 1 without unit, NaN of a variable that is
    constant.

    Input: (variables, n), or (n) for one variable
    Output: (variables, variables), or () for one
    Errors: RuntimeError if there are more than two axes, or the input is bool
    https://pytorch.org/docs → torch.corrcoef

    >>> import tensorgrad as torch
    >>> torch.corrcoef(torch.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input.array.ndim > 2:
        raise RuntimeError(f"corrcoef(): expected input to have two or fewer dimensions but got an input with "
                           f"{input.array.ndim} dimensions")
    return _correlations(input)


@once_rounded
def _correlations(input: Any) -> Any:
    c = cov(input)
    if not c.array.ndim:
        return c / c
    spread = xp.diagonal(c)
    spread = xp.sqrt(xp.real(spread) if spread.dtype.is_complex else spread)
    c = c / xp.expand_dims(spread, 1) / spread
    if c.dtype.is_complex:
        return xp.make_complex(xp.clamp(xp.real(c), -1, 1), xp.clamp(xp.imag(c), -1, 1))
    return xp.clamp(c, -1, 1)


# ── histograms ────────────────────────────────────────────────────────────────────────────────────────────────────────


@public()
def bincount(input: Tensor, weights: Tensor | None = None, minlength: Index = 0) -> Tensor:
    """The number of times that each of 0, 1, … occurs, or the sum of its weights.

    Input: (n), integers from 0; weights (n)
    Output: (the greatest + 1), at least (minlength): int64, or with weights float64 (float32 of float32)
    Errors: NotImplementedError if the input is of no integer dtype; RuntimeError if it is not 1-d or an element is
        negative, weights have another shape, or minlength is negative
    https://pytorch.org/docs → torch.bincount

    >>> import tensorgrad as torch
    >>> torch.bincount(torch.tensor([1, 3, 1]))
    tensor([0, 2, 0, 1])
    """
    if input.array.dtype.kind not in "iu":
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{SCALAR_TYPES[input.dtype.name]}'")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if input.array.shape == (0,):
        weights = None
    if input.array.ndim != 1 or input.array.size and int(input.array.min()) < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if input.array.size:
        check_room((int(input.array.max()) + 1,), 8, "bincount")
    if weights is None:
        return xp.bincount(input, None, minlength=minlength)
    if weights.array.shape != input.array.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    dtype = dtypes.float32 if weights.dtype is dtypes.float32 else dtypes.float64
    counted = xp.bincount(input, in_dtype(weights, dtypes.float64), minlength=minlength)
    return undefined("bincount", in_dtype(counted, dtype), weights)


def _range(x: Any, limits: Any, margin: float, name: str) -> tuple[float, float]:
    """Return the range of the bins: the elements' range if none is given."""
    low, high = limits or (0, 0)
    if low == high and x.array.size:
        low, high = x.min().item(), x.max().item()
        if low == high:
            low, high = low - margin, high + margin
    elif low == high:
        low, high = 0, 1
    if not (abs(low) < float("inf") and abs(high) < float("inf")):
        raise RuntimeError(f"{name}: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(f"{name}: max must be larger than min")
    return low, high


@public(out="same")
def histc(input: Tensor, bins: int = 100, min: Number = 0, max: Number = 0) -> Tensor:  # noqa: A002
    """The number of elements in each of equal bins from min to max (the elements' range if both are equal).

    A bin holds its lower edge, the last its upper edge, too; elements outside are not counted.

    Input: (*), floating
    Output: (bins), of the input's dtype
    Errors: RuntimeError if bins is not positive, min > max, or the range is not finite; NotImplementedError if the
        input is not floating
    https://pytorch.org/docs → torch.histc

    >>> import tensorgrad as torch
    >>> torch.histc(torch.tensor([1., 2., 1.]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if dtypes.letter(input.array.dtype) not in "fV":
        if min > max:
            raise RuntimeError("torch.histc: max must be larger than min")
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{SCALAR_TYPES[input.dtype.name]}'")
    if in_batch(input) and min == max:
        return each_example(histc, input, bins, min, max)
    low, high = _range(input, (min, max), 1, "torch.histc")
    return in_dtype(xp.histc(input, bins=bins, low=low, high=high), input.dtype)


@public(out="same")
def histogram(input: Tensor, bins: Tensor | int = 100, *, range: Floats | None = None, weight: Tensor | None = None,
              density: bool = False) -> return_types.histogram:
    """The number of elements in each bin, or the sum of their weights; and the edges of the bins.

    A bin holds its lower edge, the last its upper edge, too. With density the integral over the bins is 1.

    Input: (*), floating; weight (*); bins a number, or the edges (k + 1), of the input's dtype
    Output: hist (k) and bin_edges (k + 1)
    Errors: RuntimeError if bins is not positive, edges are not 1-d or of another dtype, range is not two finite numbers
        in order, or weight has another shape; NotImplementedError if the input is not floating
    https://pytorch.org/docs → torch.histogram

    >>> import tensorgrad as torch
    >>> torch.histogram(torch.tensor([1., 2., 1.]), bins=3, range=(0., 3.)).hist
    tensor([0., 2., 1.])
    """
    if in_batch(input, bins, weight):
        return each_example(histogram, input, bins, range=range, weight=weight, density=density)
    if isinstance(bins, bool):
        raise TypeError("histogram(): argument 'bins' must be int, not bool")
    if isinstance(bins, int) and bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    points = xp.reshape(input, (input.array.size, 1))
    if weight is not None:
        if weight.array.shape != input.array.shape:
            raise RuntimeError("torch.histogramdd: if weight tensor is provided it should have the same shape as the "
                               f"input tensor excluding its innermost dimension, but got input with shape "
                               f"{list(points.array.shape)} and weight with shape {list(weight.array.shape)}")
        weight = xp.reshape(weight, (weight.array.size,))
    found, edges = histogramdd(points, [bins], range=range, weight=weight, density=density)
    return return_types.histogram(undefined("histogram", found, input, weight), edges[0])


@public(method=False)
def histogramdd(input: Tensor, bins: int | Ints | Tensors, *, range: Floats | None = None, weight: Tensor | None = None,
                density: bool = False) -> return_types.histogramdd:
    """A histogram of points, whose coordinates are the last axis: bins are given for each.

    Input: (*, d), d coordinates a point, floating; weight (*); bins a number, d numbers, or d tensors of edges
    Output: hist (k_1, …, k_d) and bin_edges, a tuple of d tensors (k_i + 1)
    Errors: RuntimeError if the input is 0-d or 1-d, bins are not d or not positive, edges are not 1-d or of another
        dtype, range is not 2d finite numbers in order, or weight has another shape; NotImplementedError if the input is
        not floating
    https://pytorch.org/docs → torch.histogramdd

    >>> import tensorgrad as torch
    >>> torch.histogramdd(torch.tensor([[0., 1.], [1., 0.], [2., 2.]]), bins=[2, 2]).hist
    tensor([[0., 1.],
            [1., 1.]])
    """
    for d, b in enumerate((bins,) if isinstance(bins, int) else bins):
        if isinstance(b, Tensor) and b.array.ndim != 1:
            raise RuntimeError("torch.histogramdd: bins tensor should have one dimension, but got "
                               f"{b.array.ndim} dimensions in the bins tensor for dimension {d}")
        if isinstance(b, Tensor) and b.array.dtype != input.array.dtype:
            raise RuntimeError("torch.histogramdd: input tensor and bins tensors should have the same dtype, but got "
                               f"input with dtype {C_NAMES[input.dtype.name]} and bins for dimension {d} with dtype "
                               f"{C_NAMES[b.dtype.name]}")
    if input.array.ndim < 2:
        raise RuntimeError(f"torch.histogramdd: input tensor should have at least 2 dimensions, but got "
                           f"{input.array.ndim}")
    count = input.array.shape[-1]
    bins = [bins] * count if isinstance(bins, int) else list(bins)
    if len(bins) != count:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    if range is not None and len(range) != 2 * count:
        raise RuntimeError(f"torch.histogramdd: for a {count}-dimensional histogram range should have {2 * count} "
                           f"elements, but got {len(range)}")
    if input.dtype not in (dtypes.float32, dtypes.float64):
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{SCALAR_TYPES[input.dtype.name]}'")
    points = xp.reshape(input, (prod(input.array.shape[:-1]), count))
    if weight is not None and weight.array.shape != input.array.shape[:-1]:
        raise RuntimeError("torch.histogramdd: if weight tensor is provided it should have the same shape as the input "
                           f"tensor excluding its innermost dimension, but got input with shape "
                           f"{list(input.array.shape)} and weight with shape {list(weight.array.shape)}")
    columns = [xp.get_item(points, index=(slice(None), d)) for d in _upto(count)]
    edges = [_edges(b, x, None if range is None else tuple(range)[2 * d:2 * d + 2], d)
             for d, (b, x) in enumerate(zip(bins, columns, strict=True))]
    shape = tuple(e.array.size - 1 for e in edges)
    place, inside = 0, True
    for x, e, n in zip(columns, edges, shape, strict=True):
        at = xp.minimum(xp.search_sorted(e, x, right=True) - 1, n - 1)       # the last bin is closed
        within = xp.logical_and(xp.greater_equal(x, e[0]), xp.less_equal(x, e[-1]))
        place, inside = place * n + at, xp.logical_and(inside, within)
    amount = (xp.ones_like(columns[0], dtype=dtypes.float64) if weight is None
              else in_dtype(xp.reshape(weight, inside.array.shape), dtypes.float64))
    total = prod(shape)
    found = xp.bincount(xp.where(inside, place, total), amount, minlength=total + 1)
    found = xp.reshape(xp.get_slice(found, index=(slice(0, total),)), shape)
    if density:
        found = found / found.sum()
        for d, e in enumerate(edges):
            found = found / xp.reshape(in_dtype(e.diff(), dtypes.float64),
                                       tuple(-1 if i == d else 1 for i in _upto(count)))
    return return_types.histogramdd(in_dtype(found, input.dtype), tuple(edges))


def _edges(bins: Any, x: Any, limits: Any, dim: int) -> Any:
    """The edges of the bins: given, or of so many equal ones."""
    if isinstance(bins, Tensor):
        return bins
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension {dim}")
    low, high = _range(x, limits, 0.5, "torch.histogramdd")
    return linspace(low, high, bins + 1, dtype=x.dtype, device=x.device)
