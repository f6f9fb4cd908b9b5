"""Indexing with arrays: reading and writing at given places, and their adjoints."""
from __future__ import annotations

from .shape import Movement

ARRAY = type("ARRAY", (), {"__repr__": lambda self: "ARRAY"})()   # where, in a template, an index array stands


def filled(template, indices):
    """The index that a template stands for: each ARRAY replaced by the next of the index arrays."""
    arrays = iter(indices)
    return tuple(next(arrays) if part is ARRAY else part for part in template)


class Index(Movement):
    """x[…, i, …] for index arrays i."""

    batch = "defined"
    linear = ("x",)

    def forward(xp, x, *indices, template):
        return x[filled(template, indices)]

    def grad_x(xp, g, indices, x_shape, template):
        return xp.index_add_into(g, *indices, shape=x_shape, template=template)


class IndexAddInto(Movement):
    """Zeros of a shape, with x added at index arrays, repeated places included: the adjoint of `index`."""

    torch_name = "IndexPut"
    batch = "defined"
    linear = ("x",)

    def forward(xp, x, *indices, shape, template):
        out = xp.zeros(shape, dtype=x.dtype)
        xp.add.at(out, filled(template, indices), x)
        return out

    def grad_x(xp, g, indices, template):
        return xp.index(g, *indices, template=template)


class IndexPut(Movement):
    """x with `value` written (or added) at index arrays."""

    def forward(xp, x, value, *indices, template, accumulate=False):
        out = x.copy()
        if accumulate:
            xp.add.at(out, filled(template, indices), value)
        else:
            out[filled(template, indices)] = value
        return out

    def grad_x(xp, g, indices, value_shape, template, accumulate=False):
        return g if accumulate else xp.index_put(g, xp.zeros(value_shape, dtype=g.dtype), *indices, template=template)

    def grad_value(xp, g, indices, template, accumulate=False):
        return xp.index(g, *indices, template=template)


class IndexSelect(Movement):
    """out[…, j, …] = x[…, index[j], …]: slices of one axis"""

    def forward(xp, x, index, *, axis):
        return xp.take(x, index, axis=axis)

    def grad_x(xp, g, index, x_shape, axis):
        return xp.index_add_into(g, index, shape=x_shape, template=(slice(None),) * axis + (ARRAY,))


class Gather(Movement):
    """out[…, i, …] = x[…, index[…, i, …], …]; the index may be shorter than x along the other axes"""

    row_major = True
    batch = "along"
    axes = ("axis",)
    linear = ("x",)

    def forward(xp, x, index, *, axis):
        return x[along(xp, index, axis)]

    def grad_x(xp, g, index, x_shape, axis):
        return xp.scatter_add(xp.zeros(x_shape, dtype=g.dtype), g, index, axis=axis)


class TakeAlongAxis(Movement):
    """`gather` for an index that is as long as x along the other axes, as NumPy has it"""

    torch_name = "Gather"
    native = True
    batch = "along"
    axes = ("axis",)
    linear = ("x",)

    def forward(xp, x, index, *, axis):
        return xp.take_along_axis(x, index, axis)

    def grad_x(xp, g, index, x_shape, axis):
        return xp.scatter_add(xp.zeros(x_shape, dtype=g.dtype), g, index, axis=axis)


class ScatterAdd(Movement):
    """x with `value` added at index[…] along an axis."""

    batch = "along"
    axes = ("axis",)

    def forward(xp, x, value, index, *, axis):
        out = x.copy()
        xp.add.at(out, along(xp, index, axis), value[tuple(map(slice, index.shape))])
        return out

    def grad_x(xp, g):
        return g

    def grad_value(xp, g, index, value_shape, axis):
        return grown(xp, xp.gather(g, index, axis=axis), value_shape)


