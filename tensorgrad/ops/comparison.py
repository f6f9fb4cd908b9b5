"""Comparisons, predicates and bit operations: results are bools or integers, without gradients."""
from __future__ import annotations

from .base import Elementwise


class Ordering(Elementwise):
    """Comparisons of numbers that have an order."""

    __slots__ = ()
    kinds = "biuf"


class Equal(Elementwise):
    """a = b"""

    kernel_name = "eq_cpu"
    complex32 = True
    takes_float8 = True
    notation = "{} = {}"

    def forward(xp, a, b): return xp.equal(a, b)


class NotEqual(Elementwise):
    """a ≠ b"""

    kernel_name = "ne_cpu"
    complex32 = True
    takes_float8 = True
    notation = "{} ≠ {}"

    def forward(xp, a, b): return xp.not_equal(a, b)


class Less(Ordering):
    """a < b"""

    kernel_name = "lt_cpu"
    notation = "{} < {}"

    def forward(xp, a, b): return xp.less(a, b)


class LessEqual(Ordering):
    """a ≤ b"""

    kernel_name = "le_cpu"
    notation = "{} ≤ {}"

    def forward(xp, a, b): return xp.less_equal(a, b)


class Greater(Ordering):
    """a > b"""

    kernel_name = "gt_cpu"
    notation = "{} > {}"

    def forward(xp, a, b): return xp.greater(a, b)


class GreaterEqual(Ordering):
    """a ≥ b"""

    kernel_name = "ge_cpu"
    notation = "{} ≥ {}"

    def forward(xp, a, b): return xp.greater_equal(a, b)


# ── kinds of number ───────────────────────────────────────────────────────────────────────────────────────────────────


class Isnan(Elementwise):
    """True where x is NaN."""

    complex32 = True
    takes_float8 = True
    onnx = "IsNaN"
    notation = "{} is NaN"
    zeros = "kept"

    def forward(xp, x): return xp.isnan(x)


class Isinf(Elementwise):
    """True where x is infinite."""

    complex32 = True
    onnx = "IsInf"
    notation = "{} is infinite"
    zeros = "kept"

    def forward(xp, x): return xp.isinf(x)


class Isfinite(Elementwise):
    """True where x is neither infinite nor NaN."""

    complex32 = True
    notation = "{} is finite"

    def forward(xp, x): return xp.isfinite(x)


# ── logic: numbers count as true unless they are zero ─────────────────────────────────────────────────────────────────


class LogicalNot(Elementwise):
    """not x"""

    kernel_name = "logical_not_cpu"
    notation = "not {}"

    def forward(xp, x): return xp.logical_not(x)


class LogicalAnd(Elementwise):
    """a and b"""

    kernel_name = "logical_and_cpu"
    notation = "{} and {}"

    def forward(xp, a, b): return xp.logical_and(a, b)


class LogicalOr(Elementwise):
    """a or b"""

    kernel_name = "logical_or_cpu"
    notation = "{} or {}"

    def forward(xp, a, b): return xp.logical_or(a, b)


class LogicalXor(Elementwise):
    """either a or b"""

    kernel_name = "logical_xor_cpu"

    def forward(xp, a, b): return xp.logical_xor(a, b)


# ── bits ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Bitwise(Elementwise):
    """Operations on the bits of integers."""

    __slots__ = ()
    kinds = "biu"


class BitwiseNot(Bitwise):
    """~x"""

    kernel_name = "bitwise_not_cpu"
    former = "INVERT"

    def forward(xp, x): return xp.bitwise_not(x)


class BitwiseAnd(Bitwise):
    """a & b"""

    kernel_name = "bitwise_and_cpu"

    def forward(xp, a, b): return xp.bitwise_and(a, b)


class BitwiseOr(Bitwise):
    """a | b"""

    kernel_name = "bitwise_or_cpu"

    def forward(xp, a, b): return xp.bitwise_or(a, b)


class BitwiseXor(Bitwise):
    """a ^ b"""

    kernel_name = "bitwise_xor_cpu"

    def forward(xp, a, b): return xp.bitwise_xor(a, b)


class LeftShift(Elementwise):
    """a · 2ᵇ, bits that leave are lost"""

    kernel_name = "lshift_cpu"
    kinds = "iu"

    def forward(xp, a, b): return xp.left_shift(a, b)


class RightShift(Elementwise):
    """⌊a / 2ᵇ⌋"""

    kernel_name = "rshift_cpu"
    kinds = "iu"

    def forward(xp, a, b): return xp.right_shift(a, b)
