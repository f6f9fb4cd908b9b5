"""Exponentials, logarithms, trigonometric and hyperbolic functions."""
from __future__ import annotations

from math import log, nan, pi

from . import _special_functions as special
from .base import Floating
from .elementwise import is_complex

LN2, LN10 = log(2), log(10)


# ── exponentials and logarithms ───────────────────────────────────────────────────────────────────────────────────────


class Exp(Floating):
    """eˣ"""

    kernel_name = "exp_vml_cpu"
    onnx = "Exp"
    lands = True

    def forward(xp, x):      return xp.exp(x)
    def grad_x(xp, g, out):  return xp.multiply(g, out)


class Exp2(Floating):
    """2ˣ"""

    kernel_name = "exp2"
    native = False
    notation = "2 ^ {}"

    def forward(xp, x):      return xp.exp2(x) if x.dtype.kind == "f" else xp.exp(x * LN2)
    def grad_x(xp, g, out):  return g * (out * LN2)


class Expm1(Floating):
    """eˣ − 1, exact near 0"""

    kernel_name = "expm1_vml_cpu"
    notation = "exp({}) − 1"
    zeros = "kept"

    def forward(xp, x):      return xp.expm1(x)
    def grad_x(xp, g, out):  return g * (out + 1)


class Log(Floating):
    """ln x"""

    kernel_name = "log_vml_cpu"
    onnx = "Log"

    def forward(xp, x):    return xp.log(x)
    def grad_x(xp, g, x):  return xp.divide(g, x)


class Log2(Floating):
    """log₂ x"""

    kernel_name = "log2_vml_cpu"

    def forward(xp, x):    return xp.log2(x)
    def grad_x(xp, g, x):  return g / (x * LN2)


class Log10(Floating):
    """log₁₀ x"""

    kernel_name = "log10_vml_cpu"

    def forward(xp, x):    return xp.log10(x)
    def grad_x(xp, g, x):  return g / (x * LN10)


class Log1p(Floating):
    """ln(1 + x), exact near 0"""

    kernel_name = "log1p_vml_cpu"
    torch_name = "Log1P"
    notation = "log(1 + {})"
    zeros = "kept"

    def forward(xp, x):    return xp.log1p(x)
    def grad_x(xp, g, x):  return g / (x + 1)


class Logaddexp(Floating):
    """ln(eᵃ + eᵇ)"""

    kernel_name = "logaddexp_cpu"
    native = False

    def forward(xp, a, b):    return xp.logaddexp(a, b) if a.dtype.kind == "f" else complex_logaddexp(xp, a, b)
    def grad_a(xp, g, a, b):  return g / (xp.exp(b - a) + 1)
    def grad_b(xp, g, a, b):  return g / (xp.exp(a - b) + 1)


def complex_logaddexp(xp, a, b):
    """Return log(exp(a) + exp(b)) of complex numbers, from the one with the greater real part."""
    ahead = xp.real(a) >= xp.real(b)
    first, second = xp.where(ahead, a, b), xp.where(ahead, b, a)
    even = xp.isinf(xp.real(first)) & (xp.real(first) == xp.real(second))
    return first + xp.log1p(xp.exp(xp.where(even, 0, second - first)))


class Logaddexp2(Floating):
    """log₂(2ᵃ + 2ᵇ)"""

    kernel_name = "logaddexp2_cpu"
    kinds = "f"

    def forward(xp, a, b):    return xp.logaddexp2(a, b)
    def grad_a(xp, g, a, b):  return g / (xp.exp2(b - a) + 1)
    def grad_b(xp, g, a, b):  return g / (xp.exp2(a - b) + 1)


class Xlogy(Floating):
    """a·ln b, 0 where a = 0"""

    native = False
    kinds = "f"

    def forward(xp, a, b):
        return special.xlogy(xp, a, b)

    def grad_a(xp, g, a, b):
        dead = (a == 0) & (b <= 0)
        return xp.where(dead, 0, g * xp.log(xp.where(dead, 1, b)))

    def grad_b(xp, g, a, b):
        return g * a / b


