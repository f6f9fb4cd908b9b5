"""Many elements become one. https://pytorch.org/docs/stable/torch.html#reduction-ops"""
from __future__ import annotations

import warnings
from typing import Any

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core.dispatch import SCALAR_TYPES, xp
from ..dtype import as_dtype
from ..ops.reduction import count_of
from . import return_types
from ._arguments import check_tensor, floating, in_dtype, normalize_dim, normalize_dims
from ._halves import once_rounded
from ._kinds import Dtype, Ints, Ints1, Number
from ._register import public

INF = float("inf")


def axes(dim: Any, ndim: int) -> tuple[int, ...] | None:
    """The axes to reduce: None for all, which no axis and an empty list of them mean too."""
    if dim is None:
        return None
    if type(dim) is int and -ndim <= dim < ndim:
        return (dim + ndim if dim < 0 else dim,)
    found = normalize_dims(dim, ndim)
    return found if found and ndim else None


def keeps_with_dim(function: Any) -> Any:
    """Mark a function that takes keepdim= only together with dim=."""
    function.keeps_with_dim = True
    return function


def cast(input: Any, dtype: Any) -> Any:
    """Cast the tensor to `dtype`, in which it is summed; None keeps its dtype."""
    return input if dtype is None else in_dtype(input, dtypes.as_dtype(dtype))


def _kind(input: Any) -> str:
    return SCALAR_TYPES[input.dtype.name]


# ── sums, means, products ─────────────────────────────────────────────────────────────────────────────────────────────


@public(out="given")
@keeps_with_dim
def sum(input: Tensor, dim: Ints1 | None = None, keepdim: bool = False, *, dtype: Dtype | None = None) -> Tensor:
    """Σ input, over all axes or some; integers and bools add up as int64.

    Input: (*), any dtype
    Output: (); with dim, the shape without those axes, or with 1 in their place if keepdim
    Errors: IndexError if dim is out of range; RuntimeError if it names an axis twice
    https://pytorch.org/docs → torch.sum

    >>> import tensorgrad as torch
    >>> x = torch.tensor([[1., 2.], [3., 4.]])
    >>> x.sum(), x.sum(dim=0), x.sum(dim=1, keepdim=True)
    (tensor(10.), tensor([4., 6.]), tensor([[3.],
            [7.]]))
    """
    if dtype is not None:
        input = cast(input, dtype)
        total = xp.sum(input, axis=axes(dim, input.array.ndim), keepdims=keepdim)
        return cast(total, dtype)
    check_tensor(input, "sum", "input", 1)
    return xp.sum(input, axis=axes(dim, input.array.ndim), keepdims=keepdim)


@public(out="given")
def nansum(input: Tensor, dim: Ints1 | None = None, keepdim: bool = False, *, dtype: Dtype | None = None) -> Tensor:
    """Σ input, where NaN counts as zero.

    Input: (*), any real dtype
    Output: (); with dim, the shape without those axes, or with 1 in their place if keepdim
    Errors: RuntimeError if the input is complex; IndexError if dim is out of range
    https://pytorch.org/docs → torch.nansum

    >>> import tensorgrad as torch
    >>> torch.nansum(torch.tensor([1., float('nan'), 2.]))
    tensor(3.)
    """
    if input.dtype.is_complex:
        raise RuntimeError("nansum on CPU does not support complex inputs")
    return sum(xp.where(xp.isnan(input), 0, input), dim, keepdim, dtype=dtype)


def _check_mean(input: Any, dtype: Any) -> None:
    if input.array.dtype.kind in "biu" and dtype is None:
        raise RuntimeError("mean(): could not infer output dtype. Input dtype must be either a floating point or "
                           f"complex dtype. Got: {_kind(input)}")
    if dtype is not None and dtypes.as_dtype(dtype).category < dtypes.FLOATING:
        raise RuntimeError("mean(): could not infer output dtype. Optional dtype must be either a floating point or "
                           f"complex dtype. Got: {SCALAR_TYPES[dtypes.as_dtype(dtype).name]}")


