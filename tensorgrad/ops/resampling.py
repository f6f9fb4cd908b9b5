"""Axes read at other places: interpolation, borders that mirror or repeat what they enclose."""
from __future__ import annotations

from math import prod

from .base import Op
from .shape import Movement


class Resample(Op):
    """out[…, j, …] = Σᵢ m[j, i] · x[…, i, …]: an axis as sums of its places, with the weights in a matrix"""

    torch_name = "Upsample"
    linear = ("x",)

    def forward(xp, x, m, *, axis):
        lead, rest = x.shape[:axis], x.shape[axis + 1:]
        if not rest:
            return xp.matmul(x, m.T)
        return xp.matmul(m, x.reshape(*lead, x.shape[axis], prod(rest))).reshape(*lead, m.shape[0], *rest)

    def grad_x(xp, g, m, axis):
        return xp.resample(g, xp.t(m), axis=axis)


class Average(Op):
    """`resample` with weights that make means of neighbours"""

    torch_name = "AdaptiveAvgPool2D"
    flat = True
    forward, grad_x = Resample.forward, Resample.grad_x
    linear = ("x",)


class TakeAxis(Movement):
    """out[…, j, …] = x[…, index[j], …]"""

    torch_name = "IndexSelect"
    batch = "defined"
    linear = ("x",)

    def forward(xp, x, index, *, axis):           return xp.take(x, index, axis=axis)
    def grad_x(xp, g, index, x_shape, axis):      return xp.add_axis(g, index, size=x_shape[axis], axis=axis)


class Border(Movement):
    """`take_axis` with an index that repeats or mirrors what lies within"""

    torch_name = "ReflectionPad1D"
    flat = True
    forward, grad_x = TakeAxis.forward, TakeAxis.grad_x
    linear = ("x",)


class AddAxis(Op):
    """Slices of an axis added up in the places that they came from: the adjoint of `take_axis`, as a product with a matrix of 0 and 1."""

    torch_name = "IndexAdd"
    linear = ("x",)

    def forward(xp, x, index, *, size, axis):
        m = (xp.arange(size).reshape(-1, 1) == index).astype(x.dtype)
        return xp.resample(x, m, axis=axis)

    def grad_x(xp, g, index, axis):
        return xp.take_axis(g, index, axis=axis)
