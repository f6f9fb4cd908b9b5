"""Reductions: many elements become one. `axis` is one axis, a tuple of them, or None for all."""
from __future__ import annotations

from math import prod

from numpy import dtype as of

from .base import AlongAxis
from .shape import Placing


def axes_of(ndim, axis):
    """The axes that are reduced, counted from the front."""
    if axis is None:
        return tuple(range(ndim))
    return tuple(a % ndim for a in axis) if isinstance(axis, tuple) else (axis % ndim,) if ndim else ()


def kept(shape, axis):
    """Return a shape with the reduced axes kept, of length 1."""
    axes = axes_of(len(shape), axis)
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def count_of(shape, axis):
    """Return how many elements are reduced to one."""
    return prod(shape[a] for a in axes_of(len(shape), axis))


def restored(xp, y, shape, axis, keepdims):
    """A result, or its gradient, with the reduced axes of the input's `shape` back at length 1."""
    return y if keepdims or axis is None else xp.reshape(y, kept(shape, axis))


def remaining(shape, axis, keepdims):
    """The shape that a reduction leaves."""
    axes = axes_of(len(shape), axis)
    return tuple(1 if i in axes else n for i, n in enumerate(shape) if keepdims or i not in axes)


def same(dtype):
    return dtype


def counted(dtype):
    """The dtype of sums: integers and bools add up in int64."""
    return of("int64") if dtype.kind in "biu" else dtype


def inexact(dtype):
    """The dtype of means."""
    return of("float64") if dtype.kind in "biu" else dtype


