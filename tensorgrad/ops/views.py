"""A part of a tensor, seen and replaced: what writes through views are on the tape. A view is given by the chain of view ops that made it."""
from __future__ import annotations

from .base import Op


def look(xp, x, view):
    """Go along a chain of view ops."""
    for op, params in view:
        x = op.forward(xp, x, **params)
    return x


class View(Op):
    """The part of x that a view shows."""

    def forward(xp, x, *, view):
        return look(xp, x, view).copy()

    def grad_x(xp, g, x_shape, view):
        return xp.set_view(xp.zeros(x_shape, dtype=g.dtype), g, view=view)


class SetView(Op):
    """x with the part that a view shows replaced by `value`. `written`: x holds the value already, only the tape is to know."""

    torch_name = "CopySlices"

    def name(self):
        return "torch::autograd::CopySlices"

    def forward(xp, x, value, *, view, written=False):
        if written:
            return x
        out = xp.asarray(x).copy(order="K")                 # a NumPy scalar would not be written to
        look(xp, out, view)[...] = value
        return out

    def grad_x(xp, g, value_shape, view):
        return xp.set_view(g, xp.zeros(value_shape, dtype=g.dtype), view=view)

    def grad_value(xp, g, view):
        return xp.view(g, view=view)