@public(out=True)
@keeps_with_dim
def mean(input: Tensor, dim: Ints1 | None = None, keepdim: bool = False, *, dtype: Dtype | None = None) -> Tensor:
    """Σ input / n, over all axes or some.

    Input: (*), floating or complex, or any dtype if dtype= is floating or complex
    Output: (); with dim, the shape without those axes, or with 1 in their place if keepdim; NaN for no elements
    Errors: RuntimeError if dtype= (the input's dtype without it) is of integers or bools, or dim names an axis twice;
        IndexError if dim is out of range
    https://pytorch.org/docs → torch.mean

    >>> import tensorgrad as torch
    >>> torch.tensor([[1., 2.], [3., 4.]]).mean(dim=0)
    tensor([2., 3.])
    """
    if dtype is not None or input.array.dtype.kind not in "fV":
        _check_mean(input, dtype)
        input = cast(input, dtype)
    return xp.mean(input, axis=axes(dim, input.array.ndim), keepdims=keepdim)


@public(out=True)
def nanmean(input: Tensor, dim: Ints1 | None = None, keepdim: bool = False, *, dtype: Dtype | None = None) -> Tensor:
    """The mean of the elements that are numbers.

    Σ x / n over the x that are not NaN.

    Input: (*), floating
    Output: (); with dim, the shape without those axes, or with 1 in their place if keepdim; NaN if no element is a
        number
    Errors: RuntimeError if the input is not floating, or dtype= is of integers or bools; IndexError if dim is out of
        range
    https://pytorch.org/docs → torch.nanmean

    >>> import tensorgrad as torch
    >>> torch.nanmean(torch.tensor([1., float('nan'), 2.]))
    tensor(1.5000)
    """
    if input.array.dtype.kind in "biu":
        raise RuntimeError(f"nanmean(): expected input to have floating point or complex dtype but got {_kind(input)}")
    if dtype is not None and as_dtype(dtype).numpy.kind in "biu":
        raise RuntimeError("nanmean(): could not infer output dtype. Optional dtype must be either a floating point or "
                           f"complex dtype. Got: {SCALAR_TYPES[as_dtype(dtype).name]}")
    numbers = xp.sum(xp.logical_not(xp.isnan(input)), axis=axes(dim, input.array.ndim), keepdims=keepdim)
    return xp.divide(nansum(input, dim, keepdim, dtype=dtype), numbers)


@public(out="given")
@keeps_with_dim
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Dtype | None = None) -> Tensor:
    """Π input, over all axes or one; integers and bools multiply as int64.

    Input: (*), any dtype
    Output: (); with dim, the shape without that axis, or with 1 in its place if keepdim
    Errors: IndexError if dim is out of range; TypeError if dim is a tuple
    https://pytorch.org/docs → torch.prod

    >>> import tensorgrad as torch
    >>> torch.tensor([[1, 2], [3, 4]]).prod(dim=1)
    tensor([ 2, 12])
    """
    axis = (None if dim is None or not input.array.ndim and normalize_dim(dim, 0) == 0
            else normalize_dim(dim, input.array.ndim))
    return cast(xp.prod(cast(input, dtype), axis=axis, keepdims=keepdim), dtype)


@public(out=True)
def logsumexp(input: Tensor, dim: Ints1, keepdim: bool = False) -> Tensor:
    """ln Σ e^input, without overflow.

    Input: (*), any dtype; integers and bools become the default dtype
    Output: the shape without the axes dim, or with 1 in their place if keepdim
    Errors: IndexError if dim is out of range
    https://pytorch.org/docs → torch.logsumexp

    >>> import tensorgrad as torch
    >>> torch.logsumexp(torch.tensor([100., 100.]), 0)
    tensor(100.6931)
    """
    return xp.logsumexp(floating(input), axis=axes(dim, input.array.ndim), keepdims=keepdim)


@public()
def count_nonzero(input: Tensor, dim: int | Ints | None = None) -> Tensor:
    """The number of nonzero elements.

    Input: (*), any dtype
    Output: (), int64; with dim, the shape without those axes
    Errors: IndexError if dim is out of range; RuntimeError if it names an axis twice
    https://pytorch.org/docs → torch.count_nonzero

    >>> import tensorgrad as torch
    >>> torch.count_nonzero(torch.tensor([[0, 1], [2, 3]]), dim=0)
    tensor([1, 2])
    """
    return xp.sum(xp.not_equal(input, 0), axis=axes(dim, input.array.ndim), keepdims=False)


