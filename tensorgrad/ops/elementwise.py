"""Arithmetic, element by element: sums, products, powers, rounding, extrema, and the parts of complex numbers."""
from __future__ import annotations

from math import log, pi

from .base import Elementwise, Floating, Op
from .shape import ANY


def is_number(value):
    """Return True if an operand is a Python number: formulas may branch on it."""
    return isinstance(value, (int, float, complex))


def is_complex(x):
    """Return True if an array, or a Tensor, holds complex numbers."""
    return x.dtype.kind == "c" if hasattr(x.dtype, "kind") else x.dtype.is_complex


def kind_of(a, b):
    """Return the kind of dtype of two operands. A Python number has the other operand's: the engine converted it."""
    return (b if is_number(a) else a).dtype.kind


def real(xp, x):
    return xp.real(x) if is_complex(x) else x


# ── sums and products ─────────────────────────────────────────────────────────────────────────────────────────────────


class Add(Elementwise):
    """a + b"""

    kernel_name = "add_stub"
    complex32 = True
    lands = True
    notation = "{} + {}"

    def forward(xp, a, b): return xp.add(a, b)
    def grad_a(xp, g):     return g
    def grad_b(xp, g):     return g


class Subtract(Elementwise):
    """a − b"""

    kernel_name = "add_stub"
    complex32 = True
    torch_name = "Sub"
    kinds = "iufc"
    lands = True
    notation = "{} − {}"
    former = "SUB"

    def forward(xp, a, b): return xp.subtract(a, b)
    def grad_a(xp, g):     return g
    def grad_b(xp, g):     return -g


class Multiply(Elementwise):
    """a · b"""

    kernel_name = "mul_cpu"
    complex32 = True
    torch_name = "Mul"
    lands = True
    notation = "{} · {}"
    former = "MUL"

    def forward(xp, a, b): return xp.multiply(a, b)
    def grad_a(xp, g, b):  return xp.multiply(g, b)
    def grad_b(xp, g, a):  return xp.multiply(g, a)


class Divide(Floating):
    """a / b"""

    kernel_name = "div_cpu"
    torch_name = "Div"
    onnx = "Div"
    lands = True
    notation = "{} / {}"
    former = "DIV"

    def forward(xp, a, b):      return xp.divide(a, b)
    def grad_a(xp, g, b):       return g / b
    # not out / b: programs may modify quotients in place, as in PyTorch
    def grad_b(xp, g, a, b):    return -g * ((a / b) / b)


class Negative(Elementwise):
    """−x"""

    kernel_name = "neg_cpu"
    complex32 = True
    torch_name = "Neg"
    kinds = "iufc"
    onnx = "Neg"
    lands = True
    notation = "−{}"
    zeros = "additive"

    def forward(xp, x):    return xp.negative(x)
    def grad_x(xp, g):     return -g


class Rsub(Elementwise):
    """b − a"""

    kernel_name = "add_stub"
    complex32 = True
    native = False
    kinds = "iufc"
    onnx = "definition"

    def overload(self):    return int(self.edges[1] is None)
    def forward(xp, a, b): return xp.subtract(b, a)
    def grad_a(xp, g):     return -g
    def grad_b(xp, g):     return g


class Reciprocal(Floating):
    """1 / x"""

    kernel_name = "reciprocal_cpu"
    onnx = "Reciprocal"
    notation = "1 / {}"

    def forward(xp, x):      return xp.reciprocal(x)
    def grad_x(xp, g, out):  return -g * (out * out)


class Lerp(Elementwise):
    """a + t·(b − a), from the nearer end"""

    kernel_name = "lerp_kernel_scalar"
    native = False
    kinds = "fc"
    lands = True
    onnx = "definition"

    def overload(self):
        return int(self.edges[2] is not None)

    def forward(xp, a, b, t):
        span = b - a
        return xp.where(xp.absolute(t) < 0.5, a + t * span, b - span * (1 - t))

    def grad_a(xp, g, t):     return g * (1 - t)
    def grad_b(xp, g, t):     return g * t
    def grad_t(xp, g, a, b):  return g * (b - a)


# ── whole quotients and remainders ────────────────────────────────────────────────────────────────────────────────────


