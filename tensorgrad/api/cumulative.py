"""Running results along an axis, differences, and integrals from samples.

https://pytorch.org/docs/stable/torch.html#other-operations
"""
from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ..core.dispatch import SCALAR_TYPES, xp
from ..dtype import as_dtype
from ..dtype import bool as boolean
from . import return_types
from ._arguments import check_tensor, floating, in_dtype, normalize_dim, normalize_dims
from ._halves import once_rounded
from ._kinds import Dtype, Ints, Number, Numbers, Tensors
from ._register import public
from .reduction import cast


def along_axis(op: str, input: Any, dim: int) -> Any:
    """Run an op that goes along one axis; a 0-d tensor counts as a line of one element."""
    axis = normalize_dim(dim, input.array.ndim)
    if input.array.ndim:
        return getattr(xp, op)(input, axis=axis)
    found = getattr(xp, op)(xp.reshape(input, (1,)), axis=0)
    return [xp.reshape(part, ()) for part in found] if isinstance(found, list) else xp.reshape(found, ())


def _running(op: str, input: Any, dim: int, dtype: Any) -> Any:
    """Return running sums or products in a dtype."""
    if dtype is not None and as_dtype(dtype) is boolean:
        raise NotImplementedError(f"\"{op}_out_cpu\" not implemented for 'Bool'")
    return cast(along_axis(op, cast(input, dtype), dim), dtype)


# ── running results ───────────────────────────────────────────────────────────────────────────────────────────────────


@public(inplace=True, out="given")
def cumsum(input: Tensor, dim: int, *, dtype: Dtype | None = None) -> Tensor:
    """out[i] = Σ input[j] for j ≤ i along an axis.

    Input: (*), any dtype
    Output: (*); int64 for integers and bools, unless dtype= says otherwise
    Errors: IndexError if dim is out of range; NotImplementedError if dtype= is bool
    https://pytorch.org/docs → torch.cumsum

    >>> import tensorgrad as torch
    >>> torch.tensor([1, 2, 3]).cumsum(0)
    tensor([1, 3, 6])
    """
    return _running("cumsum", input, dim, dtype)


@public(inplace=True, out="given")
def cumprod(input: Tensor, dim: int, *, dtype: Dtype | None = None) -> Tensor:
    """out[i] = Π input[j] for j ≤ i along an axis.

    Input: (*), any dtype
    Output: (*); int64 for integers and bools, unless dtype= says otherwise
    Errors: IndexError if dim is out of range; NotImplementedError if dtype= is bool
    https://pytorch.org/docs → torch.cumprod

    >>> import tensorgrad as torch
    >>> torch.tensor([1, 2, 3]).cumprod(0)
    tensor([1, 2, 6])
    """
    return _running("cumprod", input, dim, dtype)


@public(out=True)
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """out[i] = ln Σ exp input[j] for j ≤ i along an axis.

    Input: (*), floating or complex
    Output: (*)
    Errors: NotImplementedError if the input is of integers or bools; IndexError if dim is out of range
    https://pytorch.org/docs → torch.logcumsumexp

    >>> import tensorgrad as torch
    >>> torch.logcumsumexp(torch.tensor([0., 0., 0.]), 0)
    tensor([0.0000, 0.6931, 1.0986])
    """
    normalize_dim(dim, input.array.ndim)
    if input.array.dtype.kind in "biu":
        raise NotImplementedError(f"\"logcumsumexp_out_cpu\" not implemented for '{SCALAR_TYPES[input.dtype.name]}'")
    return along_axis("logcumsumexp", input, dim)


@public(out="same")
def cummax(input: Tensor, dim: int) -> return_types.cummax:
    """The running maximum along an axis, and where it is, the last of equal ones.

    Input: (*), real
    Output: values and indices (int64), each (*)
    Errors: IndexError if dim is out of range; NotImplementedError if the input is complex
    https://pytorch.org/docs → torch.cummax

    >>> import tensorgrad as torch
    >>> torch.cummax(torch.tensor([1, 3, 2]), 0).values
    tensor([1, 3, 3])
    """
    return return_types.cummax(*along_axis("cummax", input, dim))


@public(out="same")
def cummin(input: Tensor, dim: int) -> return_types.cummin:
    """The running minimum along an axis, and where it is, the last of equal ones.

    Input: (*), real
    Output: values and indices (int64), each (*)
    Errors: IndexError if dim is out of range; NotImplementedError if the input is complex
    https://pytorch.org/docs → torch.cummin

    >>> import tensorgrad as torch
    >>> torch.cummin(torch.tensor([2, 3, 1]), 0).values
    tensor([2, 2, 1])
    """
    return return_types.cummin(*along_axis("cummin", input, dim))


# ── differences ───────────────────────────────────────────────────────────────────────────────────────────────────────


def stretch(x: Any, axis: int, start: int | None, stop: int | None) -> Any:
    """The part of a tensor from start to stop along an axis."""
    return xp.get_slice(x, index=(slice(None),) * axis + (slice(start, stop),))