# ── spread ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _spread_arguments(input: Any, dim: Any, flags: Any, correction: Any, keepdim: bool, unbiased: Any,
                      name: str) -> dict[str, Any]:
    """The parameters of var and std, which older programs call with (dim, unbiased, keepdim) or with (unbiased) by
    position.
    """
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if flags:
        if type(flags[0]) is not bool:
            raise TypeError(f"{name}() received an invalid combination of arguments")
        unbiased, keepdim = flags[0], flags[1] if len(flags) > 1 else keepdim
    if input.array.dtype.kind in "biu":
        raise RuntimeError(f"{name if '_' in name else 'std and var'} only support floating point and complex dtypes")
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    axis = axes(dim, input.array.ndim)
    if count_of(input.array.shape, axis) - correction <= 0:
        warnings.warn(f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction "
                      "factor (input numel divided by output numel).", UserWarning, stacklevel=4)
    return {"axis": axis, "correction": correction, "keepdims": keepdim}


@public(out=True)
def var(input: Tensor, dim: Ints1 | None = None, *flags: bool, correction: Number | None = None, keepdim: bool = False,
        unbiased: bool | None = None) -> Tensor:
    """Σ |x − x̄|² / (n − correction); correction is 1 by default.

    x̄ is the mean and n the number of elements along the axes. A UserWarning tells of n ≤ correction.

    Input: (*), floating or complex
    Output: (), real; with dim, the shape without those axes, or with 1 in their place if keepdim; NaN or ∞ if n ≤
        correction
    Errors: RuntimeError if the input is of integers or bools; IndexError if dim is out of range
    https://pytorch.org/docs → torch.var

    >>> import tensorgrad as torch
    >>> x = torch.tensor([1., 2., 3.])
    >>> x.var(), x.var(correction=0)
    (tensor(1.), tensor(0.6667))
    """
    how = _spread_arguments(input, dim, flags, correction, keepdim, unbiased, "var")
    return xp.variance(input, **how)


@public(out=True)
def std(input: Tensor, dim: Ints1 | None = None, *flags: bool, correction: Number | None = None, keepdim: bool = False,
        unbiased: bool | None = None) -> Tensor:
    """The root of the variance.

    √(Σ |x − x̄|² / (n − correction)); correction is 1 by default. A UserWarning tells of n ≤ correction.

    Input: (*), floating or complex
    Output: (), real; with dim, the shape without those axes, or with 1 in their place if keepdim; NaN or ∞ if n ≤
        correction
    Errors: RuntimeError if the input is of integers or bools; IndexError if dim is out of range
    https://pytorch.org/docs → torch.std

    >>> import tensorgrad as torch
    >>> torch.tensor([[1., 3.], [5., 5.]]).std(dim=1)
    tensor([1.4142, 0.0000])
    """
    how = _spread_arguments(input, dim, flags, correction, keepdim, unbiased, "std")
    return xp.deviation(input, **how)


@public(method=False)
def var_mean(input: Tensor, dim: Ints1 | None = None, *flags: bool, correction: Number | None = None,
             keepdim: bool = False, unbiased: bool | None = None) -> tuple[Tensor, Tensor]:
    """Variance and mean.

    Input: (*), floating or complex
    Output: two tensors, each as `var` and `mean` give
    Errors: RuntimeError if the input is of integers or bools; IndexError if dim is out of range
    https://pytorch.org/docs → torch.var_mean

    >>> import tensorgrad as torch
    >>> torch.var_mean(torch.tensor([1., 2., 3.]))
    (tensor(1.), tensor(2.))
    """
    how = _spread_arguments(input, dim, flags, correction, keepdim, unbiased, "var_mean")
    return _with_mean(input, xp.variance, how)


@once_rounded
def _with_mean(input: Any, spread: Any, how: dict[str, Any]) -> tuple[Any, Any]:
    """Return the spread, and the mean of var_mean, which is NaN if an element is infinite."""
    narrow = input.dtype is dtypes.complex32            # `mean` refuses it
    mean = xp.mean(cast(input, dtypes.complex64) if narrow else input, axis=how["axis"], keepdims=how["keepdims"])
    mean = xp.add(mean, xp.multiply(mean, 0.0))
    return spread(input, **how), cast(mean, dtypes.complex32) if narrow else mean


