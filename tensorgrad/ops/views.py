"""Reads and writes through views, as ops of the tape. A view is the chain of view ops that made it."""
from __future__ import annotations

from .base import Op


class View(Op):
    """The part of x that a view shows."""

    batch = "defined"
    linear = ("x",)

    def forward(xp, x, *, view, order=None):
        return xp.view(x, view=view, order=order)

    def grad_x(xp, g, x_shape, view, order):
        return xp.set_view(xp.zeros(x_shape, dtype=g.dtype), g, view=view, order=order)


class SetView(Op):
    """x with the part that a view shows replaced by `value`.

    `written`: x holds the value already, only the tape is to know.
    """

    torch_name = "CopySlices"

    def name(self):
        return "torch::autograd::CopySlices"

    def batch(lot, kernel, x, value, **params):
        return lot.definition(SetView)(lot.whole(lot.full(x, lot.hidden(x, value))), value, **params)

    def forward(xp, x, value, *, view, order=None, written=False):
        return xp.set_view(x, value, view=view, order=order, written=written)

    def grad_x(xp, g, value_shape, view, order):
        return xp.set_view(g, xp.zeros(value_shape, dtype=g.dtype), view=view, order=order)

    def grad_value(xp, g, view, order):
        return xp.view(g, view=view, order=order)