class Truncating(Elementwise):
    """Integer quotients and what remains. Integers cannot be divided by zero."""

    __slots__ = ()
    native = False
    kinds = "iuf"

    def overload(self):
        return 2 if self.torch_name == "Div" else int(self.edges[1] is not None)

    def check(xp, a, b):
        if not is_number(b) and b.dtype.kind in "iu" and xp.any(b == 0):
            raise RuntimeError("ZeroDivisionError")


class FloorDivide(Truncating):
    """⌊a / b⌋"""

    kernel_name = "div_floor_cpu"
    torch_name = "Div"
    notation = "⌊{} / {}⌋"

    def forward(xp, a, b): return xp.floor_divide(a, b)
    def grad_a(xp, g):     return xp.zeros_like(g)
    def grad_b(xp, g):     return xp.zeros_like(g)


class TruncDivide(Truncating):
    """a / b, rounded towards zero"""

    kernel_name = "div_trunc_cpu"
    torch_name = "Div"

    def forward(xp, a, b):
        return xp.trunc(xp.divide(a, b)) if kind_of(a, b) == "f" else (a - xp.fmod(a, b)) // b

    def grad_a(xp, g):     return xp.zeros_like(g)
    def grad_b(xp, g):     return xp.zeros_like(g)


class Remainder(Truncating):
    """a − b·⌊a / b⌋: the remainder with the sign of b"""

    kernel_name = "remainder_cpu"

    def forward(xp, a, b):    return xp.remainder(a, b)
    def grad_a(xp, g):        return g
    def grad_b(xp, g, a, b):  return -g * xp.floor_divide(a, b)


class Fmod(Truncating):
    """a − b·trunc(a / b): the remainder with the sign of a"""

    kernel_name = "fmod_cpu"

    def forward(xp, a, b):    return xp.fmod(a, b)
    def grad_a(xp, g):        return g
    def grad_b(xp, g, a, b):  return -g * xp.trunc_divide(a, b)


class Gcd(Elementwise):
    """The greatest common divisor."""

    kernel_name = "gcd_cpu"
    kinds = "iu"

    def forward(xp, a, b): return xp.gcd(a, b)


class Lcm(Elementwise):
    """The least common multiple."""

    kernel_name = "lcm_cpu"
    kinds = "iu"

    def forward(xp, a, b): return xp.lcm(a, b)


# ── powers ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Power(Elementwise):
    """aᵇ"""

    kernel_name = "pow"
    torch_name = "Pow"
    native = False
    kinds = "iufc"
    notation = "{} ^ {}"
    former = "POW"

    def overload(self):
        a, b = self.edges
        return 0 if b is None else 2 if a is None else 1

    def forward(xp, a, b):
        return xp.power(a, b) if kind_of(a, b) in "fcV" else integer_power(xp, a, b)

    def grad_a(xp, g, a, b):
        if is_number(b):
            return xp.zeros_like(g) if b == 0 else g if b == 1 else g * (b * (a if b == 2 else xp.power(a, b - 1)))
        return xp.where(b == 0, 0, g * (b * xp.power(a, xp.where(b == 0, 1, b - 1))))

    def grad_b(xp, g, a, b, out):
        if is_number(a) and a != 0:
            return g * (out * log_of(complex(a) if is_complex(out) and a < 0 else a))
        at_zero = (b.real >= 0 and b.imag == 0 if is_number(b) else (real(xp, b) >= 0) & (xp.imag(b) == 0)
                   if is_complex(b) else b >= 0)
        if is_number(a):
            return xp.where(at_zero, 0, g * out * -float("inf"))
        at_zero = (a == 0) & at_zero
        if is_complex(out) and not is_complex(a):       # a negative number has a complex logarithm
            return xp.where(at_zero, 0, g * (out * xp.log(xp.where(at_zero, 1, a) + 0j)))
        return xp.where(at_zero, 0, g * (out * xp.log(xp.where(at_zero, 1, a))))


def log_of(number):
    """The logarithm of a Python number: NaN where it is negative, as for tensors."""
    from cmath import log as complex_log
    if isinstance(number, complex):
        return complex_log(number)
    return log(number) if number > 0 else float("nan")


