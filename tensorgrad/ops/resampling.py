"""Axes read at other places: interpolation, borders that mirror or repeat what they enclose."""
from __future__ import annotations

from math import prod

from .base import Op
from .indexing import ARRAY
from .shape import Movement

LARGEST_MATRIX = 1 << 18        # elements; an axis of a signal of a minute would need 10¹²


def along_shared(lot, kernel, x, m, *, axis, **params):
    """Map an op along an axis over a batch: at once if all examples share the weights, or the index."""
    if not lot.shared(m):
        return lot.one_by_one(kernel, x, m, axis=axis, **params)
    return lot.whole(kernel(x.values, lot.common(m), axis=lot.axes(axis, x.ndim), **params))


class Resample(Op):
    """out[…, j, …] = Σᵢ m[j, i] · x[…, i, …]: an axis as sums of its places, with the weights in a matrix"""

    images = "x"
    torch_name = "Upsample"
    batch = along_shared
    linear = ("x",)

    def forward(xp, x, m, *, axis):
        lead, rest = x.shape[:axis], x.shape[axis + 1:]
        if not rest:
            return xp.matmul(x, xp.t(m))
        flat = xp.reshape(x, (*lead, x.shape[axis], prod(rest)))
        return xp.reshape(xp.matmul(m, flat), (*lead, m.shape[0], *rest))

    def grad_x(xp, g, m, axis):
        return xp.resample(g, xp.t(m), axis=axis)


class Average(Op):
    """`resample` with weights that make means of neighbours"""

    images, volumes = "x", False
    torch_name = "AdaptiveAvgPool2D"
    flat = True
    batch = along_shared
    forward, grad_x = Resample.forward, Resample.grad_x
    linear = ("x",)


class TakeAxis(Movement):
    """out[…, j, …] = x[…, index[j], …]"""

    torch_name = "IndexSelect"
    batch = "defined"
    linear = ("x",)

    def forward(xp, x, index, *, axis):           return xp.index(x, index, template=(slice(None),) * axis + (ARRAY,))
    def grad_x(xp, g, index, x_shape, axis):      return xp.add_axis(g, index, size=x_shape[axis], axis=axis)


class Border(Movement):
    """`take_axis` with an index that repeats or mirrors what lies within"""

    images = "x"
    torch_name = "ReflectionPad1D"
    flat = True
    batch = "defined"
    forward, grad_x = TakeAxis.forward, TakeAxis.grad_x
    linear = ("x",)


class UpsampleNearest(Movement):
    """`take_axis` with an index that repeats or leaves out places, to resize"""

    torch_name = "UpsampleNearest2D"
    images = "x"
    batch = "defined"
    forward, grad_x = TakeAxis.forward, TakeAxis.grad_x
    linear = ("x",)


class AddAxis(Op):
    """Slices of an axis added up in the places that they came from: the adjoint of `take_axis`, as a product with a
    matrix of 0 and 1 where that is small.
    """

    torch_name = "IndexAdd"
    batch = along_shared
    linear = ("x",)

    def forward(xp, x, index, *, size, axis):
        if size * index.shape[0] > LARGEST_MATRIX:
            return xp.index_add_into(x, index, shape=(*x.shape[:axis], size, *x.shape[axis + 1:]),
                                     template=(slice(None),) * axis + (ARRAY,))
        hits = xp.expand_dims(xp.arange(size), 1) == index
        return xp.resample(x, xp.cast(hits, dtype=x.dtype), axis=axis)

    def grad_x(xp, g, index, axis):
        return xp.take_axis(g, index, axis=axis)
