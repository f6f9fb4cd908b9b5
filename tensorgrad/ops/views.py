"""A part of a tensor, seen and replaced: what writes through views are on the tape. A view is given by the chain of view ops that made it."""
from __future__ import annotations

from .base import Op


def look(xp, x, view):
    """Go along a chain of view ops."""
    for op, params in view:
        x = op.forward(xp, x, **params)
    return x


def laid(xp, x, order):
    """A copy that lies in memory as the whole does of which x is the gradient: `order` are its axes, the slowest first (None: as they come).

    In another order, a view of it by `reshape` would be a copy, and `as_strided` would find other elements.
    """
    if order is None:
        return x.copy(order="C")
    return x.transpose(order).copy(order="C").transpose([order.index(axis) for axis in range(x.ndim)])


class View(Op):
    """The part of x that a view shows."""

    batch = "defined"
    linear = ("x",)

    def forward(xp, x, *, view, order=None):
        return look(xp, laid(xp, x, order) if view[0][0].torch_name == "AsStrided" else x, view).copy()

    def grad_x(xp, g, x_shape, view, order):
        return xp.set_view(xp.zeros(x_shape, dtype=g.dtype), g, view=view, order=order)


class SetView(Op):
    """x with the part that a view shows replaced by `value`. `written`: x holds the value already, only the tape is to know."""

    torch_name = "CopySlices"

    def name(self):
        return "torch::autograd::CopySlices"

    def forward(xp, x, value, *, view, order=None, written=False):
        if written:
            return x
        out = laid(xp, xp.asarray(x), order)                # a NumPy scalar would not be written to
        look(xp, out, view)[...] = value
        return out

    def grad_x(xp, g, value_shape, view, order):
        return xp.set_view(g, xp.zeros(value_shape, dtype=g.dtype), view=view, order=order)

    def grad_value(xp, g, view, order):
        return xp.view(g, view=view, order=order)