def real_of(dtype):
    """The dtype of sizes: complex numbers have real ones."""
    return of(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else inexact(dtype)


class Reduction(AlongAxis):
    """Ops that make one element of many: of those along `axis`, one or a tuple, or of all.

    `result` says of which dtype.
    """

    __slots__ = ()
    result = staticmethod(same)

    @classmethod
    def infer(cls, x, *, axis=None, keepdims=False, **params):
        return remaining(x.shape, axis, keepdims), cls.result(x.dtype)


# ── sums and products ─────────────────────────────────────────────────────────────────────────────────────────────────


def wider(xp, x):
    """Half precision in float32."""
    return xp.cast(x, dtype="float32") if x.dtype.itemsize == 2 else x


def rounded(xp, y, x):
    """A result of `wider` numbers in their own dtype again."""
    return xp.cast(y, dtype=x.dtype) if x.dtype.itemsize == 2 and x.dtype.kind == "f" else y


def widened(xp, x):
    """Floating point numbers in float64: squares of narrower ones may be out of their range."""
    return xp.cast(x, dtype="float64") if x.dtype.kind == "f" and x.dtype.itemsize < 8 else x


def narrowed(xp, y, x):
    """A result of widened numbers in their own dtype again."""
    return xp.cast(y, dtype=x.dtype) if x.dtype.kind == "f" and x.dtype.itemsize < 8 else y


def with_axis(self):
    """The overload that takes an axis."""
    return int(self.params.get("axis") is not None)


class Sum(Reduction):
    """Σ x"""

    kernel_name = "sum_cpu"
    row_major = True
    overload = with_axis
    linear = ("x",)
    notation = "Σ"
    former = "SUM_REDUCE"
    result = staticmethod(counted)

    def forward(xp, x, *, axis=None, keepdims=False):
        return xp.sum(x, axis=axis, keepdims=keepdims)

    def grad_x(xp, g, x_shape, axis=None, keepdims=False):
        return xp.broadcast_to(restored(xp, g, x_shape, axis, keepdims), x_shape)


class Mean(Reduction):
    """Σ x / n"""

    kernel_name = "sum_cpu"
    row_major = True
    kinds = "fc"
    overload = with_axis
    linear = ("x",)
    former = "MEAN_REDUCE"
    result = staticmethod(inexact)

    def forward(xp, x, *, axis=None, keepdims=False):
        return rounded(xp, xp.sum(wider(xp, x), axis=axis, keepdims=keepdims) / count_of(x.shape, axis), x)

    def grad_x(xp, g, x_shape, axis=None, keepdims=False):
        share = restored(xp, g, x_shape, axis, keepdims) / max(count_of(x_shape, axis), 1)
        return xp.broadcast_to(share, x_shape)


class Prod(Reduction):
    """Π x, over all axes or one"""

    kernel_name = "prod_out_cpu"
    row_major = True
    batch = "along one"
    overload = with_axis
    notation = "Π"
    result = staticmethod(counted)

    def forward(xp, x, *, axis=None, keepdims=False):
        return xp.prod(x, axis=axis, keepdims=keepdims)

    def grad_x(xp, g, x, axis=None, keepdims=False):
        if not x.shape:
            return g
        (axis_,) = (0,) if axis is None else axes_of(len(x.shape), axis)
        line = xp.reshape(x, (-1,)) if axis is None else x
        others = xp.reshape(products_of_others(xp, line, axis_), x.shape)
        return restored(xp, g, x.shape, axis, keepdims) * others


def products_of_others(xp, x, axis):
    """Return for each element the product of all others along an axis, which stays right if some are zero."""
    if not x.shape[axis]:
        return x
    back = xp.flip(x, (axis,))
    return products_before(xp, x, axis) * xp.flip(products_before(xp, back, axis), (axis,))


def products_before(xp, x, axis):
    """Π of the elements before each place along an axis."""
    return xp.cumprod(xp.pad_constant(x, widths=shift(len(x.shape), axis, 1), value=1), axis=axis)


def shift(ndim, axis, by):
    """Return padding widths that shift the elements along an axis; elements shifted out are lost."""
    return tuple((by, -by) if i == axis else (0, 0) for i in range(ndim))


# ── spread ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Var(Reduction):
    """Σ |x − x̄|² / (n − correction)"""

    kernel_name = "std_cpu"
    complex32 = True
    row_major = True
    opname = "variance"

    analytic = False
    kinds = "fc"
    result = staticmethod(real_of)

    def forward(xp, x, *, axis=None, correction=1, keepdims=False):
        return rounded(xp, mean_square(xp, wider(xp, x), axis, correction, keepdims), x)

    def grad_x(xp, g, x, axis=None, correction=1, keepdims=False):
        g = restored(xp, g, x.shape, axis, keepdims)
        return g * (x - xp.mean(x, axis=axis, keepdims=True)) * over(2.0, count_of(x.shape, axis) - correction)


class Std(Reduction):
    """√Var(x)"""

    kernel_name = "std_cpu"
    complex32 = True
    row_major = True
    opname = "deviation"

    analytic = False
    kinds = "fc"
    result = staticmethod(real_of)

    def forward(xp, x, *, axis=None, correction=1, keepdims=False):
        return narrowed(xp, xp.sqrt(mean_square(xp, widened(xp, x), axis, correction, keepdims)), x)

    def grad_x(xp, g, x, out, axis=None, correction=1, keepdims=False):
        g, out = (restored(xp, y, x.shape, axis, keepdims) for y in (g, out))
        slope = xp.where(out == 0, 0, g / xp.where(out == 0, 1, out))
        return slope * (x - xp.mean(x, axis=axis, keepdims=True)) * over(1.0, count_of(x.shape, axis) - correction)


def mean_square(xp, x, axis, correction, keepdims):
    """The sum of squared distances from the mean, over the degrees of freedom."""
    away = x - xp.mean(x, axis=axis, keepdims=True)
    square = xp.square(away) if x.dtype.kind == "f" else xp.square(xp.real(away)) + xp.square(xp.imag(away))
    total = xp.sum(square, axis=axis, keepdims=keepdims)
    return total / max(count_of(x.shape, axis) - correction, 0)


def over(a, b):
    """a / b; infinite where there are no degrees of freedom."""
    return a / b if b > 0 else float("inf")


class Logsumexp(Reduction):
    """ln Σ eˣ"""

    kernel_name = "exp_vml_cpu"
    row_major = True
    kinds = "fc"
    result = staticmethod(inexact)

    def forward(xp, x, *, axis, keepdims=False):
        if not count_of(x.shape, axis):
            return xp.log(xp.sum(x, axis=axis, keepdims=keepdims))
        top = xp.max(xp.real(x), axis=axis, keepdims=True)
        top = xp.where(xp.isfinite(top), top, 0)
        out = xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=True)) + top
        return out if keepdims else xp.squeeze(out, axis=axes_of(x.ndim, axis))

    def grad_x(xp, g, x, out, axis, keepdims=False):
        g, out = (restored(xp, y, x.shape, axis, keepdims) for y in (g, out))
        return g * xp.exp(x - out)