@public(method=False)
def std_mean(input: Tensor, dim: Ints1 | None = None, *flags: bool, correction: Number | None = None,
             keepdim: bool = False, unbiased: bool | None = None) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean.

    Input: (*), floating or complex
    Output: two tensors, each as `std` and `mean` give
    Errors: RuntimeError if the input is of integers or bools; IndexError if dim is out of range
    https://pytorch.org/docs → torch.std_mean

    >>> import tensorgrad as torch
    >>> torch.std_mean(torch.tensor([1., 2., 3.]))
    (tensor(1.), tensor(2.))
    """
    how = _spread_arguments(input, dim, flags, correction, keepdim, unbiased, "std_mean")
    return _with_mean(input, xp.deviation, how)


# ── the greatest and the least ────────────────────────────────────────────────────────────────────────────────────────


def _check_not_empty(input: Any, axis: Any, name: str, error: type[Exception] = RuntimeError) -> None:
    shape = input.array.shape
    if input.array.size:
        return
    if axis is None:
        raise error(f"{name}(): Expected reduction dim to be specified for input.numel() == 0." + (
            " Specify the reduction dim with the 'dim' argument." if error is RuntimeError else ""))
    for a in (axis if isinstance(axis, tuple) else (axis,)):
        if a < len(shape) and not shape[a]:
            raise IndexError(f"{name}(): Expected reduction dim {a} to have non-zero size.")


def along(op: str, input: Any, dim: Any, keepdim: bool, name: str, **params: Any) -> list[Any]:
    """Return the values and indices of an op that selects along one axis."""
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise TypeError(f"{name}(): argument 'dim' must be int, not {type(dim).__name__}")
    axis = normalize_dim(dim, input.array.ndim)
    _check_not_empty(input, axis, name)
    if not input.array.ndim:
        values, indices = getattr(xp, op)(xp.reshape(input, (1,)), axis=0, keepdims=True, **params)
        return [xp.reshape(values, ()), xp.reshape(indices, ())]
    return getattr(xp, op)(input, axis=axis, keepdims=keepdim, **params)


def _extreme(input: Any, dim: Any, keepdim: bool, name: str, of_all: str, along_dim: str) -> Any:
    if input.dtype.is_complex:
        _check_not_empty(input, None if dim is None else normalize_dim(dim, input.array.ndim), name)
        raise (NotImplementedError(f"\"{name}_all\" not implemented for '{_kind(input)}'") if dim is None else
               RuntimeError(f"{name}(): does not support complex input"))
    if dim is None:
        if keepdim:
            raise TypeError(f"{name}() received an invalid combination of arguments - got (keepdim=bool, ), but "
                            f"expected one of:")
        _check_not_empty(input, None, name)
        return getattr(xp, of_all)(input)
    return getattr(return_types, name)(*along(along_dim, input, dim, keepdim, name))


@public(out="parts")
@keeps_with_dim
def max(input: Tensor, dim: Tensor | int | None = None, keepdim: bool = False, *,
        other: Tensor | None = None) -> Tensor | return_types.max:
    """The greatest element; with `dim` the greatest along an axis, and where it is; with another tensor `maximum`.

    Input: (*), real
    Output: (); with dim, values and indices (int64) of the shape without that axis, or with 1 in its place if keepdim
    Errors: RuntimeError if there are no elements, or if the input is complex and dim is given; NotImplementedError if
        it is complex and dim is not; IndexError if dim is out of range or that axis is empty; TypeError if dim is a
        tuple
    https://pytorch.org/docs → torch.max

    >>> import tensorgrad as torch
    >>> torch.tensor([1., 3., 2.]).max()
    tensor(3.)
    >>> torch.tensor([[1., 5.], [7., 3.]]).max(dim=1).indices
    tensor([1, 0])
    """
    check_tensor(input, "max", "input", 1)
    if other is not None or isinstance(dim, Tensor) and not keepdim:
        from .math import maximum
        return maximum(input, dim if other is None else other)
    return _extreme(input, dim, keepdim, "max", "greatest_of_all", "max_dim")


@public(out="parts")
@keeps_with_dim
def min(input: Tensor, dim: Tensor | int | None = None, keepdim: bool = False, *,
        other: Tensor | None = None) -> Tensor | return_types.min:
    """The least element; with `dim` the least along an axis, and where it is; with another tensor `minimum`.

    Input: (*), real
    Output: (); with dim, values and indices (int64) of the shape without that axis, or with 1 in its place if keepdim
    Errors: RuntimeError if there are no elements, or if the input is complex and dim is given; NotImplementedError if
        it is complex and dim is not; IndexError if dim is out of range or that axis is empty; TypeError if dim is a
        tuple
    https://pytorch.org/docs → torch.min

    >>> import tensorgrad as torch
    >>> torch.tensor([2., 1., 3.]).min()
    tensor(1.)
    """
    check_tensor(input, "min", "input", 1)
    if other is not None or isinstance(dim, Tensor) and not keepdim:
        from .math import minimum
        return minimum(input, dim if other is None else other)
    return _extreme(input, dim, keepdim, "min", "least_of_all", "min_dim")


def _axes_with_order(input: Any, dim: Any, name: str) -> Any:
    """Return the axes to reduce. Raises PyTorch's errors for empty axes and complex numbers."""
    axis = axes(dim, input.array.ndim)
    _check_not_empty(input, axis, name)
    if input.dtype.is_complex:
        raise NotImplementedError(f"\"{name[1:]}_values_cpu\" not implemented for '{_kind(input)}'")
    return axis