class Sigmoid(Floating):
    """1 / (1 + e⁻ˣ)"""

    kernel_name = "sigmoid_cpu"
    native = False
    onnx = "Sigmoid"
    lands = True
    notation = "σ"

    def forward(xp, x):      return 1 / (xp.exp(-x) + 1)
    def grad_x(xp, g, out):  return xp.sigmoid_gradient(g, out)


class SigmoidGradient(Floating):
    """g y (1 − y), for y = σ(x)"""

    torch_name = "SigmoidBackward"
    native = False
    onnx = "definition"

    def forward(xp, slope, y):      return slope * (y * (1 - y))
    def grad_slope(xp, g, y):       return xp.sigmoid_gradient(g, y)
    def grad_y(xp, g, slope, y):    return g * (slope * (1 - y * 2))


class Logit(Floating):
    """ln(x / (1 − x)), x first brought into [eps, 1 − eps]"""

    kernel_name = "logit_cpu"
    native = False
    kinds = "f"
    onnx = "definition"

    def forward(xp, x, *, eps=None):
        if eps is not None:
            inner = xp.minimum(x, 1 - eps)
            x = xp.maximum(inner, eps) if eps <= 0.5 else xp.where(x < eps, eps, xp.where(x > 1 - eps, 1 - eps, x))
        return special.logit(xp, x)

    def grad_x(xp, g, x, eps=None):
        lo, hi = (0, 1) if eps is None else (eps, 1 - eps)
        inside = (x >= lo) & (x <= hi)
        y = xp.where(inside, x, 0.5)
        return xp.where(inside, g / (y * (1 - y)), float("nan") if eps is None else 0)


# ── angles ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Sin(Floating):
    """sin x"""

    kernel_name = "sin_vml_cpu"
    onnx = "Sin"
    zeros = "kept"

    def forward(xp, x):    return xp.sin(x)
    def grad_x(xp, g, x):  return g * xp.cos(x)


class Cos(Floating):
    """cos x"""

    kernel_name = "cos_vml_cpu"
    onnx = "Cos"

    def forward(xp, x):    return xp.cos(x)
    def grad_x(xp, g, x):  return -g * xp.sin(x)


class Tan(Floating):
    """tan x"""

    kernel_name = "tan_vml_cpu"
    onnx = "Tan"
    zeros = "kept"

    def forward(xp, x):      return xp.tan(x)
    def grad_x(xp, g, out):  return g * (out * out + 1)


class Arcsin(Floating):
    """sin⁻¹ x"""

    kernel_name = "asin_vml_cpu"
    torch_name = "Asin"
    onnx = "Asin"
    zeros = "kept"

    def forward(xp, x):    return xp.arcsin(x)
    def grad_x(xp, g, x):  return g / xp.sqrt(1 - x * x)


class Arccos(Floating):
    """cos⁻¹ x"""

    kernel_name = "acos_vml_cpu"
    torch_name = "Acos"
    onnx = "Acos"

    def forward(xp, x):    return xp.arccos(x)
    def grad_x(xp, g, x):  return -g / xp.sqrt(1 - x * x)


class Arctan(Floating):
    """tan⁻¹ x"""

    kernel_name = "atan_vml_cpu"
    torch_name = "Atan"
    onnx = "Atan"
    zeros = "kept"

    def forward(xp, x):    return xp.arctan(x)
    def grad_x(xp, g, x):  return g / (x * x + 1)


class Arctan2(Floating):
    """The angle of the point (b, a); its gradient at the origin is zero"""

    kernel_name = "atan2_cpu"
    torch_name = "Atan2"
    kinds = "f"

    def forward(xp, a, b):    return xp.arctan2(a, b)
    def grad_a(xp, g, a, b):  return g * over_square(xp, b, a, b)
    def grad_b(xp, g, a, b):  return -g * over_square(xp, a, a, b)