def _difference(a: Any, b: Any) -> Any:
    return xp.not_equal(a, b) if a.array.dtype.kind == "b" else xp.subtract(a, b)


@public(out=True)
def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None,
         append: Tensor | None = None) -> Tensor:
    """input[i + 1] − input[i] along an axis, n times over.

    Bools give whether neighbours differ.

    Input: (*, m, *), m at dim; prepend and append of other lengths at dim alone
    Output: (*, m − n, *), m with what is prepended and appended; empty if n ≥ m
    Errors: RuntimeError if n is negative, prepend or append does not fit, or the input is 0-d; IndexError if dim is out
        of range
    https://pytorch.org/docs → torch.diff

    >>> import tensorgrad as torch
    >>> torch.diff(torch.tensor([1, 4, 9, 16])), torch.diff(torch.tensor([1, 4, 9, 16]), n=2)
    (tensor([3, 5, 7]), tensor([2, 2]))
    """
    ndim = input.array.ndim
    if not ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    axis = normalize_dim(dim, ndim)
    for more in (prepend, append):
        if more is not None:
            _check_extension(input, more, axis)
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n and (prepend is not None or append is not None):
        input = xp.concat([t for t in (prepend, input, append) if t is not None], axis=axis)
    for _ in range(min(n, input.array.shape[axis])):
        input = _difference(stretch(input, axis, 1, None), stretch(input, axis, None, -1))
    return input if n else xp.clone(input)


def _check_extension(input: Any, more: Any, axis: int) -> None:
    if more.array.ndim != input.array.ndim:
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    for i, (a, b) in enumerate(zip(input.array.shape, more.array.shape, strict=True)):
        if a != b and i != axis:
            raise RuntimeError("diff expects the shape of tensor to prepend or append to match that of input except "
                               f"along the differencing dimension; input.size({i}) = {a}, but got tensor.size({i}) = "
                               f"{b}")


@public(method=False)
def gradient(input: Tensor, *, spacing: Number | Numbers | Tensors | None = 1, dim: Ints | int | None = None,
             edge_order: int = 1) -> tuple[Tensor, ...]:
    """The derivative along each axis from samples: central differences inside, one-sided ones at the ends.

    Inside, at equal steps h: (f[i + 1] − f[i − 1]) / 2h. edge_order=2 takes a parabola at the ends.

    Input: (*); integers become the default dtype; spacing is a step, a step an axis, or a tensor of places an axis
    Output: a tuple of (*), one for each axis in dim
    Errors: RuntimeError if an axis is shorter than edge_order + 1, edge_order is neither 1 nor 2, spacing has not an
        entry for each axis, or dim names an axis twice; IndexError if dim is out of range
    https://pytorch.org/docs → torch.gradient

    >>> import tensorgrad as torch
    >>> torch.gradient(torch.tensor([1., 4., 9., 16.]))
    (tensor([3., 4., 6., 7.]),)
    """
    axes = normalize_dims(tuple(range(input.array.ndim)) if dim is None else dim, input.array.ndim)
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    spacing = 1 if spacing is None else spacing
    spacings = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(axes)
    if len(spacings) != len(axes):
        wanted = (f", or a list of length equal to 'self.dim() = {len(axes)}', since dim argument was not given, "
                  f"but got a list of length {len(spacings)}" if dim is None else
                  f" or it's spacing and dim arguments to have the same length, but got a spacing argument of length "
                  f"{len(spacings)} and a dim argument of length {len(axes)}.")
        raise RuntimeError(f"torch.gradient expected spacing to be unspecified, a scalar{wanted}")
    if any(input.array.shape[a] < edge_order + 1 for a in axes):
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    if input.array.dtype.kind == "b":
        raise RuntimeError("Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
                           "`logical_xor()` operator instead.")
    return _slopes(floating(input), axes, edge_order, *spacings)


@once_rounded
def _slopes(f: Any, axes: tuple[int, ...], edge_order: int, *spacings: Any) -> tuple[Any, ...]:
    return tuple(_slope(f, s, a, edge_order) for s, a in zip(spacings, axes, strict=True))