@public(out="same")
def amax(input: Tensor, dim: Ints1 | None = (), keepdim: bool = False) -> Tensor:
    """The greatest elements along axes; equal ones share the gradient.

    Input: (*), real
    Output: (); with dim, the shape without those axes, or with 1 in their place if keepdim
    Errors: RuntimeError if there are no elements and no dim, or if dim names an axis twice; IndexError if dim is out of
        range or that axis is empty; NotImplementedError if the input is complex
    https://pytorch.org/docs → torch.amax

    >>> import tensorgrad as torch
    >>> torch.tensor([[1., 5.], [7., 3.]]).amax(dim=(0, 1))
    tensor(7.)
    """
    axis = _axes_with_order(input, dim, "amax")
    return xp.amax(input, axis=axis, keepdims=keepdim)


@public(out="same")
def amin(input: Tensor, dim: Ints1 | None = (), keepdim: bool = False) -> Tensor:
    """The least elements along axes; equal ones share the gradient.

    Input: (*), real
    Output: (); with dim, the shape without those axes, or with 1 in their place if keepdim
    Errors: RuntimeError if there are no elements and no dim, or if dim names an axis twice; IndexError if dim is out of
        range or that axis is empty; NotImplementedError if the input is complex
    https://pytorch.org/docs → torch.amin

    >>> import tensorgrad as torch
    >>> torch.tensor([[1., 5.], [7., 3.]]).amin(dim=0)
    tensor([1., 3.])
    """
    axis = _axes_with_order(input, dim, "amin")
    return xp.amin(input, axis=axis, keepdims=keepdim)


@public(out="same")
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> return_types.aminmax:
    """The least and the greatest element.

    Input: (*), real
    Output: min and max, each (); with dim, the shape without that axis, or with 1 in its place if keepdim
    Errors: RuntimeError if there are no elements and no dim; IndexError if dim is out of range or that axis is empty;
        NotImplementedError if the input is complex
    https://pytorch.org/docs → torch.aminmax

    >>> import tensorgrad as torch
    >>> torch.aminmax(torch.tensor([2., 1., 3.])).max
    tensor(3.)
    """
    if dim is None:
        if not input.array.size:
            raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
                               "identity.")
        axis = None
    else:
        axis = axes(normalize_dim(dim, input.array.ndim), input.array.ndim)
        for a in axis or ():
            if not input.array.shape[a]:
                raise IndexError(f"aminmax: Expected reduction dim {a} to have non-zero size.")
    return return_types.aminmax(xp.amin(input, axis=axis, keepdims=keepdim),
                                xp.amax(input, axis=axis, keepdims=keepdim))


def _arg_extreme(input: Any, dim: Any, keepdim: bool, name: str) -> Any:
    if dtypes.letter(input.array.dtype) in "bc":
        raise RuntimeError(f"{name}(): does not support {'bool' if input.array.dtype.kind == 'b' else 'complex'} input")
    axis = None if dim is None else normalize_dim(dim, input.array.ndim)
    _check_not_empty(input, axis, name, IndexError)
    return getattr(xp, name)(input, axis=axis if input.array.ndim else None, keepdims=keepdim)


@public(out="same")
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the greatest element, the first of equal ones: in the flattened tensor, or along an axis.

    Input: (*), real, not bool
    Output: (), int64; with dim, the shape without that axis, or with 1 in its place if keepdim
    Errors: IndexError if there are no elements, dim is out of range or that axis is empty; RuntimeError if the input is
        complex or bool
    https://pytorch.org/docs → torch.argmax

    >>> import tensorgrad as torch
    >>> torch.tensor([[1., 5.], [7., 3.]]).argmax(dim=1)
    tensor([1, 0])
    """
    return _arg_extreme(input, dim, keepdim, "argmax")


@public(out="same")
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the least element, the first of equal ones: in the flattened tensor, or along an axis.

    Input: (*), real, not bool
    Output: (), int64; with dim, the shape without that axis, or with 1 in its place if keepdim
    Errors: IndexError if there are no elements, dim is out of range or that axis is empty; RuntimeError if the input is
        complex or bool
    https://pytorch.org/docs → torch.argmin

    >>> import tensorgrad as torch
    >>> torch.tensor([[1., 5.], [7., 3.]]).argmin()
    tensor(0)
    """
    return _arg_extreme(input, dim, keepdim, "argmin")


