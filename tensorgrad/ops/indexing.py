"""Indexing with arrays: reading and writing at given places, and their adjoints."""
from __future__ import annotations

from math import prod
from typing import Any

from numpy import broadcast_shapes

from .base import Op
from .shape import Movement, Placing, as_first

ARRAY = type("ARRAY", (), {"__repr__": lambda self: "ARRAY"})()   # the place of an index array in a template


def filled(template, indices):
    """Return the index of a template: each ARRAY is replaced by the next index array."""
    arrays = iter(indices)
    return tuple(next(arrays) if part is ARRAY else part for part in template)


def indexed_shape(shape: Any, template: Any, broadcast: Any) -> tuple[int, ...]:
    """Return the shape of x[template]: the axes of the index tensors come where they stood, or first if they were
    apart.
    """
    places = [i for i, p in enumerate(template) if p is ARRAY]
    rest = [n for i, n in enumerate(shape) if i not in places]
    at = places[0] if places == list(range(places[0], places[0] + len(places))) else 0
    return (*rest[:at], *broadcast, *rest[at:])


class Index(Movement):
    """x[…, i, …] for index arrays i."""

    linear = ("x",)

    def batch(lot, kernel, x, *indices, template):
        return x[filled(template, indices)]

    def forward(xp, x, *indices, template):
        return xp.index(x, *indices, template=template)

    def grad_x(xp, g, indices, x_shape, template):
        return xp.index_add_into(g, *indices, shape=x_shape, template=template)


class IndexAddInto(Placing):
    """Zeros of a shape, with x added at index arrays, repeated places included: the adjoint of `index`."""

    complex32 = True
    kinds = Op.kinds
    torch_name = "IndexPut"

    def batch(lot, kernel, x, *indices, shape, template):
        hidden = lot.hidden(x, *indices)
        at, lead, axes = lot.places(shape, indices, template, hidden)
        rows, tail = prod(hidden) * prod(shape[:axes]), shape[axes:]
        out = kernel(lot.rows(x, lead, tail, hidden), at, shape=(rows, *tail), template=(ARRAY,))
        return lot.whole(out.reshape(*hidden, *shape))

    def forward(xp, x, *indices, shape, template):
        return xp.index_add_into(x, *indices, shape=shape, template=template)

    def grad_x(xp, g, indices, template):
        return xp.index(g, *indices, template=template)


class IndexPut(Movement):
    """x with `value` written (or added) at index arrays."""

    def batch(lot, kernel, x, value, *indices, template, **params):
        if any(i.dtype.kind == "b" and not lot.shared(i) for i in indices):
            return lot.one_by_one(kernel, x, value, *indices, template=template, **params)
        hidden = lot.hidden(x, value, *indices)
        at, lead, axes = lot.places(x.shape, indices, template, hidden)
        tail = x.shape[axes:]
        out = kernel(lot.rows(x, x.shape[:axes], tail, hidden), lot.rows(value, lead, tail, hidden), at,
                     template=(ARRAY,), **params)
        return lot.whole(out.reshape(*hidden, *x.shape))

    def forward(xp, x, value, *indices, template, accumulate=False):
        return xp.index_put(x, value, *indices, template=template, accumulate=accumulate)

    def grad_x(xp, g, indices, value_shape, template, accumulate=False):
        return g if accumulate else xp.index_put(g, xp.zeros(value_shape, dtype=g.dtype), *indices, template=template)

    def grad_value(xp, g, indices, template, accumulate=False):
        return xp.index(g, *indices, template=template)


class IndexSelect(Movement):
    """out[…, j, …] = x[…, index[j], …]: slices of one axis"""

    def batch(lot, kernel, x, index, *, axis):
        return x[(*(slice(None),) * axis, index)]

    def forward(xp, x, index, *, axis):
        return xp.index_select(x, index, axis=axis)

    def infer(x, index, *, axis):
        return (*x.shape[:axis], *index.shape, *x.shape[axis + 1:]), x.dtype

    def grad_x(xp, g, index, x_shape, axis):
        return xp.index_add_into(g, index, shape=x_shape, template=(slice(None),) * axis + (ARRAY,))