def _slope(f: Any, spacing: Any, axis: int, edge_order: int) -> Any:
    """Differentiate along one axis, from samples at equal steps or at given places."""
    n = f.array.shape[axis]

    def at(i: int) -> Any:
        return stretch(f, axis, i, i + 1 or None)

    before, here, after = stretch(f, axis, None, -2), stretch(f, axis, 1, -1), stretch(f, axis, 2, None)
    if isinstance(spacing, Tensor):
        steps = diff(in_dtype(spacing, f.dtype) if spacing.array.dtype.kind in "biu" else spacing)
        first, second = (xp.reshape(s, tuple(-1 if d == axis else 1 for d in range(f.array.ndim)))
                         for s in (stretch(steps, 0, None, -1), stretch(steps, 0, 1, None)))
        inside = ((after * first * first + here * (second * second - first * first) - before * second * second)
                  / (first * second * (first + second)))
        step = [steps[i] for i in (0, 1, -1, -2)] if n > 2 else [steps[0]] * 4
    else:
        inside, step = (after - before) / (2 * spacing), [spacing] * 4
    if edge_order == 1:
        return xp.concat([(at(1) - at(0)) / step[0], inside, (at(-1) - at(-2)) / step[2]], axis=axis)
    return xp.concat([_edge(at(0), at(1), at(2), step[0], step[1]), inside,
                      _edge(at(-1), at(-2), at(-3), -step[2], -step[3])], axis=axis)


def _edge(f0: Any, f1: Any, f2: Any, a: Any, b: Any) -> Any:
    """Return the derivative at the first of three samples, a and b apart: that of the parabola through them."""
    return -f0 * ((2 * a + b) / (a * (a + b))) + f1 * ((a + b) / (a * b)) - f2 * (a / (b * (a + b)))


# ── integrals ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _trapezoids(y: Any, x: Any, dx: Any, dim: int, name: str) -> tuple[Any, int, Any]:
    """Return the areas of the trapezoids, their axis, and a factor by which the caller must multiply them."""
    if x is not None and dx is not None:
        raise TypeError(f"{name}() received an invalid combination of arguments: give x or dx")
    if not y.array.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = normalize_dim(dim, y.array.ndim)
    if x is not None and not isinstance(x, Tensor):
        x, dx = None, x
    if name == "trapezoid" and not y.array.shape[axis]:
        return stretch(y, axis, 1, None), axis, 1       # for any x
    if y.array.dtype.kind == "b" or x is not None and x.array.dtype.kind == "b":
        raise RuntimeError(f"{name}: received a bool input for `{'y' if x is None else 'x` or `y'}`, but bool is not "
                           f"supported")
    heights = stretch(y, axis, 1, None) + stretch(y, axis, None, -1)
    if x is None:
        return heights, axis, (1 if dx is None else dx) / 2
    if x.array.ndim == 1:
        if x.array.shape[0] != y.array.shape[axis]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        x = xp.reshape(x, tuple(-1 if d == axis else 1 for d in range(y.array.ndim)))
    elif x.array.ndim < y.array.ndim:
        x = xp.reshape(x, (1,) * (y.array.ndim - x.array.ndim) + x.array.shape)
    return heights * (stretch(x, axis, 1, None) - stretch(x, axis, None, -1)), axis, 0.5


@public("trapz", method=False)
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number | None = None, dim: int = -1) -> Tensor:
    """∫ y dx by the trapezoidal rule, from samples at steps dx or at places x.

    Σ (y[i] + y[i + 1]) / 2 · (x[i + 1] − x[i]); the difference is dx, 1 by default, without x.

    Input: y (*, n, *), n at dim; x (n), or of a shape that broadcasts to y's
    Output: (*, *), in the unit of y times that of x
    Errors: RuntimeError if x has another length than y, or the shapes do not broadcast, or one is bool; TypeError if
        both x and dx are given; IndexError if dim is out of range or y is 0-d
    https://pytorch.org/docs → torch.trapezoid

    >>> import tensorgrad as torch
    >>> torch.trapezoid(torch.tensor([1., 5., 10.]))
    tensor(10.5000)
    """
    if x is not None:
        check_tensor(x, "trapezoid", "x", 2)
    areas, axis, width = _trapezoids(y, x, dx, dim, "trapezoid")
    total = xp.sum(areas, axis=(axis,), keepdims=False) * width
    # of no samples, zeros as they are
    return total if y.array.shape[axis + y.array.ndim - areas.array.ndim] else in_dtype(total, y.dtype)


@public(method=False)
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number | None = None, dim: int = -1) -> Tensor:
    """∫ y dx up to each sample but the first.

    out[k] = Σ (y[i] + y[i + 1]) / 2 · (x[i + 1] − x[i]) for i ≤ k; the difference is dx, 1 by default, without x.

    Input: y (*, n, *), n at dim; x (n), or of a shape that broadcasts to y's
    Output: (*, n − 1, *), in the unit of y times that of x
    Errors: RuntimeError if x has another length than y, or the shapes do not broadcast, or one is bool; TypeError if
        both x and dx are given; IndexError if dim is out of range or y is 0-d
    https://pytorch.org/docs → torch.cumulative_trapezoid

    >>> import tensorgrad as torch
    >>> torch.cumulative_trapezoid(torch.tensor([1., 5., 10.]))
    tensor([ 3.0000, 10.5000])
    """
    if x is not None:
        check_tensor(x, "cumulative_trapezoid", "x", 2)
    areas, axis, width = _trapezoids(y, x, dx, dim, "cumulative_trapezoid")
    return xp.cumsum(areas, axis=axis) * width


