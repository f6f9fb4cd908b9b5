"""Special functions and their derivatives. `_special_functions.py` and `_bessel_functions.py` compute them."""
from __future__ import annotations

from math import nan, pi, sqrt

from . import _airy_function as airy
from . import _bessel_functions as bessel
from . import _special_functions as special
from .base import Floating

ROOT_PI = sqrt(pi)


class Special(Floating):
    """Functions of the reals."""

    __slots__ = ()
    native = False
    kinds = "f"


# ── the normal distribution ───────────────────────────────────────────────────────────────────────────────────────────


class Erf(Special):
    """2/√π ∫₀ˣ exp(−t²) dt"""

    kernel_name = "erf_vml_cpu"
    onnx = "Erf"
    zeros = "kept"

    def forward(xp, x):    return special.erf(xp, x)
    def grad_x(xp, g, x):  return g * (2 / ROOT_PI * xp.exp(-(x * x)))


class Erfc(Special):
    """1 − erf x"""

    kernel_name = "erfc_vml_cpu"

    def forward(xp, x):    return special.erfc(xp, x)
    def grad_x(xp, g, x):  return -g * (2 / ROOT_PI * xp.exp(-(x * x)))


class Erfcx(Special):
    """exp(x²)·erfc x"""

    torch_name = "SpecialErfcx"

    def forward(xp, x):         return special.erfcx(xp, x)
    def grad_x(xp, g, x, out):  return g * (2 * x * out - 2 / ROOT_PI)


class Erfinv(Special):
    """The inverse of erf"""

    kernel_name = "erfinv_vml_cpu"
    zeros = "kept"

    def forward(xp, x):      return special.erfinv(xp, x)

    def grad_x(xp, g, x):
        y = xp.erfinv(x)        # not the result, whose rounding to 16 bits would be seen
        return g * (ROOT_PI / 2 * xp.exp(y * y))


class Ndtr(Special):
    """Φ(x) = (1 + erf(x/√2)) / 2"""

    torch_name = "SpecialNdtr"
    onnx = "definition"

    def forward(xp, x):    return special.ndtr(xp, x)
    def grad_x(xp, g, x):  return g * (xp.exp(x * x * -0.5) / sqrt(2 * pi))


class LogNdtr(Special):
    """ln Φ(x)"""

    torch_name = "SpecialLogNdtr"

    def forward(xp, x):    return special.log_ndtr(xp, x)
    def grad_x(xp, g, x):  return g * normal_hazard(xp, x)


def normal_hazard(xp, x):
    """Φ′(x) / Φ(x), where neither overflows"""
    low, high = xp.where(x > 0, 0, x), xp.where(x > 0, x, 0)
    return xp.where(x > 0, xp.exp(high * high * -0.5) / (sqrt(2 * pi) * xp.ndtr(high)),
                    sqrt(2 / pi) / xp.erfcx(low * -sqrt(0.5)))


class Ndtri(Special):
    """The inverse of Φ"""

    torch_name = "SpecialNdtri"

    def forward(xp, x):      return special.ndtri(xp, x)
    def grad_x(xp, g, out):  return g * (sqrt(2 * pi) * xp.exp(out * out * 0.5))


# ── logarithms ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Entr(Special):
    """−x·ln x"""

    torch_name = "SpecialEntr"
    onnx = "definition"

    def forward(xp, x):    return special.entr(xp, x)
    def grad_x(xp, g, x):  return -g * (xp.log(x) + 1)


class Xlog1py(Special):
    """a·ln(1 + b), 0 where a = 0"""

    torch_name = "SpecialXlog1Py"
    onnx = "definition"

    def forward(xp, a, b):
        return special.xlog1py(xp, a, b)

    def grad_a(xp, g, a, b):
        dead = (a == 0) & (b <= -1)
        return xp.where(dead, 0, g * xp.log1p(xp.where(dead, 0, b)))

    def grad_b(xp, g, a, b):
        return g * a / (b + 1)


# ── the gamma function ────────────────────────────────────────────────────────────────────────────────────────────────


class Lgamma(Special):
    """ln |Γ(x)|"""

    kernel_name = "lgamma_vml_cpu"

    def forward(xp, x):    return special.lgamma(xp, x)
    def grad_x(xp, g, x):  return g * xp.digamma(x)


class Digamma(Special):
    """ψ(x) = Γ′(x) / Γ(x)"""

    kernel_name = "digamma"

    def forward(xp, x):    return special.digamma(xp, x)
    def grad_x(xp, g, x):  return g * xp.polygamma(x, n=1)


class Polygamma(Special):
    """The n-th derivative of ψ"""

    kernel_name = "polygamma"

    def forward(xp, x, *, n):  return special.polygamma(xp, n, x) if n else special.digamma(xp, x)
    def grad_x(xp, g, x, n):   return g * xp.polygamma(x, n=n + 1)


class Zeta(Special):
    """ζ(s, q) = Σ 1 / (q + k)ˢ for k ≥ 0"""

    torch_name = "SpecialZeta"

    def forward(xp, s, q):    return special.zeta(xp, s, q)
    def grad_q(xp, g, s, q):  return g * (-s * xp.zeta(s + 1, q))


class Igamma(Special):
    """P(a, x) = ∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt / Γ(a)"""

    def forward(xp, a, x):    return special.igamma(xp, a, x)
    def grad_a(xp, g):        raise NotImplementedError("the derivative for 'igamma: input' is not implemented.")
    def grad_x(xp, g, a, x):  return g * gamma_density(xp, a, x)