class VectorNorm(Reduction):
    """(Σ |x|^ord)^(1/ord), the greatest |x| for ord = ∞, the least for −∞, the number of nonzero x for 0; subgradient 0
    at 0
    """

    kernel_name = "norm_cpu"
    complex32 = True
    row_major = True
    torch_name = "LinalgVectorNorm"
    analytic = False
    kinds = "fc"
    result = staticmethod(real_of)

    def forward(xp, x, *, ord=2, axis=None, keepdims=False):
        return rounded(xp, norm(xp, wider(xp, xp.absolute(x)), ord, axis, keepdims), x)

    def grad_x(xp, g, x, out, ord=2, axis=None, keepdims=False):
        g, out = (restored(xp, y, x.shape, axis, keepdims) for y in (g, out))
        if ord == 0:
            return xp.zeros_like(x)
        if ord == 1:
            return g * xp.sgn(x)
        if ord == 2:
            return g * xp.where(out == 0, 0, x / out)
        size = xp.absolute(x)
        if ord in (float("inf"), -float("inf")):
            chosen = (size == out) | (size != size)
            return g / xp.sum(chosen, axis=axis, keepdims=True) * chosen * xp.sgn(x)
        if ord < 1:
            return xp.where(x == 0, 0, xp.sgn(x) * xp.power(size, ord - 1)) * g * xp.power(out, 1 - ord)
        steep = xp.sgn(x) * xp.power(size, ord - 1) if ord < 2 else x * xp.power(size, ord - 2)
        return steep * xp.where(out == 0, 0, g / xp.power(out, ord - 1))


def norm(xp, size, ord, axis, keepdims):
    """Return the norm of elements that are not negative."""
    if ord == 0:
        return xp.cast(xp.sum(size != 0, axis=axis, keepdims=keepdims), dtype=size.dtype)
    if ord in (float("inf"), -float("inf")):
        return (xp.max if ord > 0 else xp.min)(size, axis=axis, keepdims=keepdims)
    if ord == 1:
        return xp.sum(size, axis=axis, keepdims=keepdims)
    if ord == 2:
        return xp.sqrt(xp.sum(size * size, axis=axis, keepdims=keepdims))
    return xp.sum(size ** ord, axis=axis, keepdims=keepdims) ** (1 / ord)


class CountNorm(Reduction):
    """The number of elements that are not zero: a step through which no gradient flows"""

    kernel_name = "norm_cpu"
    complex32 = True
    row_major = True
    torch_name = "LinalgVectorNorm"
    kinds = "fc"
    differentiable = True
    result = staticmethod(real_of)

    def forward(xp, x, *, axis=None, keepdims=False):
        return norm(xp, xp.absolute(x), 0, axis, keepdims)


# ── the greatest and the least ────────────────────────────────────────────────────────────────────────────────────────


class Extreme(Reduction):
    """The greatest or the least elements."""

    __slots__ = ()
    kinds = "biuf"

    @classmethod
    def infer(cls, x, **params):
        shape, dtype = super().infer(x, **params)
        return checked(cls.opname, x.shape, shape), dtype


def checked(name, shape, left):
    """The shape that an extreme leaves; an error where none of no elements is to be found."""
    if 0 in shape and 0 not in left:
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    return left


class Place(Extreme):
    """The index of an extreme."""

    __slots__ = ()
    batch = "along one"
    result = staticmethod(lambda dtype: of("int64"))


def shared(xp, g, x, out, axis=None, keepdims=False):
    """The gradient of an extreme value: equal elements share it."""
    g, out = (restored(xp, y, x.shape, axis, keepdims) for y in (g, out))
    chosen = x == out
    return xp.where(chosen, g, 0) / xp.sum(chosen, axis=axis, keepdims=True)


def shared_by_all(xp, g, x, out):
    """Share g among the elements equal to `out`, an extreme of all elements; NaN equals NaN."""
    chosen = (x == out) | ((x != x) & (out != out))
    return xp.where(chosen, g / xp.sum(chosen), 0)


class Amax(Extreme):
    """max x"""

    kernel_name = "max_values_cpu"
    row_major = True
    notation = "max"
    former = "MAX_REDUCE"

    def forward(xp, x, *, axis=None, keepdims=False): return xp.amax(x, axis=axis, keepdims=keepdims)
    grad_x = shared