def integer_power(xp, a, b):
    """aᵇ for integers; of negative powers only those of 1 and −1 are not rounded to zero."""
    if is_number(b):
        if b < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        return xp.power(a, b)
    whole = xp.power(a, xp.maximum(b, 0))
    if b.dtype.kind == "u":
        return whole
    unit = xp.where(a == 1, 1, xp.where(a == -1, 1 - 2 * (b % 2), 0))
    return xp.where(b < 0, unit, whole)


class Square(Elementwise):
    """x²"""

    kernel_name = "pow"
    torch_name = "Pow"
    notation = "{}²"
    zeros = "kept"

    def forward(xp, x):    return xp.square(x)
    def grad_x(xp, g, x):  return g * (2 * x)


class Sqrt(Floating):
    """√x"""

    kernel_name = "sqrt_vml_cpu"
    onnx = "Sqrt"
    lands = True
    notation = "√{}"
    zeros = "kept"

    def forward(xp, x):      return xp.sqrt(x)
    def grad_x(xp, g, out):  return g / (2 * out)


class Rsqrt(Floating):
    """1 / √x"""

    kernel_name = "rsqrt_cpu"
    native = False
    notation = "1 / √{}"

    def forward(xp, x):      return 1 / xp.sqrt(x)
    def grad_x(xp, g, out):  return g * (-0.5 * out * out * out)


class Hypot(Elementwise):
    """√(a² + b²)"""

    kernel_name = "hypot_cpu"
    kinds = "f"

    def forward(xp, a, b):      return xp.hypot(a, b)
    def grad_a(xp, g, a, out):  return g * (a / out)
    def grad_b(xp, g, b, out):  return g * (b / out)


# ── rounding and signs ────────────────────────────────────────────────────────────────────────────────────────────────


class Rounding(Elementwise):
    """Step functions: their derivative is zero where it exists."""

    __slots__ = ()
    kinds = "f"
    zeros = "kept"


class Floor(Rounding):
    """⌊x⌋"""

    kernel_name = "floor_vml_cpu"
    notation = "⌊{}⌋"

    def forward(xp, x): return xp.floor(x)
    def grad_x(xp, g):  return xp.zeros_like(g)


class Ceil(Rounding):
    """⌈x⌉"""

    kernel_name = "ceil_vml_cpu"
    notation = "⌈{}⌉"

    def forward(xp, x): return xp.ceil(x)
    def grad_x(xp, g):  return xp.zeros_like(g)


class Trunc(Rounding):
    """x rounded towards zero"""

    kernel_name = "trunc_vml_cpu"

    def forward(xp, x): return xp.trunc(x)
    def grad_x(xp, g):  return xp.zeros_like(g)


class Round(Rounding):
    """x rounded to so many decimals, halves to even"""

    kernel_name = "round_cpu"

    def overload(self):                return int(self.params.get("decimals", 0) != 0)
    def forward(xp, x, *, decimals=0): return xp.round(x, decimals)
    def grad_x(xp, g):                 return xp.zeros_like(g)


class Sign(Rounding):
    """−1, 0 or 1"""

    kinds = "iuf"
    onnx = "Sign"

    def forward(xp, x): return xp.sign(x)
    def grad_x(xp, g):  return xp.zeros_like(g)


class Sgn(Elementwise):
    """x / |x|, 0 at 0: the sign of a real number, the direction of a complex one"""

    kernel_name = "sgn_cpu"
    complex32 = True
    native = False
    analytic = False
    onnx = "Sign"
    zeros = "kept"

    def forward(xp, x):
        if x.dtype.kind != "c":
            return xp.sign(x)
        size = xp.absolute(x)
        return xp.where(size == 0, 0, x / xp.where(size == 0, 1, size))

    def grad_x(xp, g, x, out):
        if not is_complex(x):
            return xp.zeros_like(g)
        size = xp.absolute(x)
        radial = xp.real(g * xp.conj(out)) * out
        return xp.where(size == 0, 0, (g - radial) / xp.where(size == 0, 1, size))


class Absolute(Elementwise):
    """|x|"""

    complex32 = True
    takes_float8 = True
    kernel_name = "abs_cpu"
    torch_name = "Abs"
    analytic = False
    kinds = "iufc"
    onnx = "Abs"
    lands = True
    notation = "|{}|"
    zeros = "kept"

    def forward(xp, x):    return xp.absolute(x)
    def grad_x(xp, g, x):  return g * xp.sgn(x)


