"""Reads and writes through views, as ops of the tape. A view is the chain of view ops that made it."""
from __future__ import annotations

from .base import Op
from .elementwise import is_complex

FROM_COMPLEX = frozenset(("real", "imag", "view_as_real"))


def zeros_of_whole(xp, g, shape, view):
    """Return zeros for the base of a chain of views; a view of another kind of numbers tells the dtype."""
    zeros = xp.zeros(shape, dtype=g.dtype)
    for op, _ in view:
        if op.opname in FROM_COMPLEX:
            return zeros if is_complex(g) else xp.make_complex(zeros, zeros)
        if op.opname == "view_as_complex":
            return xp.real(zeros) if is_complex(g) else zeros
    return zeros


class View(Op):
    """The part of x that a view shows."""

    complex32 = True
    analytic = False                                # a chain may go from complex numbers to their parts
    batch = "defined"
    linear = ("x",)

    def forward(xp, x, *, view, order=None):
        return xp.view(x, view=view, order=order)

    def grad_x(xp, g, x_shape, view, order):
        return xp.set_view(zeros_of_whole(xp, g, x_shape, view), g, view=view, order=order)


class SetView(Op):
    """x with the part that a view shows replaced by `value`.

    `written`: x holds the value already, only the tape is to know.
    """

    complex32 = True
    torch_name = "CopySlices"
    analytic = False

    def name(self):
        return "torch::autograd::CopySlices"

    def batch(lot, kernel, x, value, **params):
        return lot.definition(SetView)(lot.whole(lot.full(x, lot.hidden(x, value))), value, **params)

    def forward(xp, x, value, *, view, order=None, written=False):
        return xp.set_view(x, value, view=view, order=order, written=written)

    def grad_x(xp, g, value_shape, view, order):
        zeros = xp.zeros(value_shape, dtype=g.dtype)        # the part may be real where the whole is complex
        return xp.set_view(g, xp.real(zeros) if is_complex(g) else zeros, view=view, order=order)

    def grad_value(xp, g, view, order):
        return xp.view(g, view=view, order=order)