class Amin(Extreme):
    """min x"""

    kernel_name = "min_values_cpu"
    row_major = True
    notation = "min"
    former = "MIN_REDUCE"

    def forward(xp, x, *, axis=None, keepdims=False): return xp.amin(x, axis=axis, keepdims=keepdims)
    grad_x = shared


class Max(Extreme):
    """max x"""

    def forward(xp, x, *, axis=None, keepdims=False): return xp.max(x, axis=axis, keepdims=keepdims)
    grad_x = shared


class Min(Extreme):
    """min x"""

    def forward(xp, x, *, axis=None, keepdims=False): return xp.min(x, axis=axis, keepdims=keepdims)
    grad_x = shared


class GreatestOfAll(Extreme):
    """The greatest of all elements"""

    kernel_name = "max_all"
    torch_name = "Max"
    batch = "defined"

    def overload(self):  return 1
    def forward(xp, x):  return xp.max(x)
    grad_x = shared_by_all


class LeastOfAll(Extreme):
    """The least of all elements"""

    kernel_name = "min_all"
    torch_name = "Min"
    batch = "defined"

    def overload(self):  return 1
    def forward(xp, x):  return xp.min(x)
    grad_x = shared_by_all


class Argmax(Place):
    """The index of the greatest element, the first of equal ones."""

    def forward(xp, x, *, axis=None, keepdims=False): return xp.argmax(x, axis=axis, keepdims=keepdims)


class Argmin(Place):
    """The index of the least element, the first of equal ones."""

    def forward(xp, x, *, axis=None, keepdims=False): return xp.argmin(x, axis=axis, keepdims=keepdims)


class Any(Reduction):
    """True if any element is true."""

    complex32 = True
    row_major = True
    result = staticmethod(lambda dtype: of("bool"))

    def forward(xp, x, *, axis=None, keepdims=False): return xp.any(x, axis=axis, keepdims=keepdims)


class All(Reduction):
    """True if all elements are true."""

    complex32 = True
    row_major = True
    result = staticmethod(lambda dtype: of("bool"))

    def forward(xp, x, *, axis=None, keepdims=False): return xp.all(x, axis=axis, keepdims=keepdims)


# ── elements chosen along an axis, and where they stood ───────────────────────────────────────────────────────────────


class Choice(AlongAxis):
    """Ops that choose elements along an axis: their values, and their indices there."""

    __slots__ = ()
    outputs = ("values", "indices")
    kinds = "biuf"

    @classmethod
    def infer(cls, x, *, axis, keepdims=False, **params):
        shape = checked(cls.opname, x.shape, remaining(x.shape, axis, keepdims))
        return [(shape, x.dtype), (shape, of("int64"))]


def to_chosen(xp, g, indices, x_shape, axis, keepdims=False):
    """Send the gradient to the chosen elements."""
    g = g[0] if keepdims else xp.expand_dims(g[0], axis)
    return xp.place_along_axis(g, indices if keepdims else xp.expand_dims(indices, axis), shape=x_shape, axis=axis)


def without(xp, parts, axis, keepdims):
    """Results without the axis along which they were chosen, unless it is to stay."""
    return tuple(parts) if keepdims else tuple(xp.squeeze(part, axis=axis) for part in parts)


class MaxDim(Choice):
    """The greatest element along an axis, and the first place where it is."""

    kernel_name = "max_cpu"
    row_major = True
    torch_name = "Max"

    def forward(xp, x, *, axis, keepdims=False):
        return xp.max(x, axis=axis, keepdims=keepdims), xp.argmax(x, axis=axis, keepdims=keepdims)

    grad_x = to_chosen


class MinDim(Choice):
    """The least element along an axis, and the first place where it is."""

    kernel_name = "min_cpu"
    row_major = True
    torch_name = "Min"

    def forward(xp, x, *, axis, keepdims=False):
        return xp.min(x, axis=axis, keepdims=keepdims), xp.argmin(x, axis=axis, keepdims=keepdims)

    grad_x = to_chosen


class PlaceAlongAxis(Placing):
    """Zeros of a shape, with x at distinct places along an axis: the adjoint of `take_along_axis` for such places."""

    torch_name = "ValueSelectingReduction"
    axes = ("axis",)

    def forward(xp, x, index, *, shape, axis):
        return xp.place_along_axis(x, index, shape=shape, axis=axis)

    def grad_x(xp, g, index, axis):
        return xp.take_along_axis(g, index, axis=axis)