class Copysign(Floating):
    """|a| with the sign of b"""

    kernel_name = "copysign_cpu"
    kinds = "f"

    def forward(xp, a, b):      return xp.copysign(a, b)
    def grad_a(xp, g, a, out):  return g * xp.where(a == 0, 0, out / a)
    def grad_b(xp, g):          return xp.zeros_like(g)


class Signbit(Elementwise):
    """True where the sign bit is set: x < 0, or −0."""

    native = False
    kinds = "biuf"
    zeros = "kept"

    def forward(xp, x): return xp.signbit(x) if x.dtype.kind in "if" else xp.zeros(x.shape, dtype=bool)


class Heaviside(Elementwise):
    """0 for a < 0, b for a = 0, 1 for a > 0"""

    native = False
    kinds = "biuf"
    onnx = "definition"

    def forward(xp, a, b): return xp.where(a == 0, b, a > 0)


class Nextafter(Elementwise):
    """The next number after a, towards b."""

    kernel_name = "nextafter_cpu"
    kinds = "f"

    def forward(xp, a, b):    return xp.nextafter(a, b)
    def grad_a(xp, g, a, b):  return xp.where(a == b, 0, g)
    def grad_b(xp, g):        return xp.zeros_like(g)


class NanToNum(Elementwise):
    """x with NaN and the infinities replaced by numbers"""

    kernel_name = "nan_to_num"
    zeros = "kept"

    def forward(xp, x, *, nan=0.0, posinf=None, neginf=None):
        return xp.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)

    def grad_x(xp, g, x):
        return xp.where(xp.isfinite(x), g, 0)


class Frexp(Op):
    """x = mantissa · 2^exponent, with 0.5 ≤ |mantissa| < 1"""

    outputs = ("mantissa", "exponent")
    kinds = "f"
    batch = "trailing"

    def forward(xp, x):           return xp.frexp(x)
    def grad_x(xp, g, exponent):  return g[0] * xp.exp2(-exponent)


# ── the greater, the less, and bounds ─────────────────────────────────────────────────────────────────────────────────


class Maximum(Elementwise):
    """max(a, b), NaN if either is; equal operands share the gradient"""

    kinds = "biuf"
    notation = "max"

    def forward(xp, a, b):    return xp.maximum(a, b)
    def grad_a(xp, g, a, b):  return xp.where(a < b, 0, xp.where(a == b, g * 0.5, g))
    def grad_b(xp, g, a, b):  return xp.where(a > b, 0, xp.where(a == b, g * 0.5, g))


class Minimum(Elementwise):
    """min(a, b), NaN if either is; equal operands share the gradient"""

    kinds = "biuf"
    notation = "min"

    def forward(xp, a, b):    return xp.minimum(a, b)
    def grad_a(xp, g, a, b):  return xp.where(a > b, 0, xp.where(a == b, g * 0.5, g))
    def grad_b(xp, g, a, b):  return xp.where(a < b, 0, xp.where(a == b, g * 0.5, g))


class Fmax(Elementwise):
    """max(a, b), or the one that is a number"""

    kinds = "biuf"

    def forward(xp, a, b):    return xp.fmax(a, b)
    def grad_a(xp, g, a, b):  return xp.where((a >= b) | (b != b), g, 0)
    def grad_b(xp, g, a, b):  return xp.where((a >= b) | (b != b), 0, g)


class Fmin(Elementwise):
    """min(a, b), or the one that is a number"""

    kinds = "biuf"

    def forward(xp, a, b):    return xp.fmin(a, b)
    def grad_a(xp, g, a, b):  return xp.where((a <= b) | (b != b), g, 0)
    def grad_b(xp, g, a, b):  return xp.where((a <= b) | (b != b), 0, g)