def over_square(xp, x, a, b):
    """x / (a² + b²), 0 at the origin"""
    square = a * a + b * b
    return xp.where(square == 0, 0, x / square)


class Sinc(Floating):
    """sin(πx) / (πx), 1 at 0, NaN at infinity, where the sine has no value"""

    kernel_name = "sinc_cpu"
    native = False
    onnx = "definition"

    def forward(xp, x):
        return xp.where(xp.isinf(x), nan, special.sinc(xp, x)) if x.dtype.kind == "f" else xp.sinc(x)

    def grad_x(xp, g, x):
        y, below = x * pi, x * x * pi
        return g * xp.where(below == 0, 0, (y * xp.cos(y) - xp.sin(y)) / below)


class Deg2rad(Floating):
    """x·π / 180"""

    kernel_name = "deg2rad_cpu"
    torch_name = "Deg2Rad"
    kinds = "f"
    zeros = "kept"

    def forward(xp, x):  return xp.deg2rad(x)
    def grad_x(xp, g):   return g * (pi / 180)


class Rad2deg(Floating):
    """x·180 / π"""

    kernel_name = "rad2deg_cpu"
    torch_name = "Rad2Deg"
    kinds = "f"
    zeros = "kept"

    def forward(xp, x):  return xp.rad2deg(x)
    def grad_x(xp, g):   return g * (180 / pi)


# ── hyperbolic functions ──────────────────────────────────────────────────────────────────────────────────────────────


class Sinh(Floating):
    """sinh x"""

    kernel_name = "sinh_cpu"
    onnx = "Sinh"
    zeros = "kept"

    def forward(xp, x):    return xp.sinh(x)
    def grad_x(xp, g, x):  return g * xp.cosh(x)


class Cosh(Floating):
    """cosh x"""

    kernel_name = "cosh_cpu"
    onnx = "Cosh"

    def forward(xp, x):    return xp.cosh(x)
    def grad_x(xp, g, x):  return g * xp.sinh(x)


class Tanh(Floating):
    """tanh x"""

    kernel_name = "tanh_vml_cpu"
    onnx = "Tanh"
    lands = True
    zeros = "kept"

    def forward(xp, x):      return xp.tanh(x)
    def grad_x(xp, g, out):  return xp.tanh_gradient(g, out)


class TanhGradient(Floating):
    """g (1 − y²), for y = tanh x"""

    torch_name = "TanhBackward"
    native = False
    onnx = "definition"
    zeros = "kept"

    def forward(xp, slope, y):      return slope * (1 - y * y)
    def grad_slope(xp, g, y):       return xp.tanh_gradient(g, y)
    def grad_y(xp, g, slope, y):    return g * (slope * y * -2)


class Arcsinh(Floating):
    """sinh⁻¹ x"""

    kernel_name = "asinh_cpu"
    torch_name = "Asinh"
    onnx = "Asinh"
    zeros = "kept"

    def forward(xp, x):    return xp.arcsinh(x)
    def grad_x(xp, g, x):  return g / xp.sqrt(x * x + 1)


class Arccosh(Floating):
    """cosh⁻¹ x"""

    kernel_name = "acosh_cpu"
    torch_name = "Acosh"
    onnx = "Acosh"

    def forward(xp, x):    return xp.arccosh(x)
    def grad_x(xp, g, x):  return g / (xp.sqrt(x - 1) * xp.sqrt(x + 1)) if is_complex(x) else g * xp.rsqrt(x * x - 1)


class Arctanh(Floating):
    """tanh⁻¹ x"""

    kernel_name = "atanh_cpu"
    torch_name = "Atanh"
    onnx = "Atanh"
    zeros = "kept"

    def forward(xp, x):    return xp.arctanh(x)
    def grad_x(xp, g, x):  return g / (1 - x * x)