class Igammac(Special):
    """Q(a, x) = 1 − P(a, x)"""

    def forward(xp, a, x):    return special.igammac(xp, a, x)
    def grad_a(xp, g):        raise NotImplementedError("the derivative for 'igammac: input' is not implemented.")
    def grad_x(xp, g, a, x):  return -g * gamma_density(xp, a, x)


def gamma_density(xp, a, x):
    return xp.exp((a - 1) * xp.log(x) - x - xp.lgamma(a))


# ── Bessel functions ──────────────────────────────────────────────────────────────────────────────────────────────────


class I0(Special):
    """I₀(x)"""

    kernel_name = "i0_vml_cpu"
    opname = "i0"

    def forward(xp, x):    return xp.where(xp.isinf(x), nan, bessel.i0(xp, x))
    def grad_x(xp, g, x):  return g * xp.i1(x)


class I0e(Special):
    """e⁻|ˣ|·I₀(x)"""

    opname = "i0e"
    torch_name = "SpecialI0E"

    def forward(xp, x):         return bessel.i0e(xp, x)
    def grad_x(xp, g, x, out):  return g * (xp.i1e(x) - xp.sign(x) * out)


class I1(Special):
    """I₁(x)"""

    opname = "i1"
    torch_name = "SpecialI1"

    def forward(xp, x):         return xp.where(xp.isinf(x), nan, bessel.i1(xp, x))
    def grad_x(xp, g, x, out):  return g * xp.where(x == x, xp.i0(x) - over(xp, out, x), 0.5)


class I1e(Special):
    """e⁻|ˣ|·I₁(x)"""

    opname = "i1e"
    torch_name = "SpecialI1E"

    def forward(xp, x):         return bessel.i1e(xp, x)
    def grad_x(xp, g, x, out):  return g * (xp.i0e(x) - xp.sign(x) * out - over(xp, out, x))


def over(xp, y, x):
    """y / x for an odd function y of slope ½ at 0"""
    tiny = xp.absolute(x) < 1e-9
    return xp.where(tiny, 0.5, y / xp.where(tiny, 1, x))


class ModifiedBesselK0(Special):
    """K₀(x)"""

    opname = "modified_bessel_k0"
    torch_name = "SpecialModifiedBesselK0"

    def forward(xp, x):    return bessel.modified_bessel_k0(xp, x)
    def grad_x(xp, g, x):  return -g * xp.modified_bessel_k1(x)


class ModifiedBesselK1(Special):
    """K₁(x)"""

    opname = "modified_bessel_k1"
    torch_name = "SpecialModifiedBesselK1"

    def forward(xp, x):         return bessel.modified_bessel_k1(xp, x)
    def grad_x(xp, g, x, out):  return -g * (xp.modified_bessel_k0(x) + out / x)


class ScaledModifiedBesselK0(Special):
    """eˣ·K₀(x)"""

    opname = "scaled_modified_bessel_k0"
    torch_name = "SpecialScaledModifiedBesselK0"

    def forward(xp, x):         return bessel.scaled_modified_bessel_k0(xp, x)
    def grad_x(xp, g, x, out):  return g * (out - xp.scaled_modified_bessel_k1(x))


class ScaledModifiedBesselK1(Special):
    """eˣ·K₁(x)"""

    opname = "scaled_modified_bessel_k1"
    torch_name = "SpecialScaledModifiedBesselK1"

    def forward(xp, x):         return bessel.scaled_modified_bessel_k1(xp, x)
    def grad_x(xp, g, x, out):  return g * (out - xp.scaled_modified_bessel_k0(x) - out / x)


class BesselJ0(Special):
    """J₀(x)"""

    opname = "bessel_j0"
    torch_name = "SpecialBesselJ0"

    def forward(xp, x):    return bessel.bessel_j0(xp, x)
    def grad_x(xp, g, x):  return -g * xp.bessel_j1(x)


class BesselJ1(Special):
    """J₁(x)"""

    opname = "bessel_j1"
    torch_name = "SpecialBesselJ1"

    def forward(xp, x):         return bessel.bessel_j1(xp, x)
    def grad_x(xp, g, x, out):  return g * (xp.bessel_j0(x) - over(xp, out, x))


class BesselY0(Special):
    """Y₀(x)"""

    opname = "bessel_y0"
    torch_name = "SpecialBesselY0"

    def forward(xp, x):    return bessel.bessel_y0(xp, x)
    def grad_x(xp, g, x):  return -g * xp.bessel_y1(x)


class BesselY1(Special):
    """Y₁(x)"""

    opname = "bessel_y1"
    torch_name = "SpecialBesselY1"

    def forward(xp, x):         return bessel.bessel_y1(xp, x)
    def grad_x(xp, g, x, out):  return g * (xp.bessel_y0(x) - out / x)


class SphericalBesselJ0(Special):
    """sin x / x, 1 at 0"""

    opname = "spherical_bessel_j0"
    torch_name = "SpecialSphericalBesselJ0"

    def forward(xp, x):
        y = xp.where(x == 0, 1, x)
        return xp.where(x == 0, 1, xp.where(xp.isinf(x), 0, xp.sin(y) / y))

    def grad_x(xp, g, x, out):
        y = xp.where(x == 0, 1, x)
        return xp.where(x == 0, 0, g * ((xp.cos(y) - out) / y))


class AiryAi(Special):
    """Ai(x)"""

    torch_name = "SpecialAiryAi"

    def forward(xp, x): return airy.airy_ai(xp, x)