class Gather(Movement):
    """out[…, i, …] = x[…, index[…, i, …], …]; the index may be shorter than x along the other axes"""

    kernel_name = "scatter_gather_tensor_cpu"
    complex32 = False
    row_major = True
    batch = "along"
    axes = ("axis",)
    linear = ("x",)

    def forward(xp, x, index, *, axis):
        return xp.gather(x, index, axis=axis)

    def infer(x, index, *, axis):
        return index.shape, x.dtype

    def grad_x(xp, g, index, x_shape, axis):
        return xp.scatter_add(xp.zeros(x_shape, dtype=g.dtype), g, index, axis=axis)


class TakeAlongAxis(Movement):
    """`gather` for an index that is as long as x along the other axes, as NumPy has it"""

    complex32 = False
    torch_name = "Gather"
    native = True
    batch = "along"
    axes = ("axis",)
    linear = ("x",)

    def forward(xp, x, index, *, axis):
        return xp.take_along_axis(x, index, axis)

    def infer(x, index, *, axis):
        if len(index.shape) != len(x.shape):
            raise ValueError("`indices` and `arr` must have the same number of dimensions")
        axis %= len(x.shape) or 1
        rest = broadcast_shapes(*((*s[:axis], 1, *s[axis + 1:]) for s in (x.shape, index.shape)))
        return (*rest[:axis], *index.shape[axis:axis + 1], *rest[axis + 1:]), x.dtype

    def grad_x(xp, g, index, x_shape, axis):
        return xp.scatter_add(xp.zeros(x_shape, dtype=g.dtype), g, index, axis=axis)


class ScatterAdd(Movement):
    """x with `value` added at index[…] along an axis."""

    kernel_name = "scatter_gather_tensor_cpu"
    kinds = Op.kinds
    batch = "along"
    axes = ("axis",)
    infer = as_first

    def forward(xp, x, value, index, *, axis):
        return xp.scatter_add(x, value, index, axis=axis)

    def grad_x(xp, g):
        return g

    def grad_value(xp, g, index, value_shape, axis):
        return grown(xp, xp.gather(g, index, axis=axis), value_shape)


class Scatter(Movement):
    """x with `value` put at index[…] along an axis."""

    kernel_name = "scatter_gather_tensor_cpu"
    complex32 = False
    batch = "along"
    axes = ("axis",)
    infer = as_first

    def forward(xp, x, value, index, *, axis):
        return xp.scatter(x, value, index, axis=axis)

    def grad_x(xp, g, index, axis):
        return xp.scatter(g, xp.zeros(index.shape, dtype=g.dtype), index, axis=axis)

    def grad_value(xp, g, index, value_shape, axis):
        return grown(xp, xp.gather(g, index, axis=axis), value_shape)


def grown(xp, g, shape):
    """Zeros after the end of every axis, up to a shape."""
    widths = tuple((0, n - m) for n, m in zip(shape, g.shape, strict=True))
    return xp.pad_constant(g, widths=widths) if any(b for _, b in widths) else g


class MaskedFill(Movement):
    """`value` where the mask is true, x elsewhere."""

    row_major = True
    elementwise = True
    batch = "elementwise"

    def overload(self):
        return int(self.edges[1] is not None)

    def forward(xp, x, value, mask):      return xp.where(mask, value, x)
    def grad_x(xp, g, mask):              return xp.where(mask, xp.zeros_like(g), g)
    def grad_value(xp, g, mask):          return xp.where(mask, g, xp.zeros_like(g))