class Scatter(Movement):
    """x with `value` put at index[…] along an axis."""

    batch = "along"
    axes = ("axis",)

    def forward(xp, x, value, index, *, axis):
        out = x.copy()
        out[along(xp, index, axis)] = value[tuple(map(slice, index.shape))]
        return out

    def grad_x(xp, g, index, axis):
        return xp.scatter(g, xp.zeros(index.shape, dtype=g.dtype), index, axis=axis)

    def grad_value(xp, g, index, value_shape, axis):
        return grown(xp, xp.gather(g, index, axis=axis), value_shape)


def along(xp, index, axis):
    """The index that pairs an index array along one axis with every place along the others."""
    ndim = index.ndim
    return tuple(index if d == axis else xp.arange(n).reshape((1,) * d + (n,) + (1,) * (ndim - d - 1)) for d, n in enumerate(index.shape))


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
    """x with `value` reduced into it along an axis at index: by the largest (amax), the smallest (amin) or the product."""

    torch_name = "ScatterReduce"
    batch = "along"
    axes = ("axis",)

    def forward(xp, x, value, index, *, axis, reduce, include_self=True):
        out, where = x.copy(), along(xp, index, axis)
        value = value[tuple(map(slice, index.shape))]
        if not include_self:
            out[where] = neutral(x.dtype, reduce)
        {"amax": xp.maximum, "amin": xp.minimum, "prod": xp.multiply}[reduce].at(out, where, value)
        return out

    def grad_x(xp, g, x, value, index, out, axis, reduce, include_self=True):
        return (factors if reduce == "prod" else shares)(xp, g, x, value, index, out, axis, reduce, include_self)[0]

    def grad_value(xp, g, x, value, index, out, axis, reduce, include_self=True):
        return (factors if reduce == "prod" else shares)(xp, g, x, value, index, out, axis, reduce, include_self)[1]


def neutral(dtype, reduce):
    """What does not change the reduction."""
    if reduce == "prod":
        return 1
    if dtype.kind == "b":
        return reduce == "amin"
    if dtype.kind in "fV":
        return float("-inf") if reduce == "amax" else float("inf")
    from numpy import iinfo
    return iinfo(dtype).min if reduce == "amax" else iinfo(dtype).max


def shares(xp, g, x, value, index, out, axis, reduce, include_self):
    """The gradient of an extreme: what equals it shares it, x as well where only `value` was reduced, as in PyTorch."""
    part = xp.get_slice(value, index=tuple(map(slice, index.shape)))
    there = lambda t: xp.gather(t, index, axis=axis)  # noqa: E731
    hit_x, hit_value = xp.where(x == out, xp.ones_like(g), 0), xp.where(part == there(out), xp.ones(index.shape, dtype=g.dtype), 0)
    share = g / xp.scatter_add(hit_x, hit_value, index, axis=axis)
    return outside(xp, hit_x * share, index, axis, include_self), grown(xp, hit_value * there(share), value.shape)


def factors(xp, g, x, value, index, out, axis, reduce, include_self):
    """The gradient of a product is that of the other factors; a zero is left out, not divided by."""
    part = xp.get_slice(value, index=tuple(map(slice, index.shape)))
    there = lambda t: xp.gather(t, index, axis=axis)  # noqa: E731
    product = lambda x, part: xp.scatter_extreme(x, part, index, axis=axis, reduce=reduce, include_self=include_self)  # noqa: E731
    filled_x, zero = xp.where(x == 0, 1, x), part == 0
    zeros = there(xp.scatter_add(xp.zeros_like(g), xp.where(zero, xp.ones(index.shape, dtype=g.dtype), 0), index, axis=axis))
    alone = zero & (zeros == 1)
    to_x = outside(xp, g * product(filled_x, part) / filled_x, index, axis, include_self)
    to_value = xp.where(alone, there(g * product(x, xp.where(alone, 1, part))), there(g * out) / xp.where(zero, 1, part))
    return to_x, grown(xp, to_value, value.shape)


def outside(xp, g, index, axis, include_self):
    """The gradient of x, none of it where x was not reduced but replaced."""
    return g if include_self else xp.scatter(g, xp.zeros(index.shape, dtype=g.dtype), index, axis=axis)
