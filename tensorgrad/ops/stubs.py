"""Bases for ops that programs define: `BaseOp`, and three families of it, which fix the signatures of formulas.

    class Cube(UnaryOp):
        def forward(xp, x): return x * x * x
        def grad_x(xp, g, x): return g * 3 * x * x

`ops/base.py` describes formulas; `OpDispatch.execute("cube", x)` runs the op.
"""
from __future__ import annotations

from typing import Any

from .base import OPS, Elementwise, Op

BaseOp = Op


class Checked(Op):
    """A family that checks the signatures of formulas: another one raises TypeError, and registers no op."""

    __slots__ = ()
    takes = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        before = dict(OPS)
        super().__init_subclass__(**kwargs)
        if "forward" in cls.__dict__ and not cls.fits():
            if cls.opname in before:
                OPS[cls.opname] = before[cls.opname]
            else:
                del OPS[cls.opname]
            found = ", ".join((*cls.inputs, *(f"{p}=" for p in cls.parameters)))
            raise TypeError(f"{cls.__name__}.forward must take {cls.takes}, and takes {found or 'nothing'}")

    @classmethod
    def fits(cls) -> bool:
        """Return True if the formula has the family's signature."""
        return True


class UnaryOp(Checked, Elementwise):
    """An op on each element of one tensor: `forward(xp, x)` and `grad_x(xp, g, …)`."""

    __slots__ = ()
    native = False
    takes = "one tensor"

    @classmethod
    def fits(cls) -> bool:
        return cls.arity == 1


class BinaryOp(Checked, Elementwise):
    """An op on the elements of two tensors, which broadcast: `forward(xp, a, b)`, `grad_a(xp, g, …)` and `grad_b(xp, g,
    …)`.
    """

    __slots__ = ()
    native = False
    takes = "two tensors"

    @classmethod
    def fits(cls) -> bool:
        return cls.arity == 2


class ReduceOp(Checked):
    """An op that makes one element of many: `forward(xp, x, *, axis=None, keepdims=False)` and `grad_x(xp, g, …)`."""

    __slots__ = ()
    takes = "one tensor, axis= and keepdims="

    @classmethod
    def fits(cls) -> bool:
        return cls.arity == 1 and {"axis", "keepdims"} <= cls.parameters.keys()


__all__ = ["BaseOp", "BinaryOp", "Op", "ReduceOp", "UnaryOp"]