class Clamp(Elementwise):
    """min(max(x, lo), hi); a bound may be None"""

    kernel_name = "clamp_cpu"
    kinds = "iuf"
    native = False
    lands = True

    def overload(self):
        return int(not any(self.edges[1:]))

    def forward(xp, x, lo, hi):
        x = x if lo is None else xp.maximum(x, lo)
        return x if hi is None else xp.minimum(x, hi)

    def grad_x(xp, g, x, lo, hi):
        if lo is None or hi is None:
            return xp.where(x <= hi if lo is None else x >= lo, g, 0)
        return xp.where((x >= lo) & (x <= hi), g, 0)

    def grad_lo(xp, g, x, lo, hi):
        return xp.where(x < lo if hi is None else (x < lo) & (lo < hi), g, 0)

    def grad_hi(xp, g, x, lo, hi):
        return xp.where(x > hi if lo is None else (x > hi) | (lo > hi), g, 0)


class Where(Elementwise):
    """a where the condition holds, b elsewhere"""

    casts = None
    kinds = ANY
    onnx = "Where"

    def forward(xp, condition, a, b):  return xp.where(condition, a, b)
    def grad_a(xp, g, condition):      return xp.where(condition, g, 0)
    def grad_b(xp, g, condition):      return xp.where(condition, 0, g)


# ── complex numbers ───────────────────────────────────────────────────────────────────────────────────────────────────


class Real(Op):
    """The real part, in the same memory."""

    kinds = ANY
    torch_name = "Select"
    analytic = False
    view = "maybe"
    batch = "trailing"
    onnx = "Identity"
    notation = "Re"
    zeros = "additive"

    def forward(xp, x): return xp.real(x)
    def grad_x(xp, g):  return g


class Imag(Op):
    """The imaginary part, in the same memory."""

    kinds = ANY
    torch_name = "Select"
    analytic = False
    view = "maybe"
    batch = "trailing"
    notation = "Im"
    zeros = "additive"

    def forward(xp, x): return xp.imag(x)
    def grad_x(xp, g):  return g * 1j


class Conj(Elementwise):
    """The complex conjugate."""

    complex32 = True
    analytic = False
    onnx = "Identity"
    notation = "{}\u0304"
    zeros = "additive"

    def forward(xp, x): return xp.conj(x)
    def grad_x(xp, g):  return xp.conj(g)


class Angle(Floating):
    """The angle of x in the complex plane."""

    kernel_name = "angle_cpu"
    native = False
    analytic = False

    def forward(xp, x):
        return xp.angle(x) if x.dtype.kind == "c" else xp.where(x < 0, pi, xp.where(x != x, x, 0))

    def grad_x(xp, g, x):
        if not is_complex(x):
            return xp.zeros_like(g)
        size = xp.absolute(x)
        return xp.where(size == 0, 0, g * 1j * x / xp.square(xp.where(size == 0, 1, size)))


class MakeComplex(Op):
    """re + i·im"""

    torch_name = "Complex"
    analytic = False
    to_complex = True
    elementwise = True
    batch = "elementwise"
    kinds = "f"
    notation = "{} + i · {}"

    def forward(xp, re, im):  return xp.make_complex(re, im)
    def grad_re(xp, g):       return xp.real(g)
    def grad_im(xp, g):       return xp.imag(g)


class ViewAsReal(Op):
    """The parts along a new last axis, in the same memory"""

    analytic = False
    view = "maybe"
    kinds = "cV"
    batch = "trailing"

    def forward(xp, x): return xp.view_as_real(x)

    def grad_x(xp, g):
        re, im = (xp.get_item(g, index=(slice(None),) * (len(g.shape) - 1) + (i,)) for i in (0, 1))
        return xp.make_complex(re, im)


class ViewAsComplex(Op):
    """Pairs along the last axis as complex numbers, in the same memory"""

    analytic = False
    view = "maybe"
    kinds = "fV"
    batch = "trailing"

    def forward(xp, x): return xp.view_as_complex(x)
    def grad_x(xp, g):  return xp.view_as_real(g)


# ── copies ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Cast(Op):
    """x in another dtype. The engine casts the gradient back."""

    torch_name = "ToCopy"
    analytic = False
    kinds = ANY
    batch = "trailing"
    notation = "{}"

    def forward(xp, x, *, dtype): return xp.cast(x, dtype=dtype)
    def grad_x(xp, g):            return g


class Clone(Op):
    """A copy."""

    kinds = ANY
    linear = ("x",)
    notation = "{}"
    zeros = "additive"

    def batch(lot, kernel, x):
        return x.copy(order="K")

    def forward(xp, x): return xp.clone(x)
    def grad_x(xp, g):  return g