class ScatterExtreme(Movement):
    """x with `value` reduced into it along an axis at index: by the largest (amax), the smallest (amin) or the product.

    With `equal_nan`, the NaNs that make an extreme NaN share its gradient, and one in a product is left out of its own.
    """

    kinds = Op.kinds
    torch_name = "ScatterReduce"
    batch = "along"
    axes = ("axis",)
    infer = as_first

    def forward(xp, x, value, index, *, axis, reduce, include_self=True, equal_nan=False):
        return xp.scatter_extreme(x, value, index, axis=axis, reduce=reduce, include_self=include_self)

    def grad_x(xp, g, x, value, index, out, axis, reduce, include_self=True, equal_nan=False):
        if reduce == "prod":
            return factors(xp, g, x, value, index, out, axis, include_self, equal_nan)[0]
        return shares(xp, g, x, value, index, out, axis, include_self, equal_nan)[0]

    def grad_value(xp, g, x, value, index, out, axis, reduce, include_self=True, equal_nan=False):
        if reduce == "prod":
            return factors(xp, g, x, value, index, out, axis, include_self, equal_nan)[1]
        return shares(xp, g, x, value, index, out, axis, include_self, equal_nan)[1]


def shares(xp, g, x, value, index, out, axis, include_self, equal_nan):
    """Return the gradients of an extreme: equal elements share it, even x's if only `value` is reduced."""
    part = xp.get_slice(value, index=tuple(map(slice, index.shape)))
    there = lambda t: xp.gather(t, index, axis=axis)  # noqa: E731
    met = part == there(out)
    if equal_nan:
        met = met | (part != part)
    hit_x, hit_value = (xp.where(x == out, xp.ones_like(g), 0),
                        xp.where(met, xp.ones(index.shape, dtype=g.dtype), 0))
    share = g / xp.scatter_add(hit_x, hit_value, index, axis=axis)
    return outside(xp, hit_x * share, index, axis, include_self), grown(xp, hit_value * there(share), value.shape)


def factors(xp, g, x, value, index, out, axis, include_self, equal_nan):
    """The gradient of a product is that of the other factors; a zero is left out, not divided by."""
    part = xp.get_slice(value, index=tuple(map(slice, index.shape)))
    there = lambda t: xp.gather(t, index, axis=axis)  # noqa: E731
    product = lambda x, part: xp.scatter_extreme(x, part, index, axis=axis, reduce="prod", include_self=include_self)  # noqa: E731
    filled_x, zero = xp.where(x == 0, 1, x), part == 0
    if equal_nan:
        zero = zero | (part != part)
    zeros = there(xp.scatter_add(xp.zeros_like(g), xp.where(zero, xp.ones(index.shape, dtype=g.dtype), 0), index,
                                 axis=axis))
    alone = zero & (zeros == 1)
    to_x = outside(xp, g * product(filled_x, part) / filled_x, index, axis, include_self)
    others = xp.one_zero(there(out) / xp.where(zero, 1, part), zeros)
    to_value = xp.where(alone, there(g * product(x, xp.where(alone, 1, part))), there(g) * others)
    return to_x, grown(xp, to_value, value.shape)


class OneZero(Movement):
    """x, a product of factors, whose gradient raises if more than one factor is zero.

    In that case x is 0, but not all derivatives are: they are products of factors that are not known here.
    """

    elementwise = True
    batch = "elementwise"
    linear = ("x",)

    def check(xp, x, zeros, *, strict=False):
        if strict and xp.any(zeros > 1):
            raise RuntimeError("scatter_reduce(): Double backward is unsupported for src when >1 zeros in src are "
                               "scattered to the same position in self")

    def forward(xp, x, zeros, *, strict=False):     return xp.clone(x)
    def grad_x(xp, g, zeros, strict=False):         return xp.one_zero(g, zeros, strict=True)


def outside(xp, g, index, axis, include_self):
    """The gradient of x, none of it where x was not reduced but replaced."""
    return g if include_self else xp.scatter(g, xp.zeros(index.shape, dtype=g.dtype), index, axis=axis)