# ── logic ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _quantified(input: Any, dim: Any, keepdim: bool, op: str) -> Any:
    check_tensor(input, op, "input", 1)
    if isinstance(dim, (tuple, list)) and not dim:
        found = xp.not_equal(input, 0)
    else:
        found = getattr(xp, op)(input, axis=axes(dim, input.array.ndim), keepdims=keepdim)
    return in_dtype(found, dtypes.uint8) if input.dtype is dtypes.uint8 else found


@public(out=True)
def all(input: Tensor, dim: Ints | int | None = None, keepdim: bool = False) -> Tensor:  # noqa: A001
    """True where all elements are nonzero: a bool, or uint8 for uint8.

    Input: (*), any dtype
    Output: (), True if there are no elements; with dim, the shape without those axes, or with 1 in their place if
        keepdim
    Errors: IndexError if dim is out of range; RuntimeError if it names an axis twice
    https://pytorch.org/docs → torch.all

    >>> import tensorgrad as torch
    >>> torch.tensor([[True, False], [True, True]]).all(dim=1)
    tensor([False,  True])
    """
    return _quantified(input, dim, keepdim, "all")


@public(out=True)
def any(input: Tensor, dim: Ints | int | None = None, keepdim: bool = False) -> Tensor:  # noqa: A001
    """True where any element is nonzero: a bool, or uint8 for uint8.

    Input: (*), any dtype
    Output: (), False if there are no elements; with dim, the shape without those axes, or with 1 in their place if
        keepdim
    Errors: IndexError if dim is out of range; RuntimeError if it names an axis twice
    https://pytorch.org/docs → torch.any

    >>> import tensorgrad as torch
    >>> torch.tensor([[False, False], [True, False]]).any(dim=1)
    tensor([False,  True])
    """
    return _quantified(input, dim, keepdim, "any")


# ── norms ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def vector_norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """(Σ |x|^ord)^(1/ord) over axes; the greatest |x| for ∞, the least for −∞, the number of nonzero x for 0.

    Input: (*), floating or complex
    Output: (), real; with dim, the shape without those axes, or with 1 in their place if keepdim
    Errors: RuntimeError if the input is of integers or bools, ord is complex, dtype= is of another kind than the input,
        or ord is negative or ∞ and there are no elements
    https://pytorch.org/docs → torch.linalg.vector_norm

    >>> import tensorgrad as torch
    >>> torch.linalg.vector_norm(torch.tensor([3., 4.]))
    tensor(5.)
    """
    if x.array.dtype.kind in "biu":
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {_kind(x)}")
    if isinstance(ord, complex):
        raise RuntimeError("linalg.vector_norm: Expected a non-complex scalar as the order of norm.")
    if dtype is not None:
        dtype = dtypes.as_dtype(dtype)
        if dtype.category < dtypes.FLOATING:
            raise RuntimeError(f"linalg.vector_norm: dtype should be floating point or complex, but got "
                               f"{SCALAR_TYPES[dtype.name]}")
        if dtype.is_complex != x.dtype.is_complex:
            wanted = "complex" if x.dtype.is_complex else "real"
            raise RuntimeError(f"linalg.vector_norm: dtype should be {wanted} for {wanted} inputs, but got "
                               f"{SCALAR_TYPES[dtype.name]}")
    ord, axis = float(ord), axes(dim, x.array.ndim)
    if (ord < 0 or ord == INF) and not x.array.size:
        if axis is None:
            raise RuntimeError(f"linalg.vector_norm cannot compute the {ord:g} norm on an empty tensor because the "
                               "operation does not have an identity")
        for a in axis:
            if not x.array.shape[a]:
                raise RuntimeError(f"linalg.vector_norm cannot compute the {ord:g} norm on the dimension {a}because "
                                   "this dimension is empty and the operation does not have an identity")
    if ord == 0:
        return xp.count_norm(cast(x, dtype), axis=axis, keepdims=keepdim)
    return xp.vector_norm(cast(x, dtype), ord=ord, axis=axis, keepdims=keepdim)
