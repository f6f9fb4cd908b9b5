"""Special functions as formulas over whole arrays: the error function, the gamma function and their kin.

Every function is `f(xp, x, ...)` for arrays of the namespace `xp`, in float32 or float64, and gives back the same dtype
(Python numbers are weak: coefficients never widen a result); float16 passes through float32. There are no masks, no
loops over elements and no branches on data: an argument is moved to where a branch is harmless *before* that is
evaluated, so that nothing overflows, divides by zero or warns, and `where` only picks.

A table is a pair, for float32 and for float64. Polynomials start with the highest power; a ratio is `(P, Q)` with the
leading 1 of `Q` left out. All are minimax fits made for this file with 50 digits: Remez exchange for polynomials,
Lawson's reweighted least squares for ratios. "Fitted to 6e-9, 2e-16" is the relative error of the two fits. "Accuracy"
is the largest relative error measured against 40 digits at thousands of points, in float32 and float64, where rounding
alone costs up to 6e-8 and 1.1e-16. Formula numbers are those of the NIST Digital Library of Mathematical Functions.
"""

from __future__ import annotations

import math
from functools import cache, wraps

INF, NAN, PI = math.inf, math.nan, math.pi


# The least x for which log(x) and 1/x are finite.
_SMALLEST = ((1.5e-45, 5e-324), (3e-39, 6e-309))


def _double(x):
    """Return True if x has more than single precision; as an index, 1 selects the second table of a pair."""
    return x.dtype.itemsize > 4


def _on_floats(formula):
    """The formula for all that comes: a number joins the dtype of the arrays (`where` would make it float64), integers,
    which gradients may hand on, count as float64, and float16, whose range is too small for the coefficients, is
    computed in float32 and rounded once."""

    @wraps(formula)
    def f(xp, *args, **params):
        dtype = args[0].dtype if len(args) == 1 else next(a.dtype for a in args if hasattr(a, "dtype"))
        if len(args) > 1:
            args = [a if hasattr(a, "dtype") else xp.full((), a, dtype=dtype) for a in args]
        if dtype.kind in "biu":
            return formula(xp, *(xp.cast(a, dtype="float64") for a in args), **params)
        if dtype.itemsize > 2:
            return formula(xp, *args, **params)
        y = formula(xp, *(xp.cast(a, dtype="float32") for a in args), **params)
        return xp.cast(xp.where(xp.absolute(y) < 65520, y, xp.where(y == y, xp.copysign(INF, y), y)), dtype=dtype)

    return f


def _poly(x, coefficients):
    """Horner's rule, highest power first."""
    y = coefficients[0]
    for c in coefficients[1:]:
        y = y * x + c
    return y


def _ratio(x, table):
    p, q = table
    y = x + q[0]
    for c in q[1:]:
        y = y * x + c
    return _poly(x, p) / y


def _either(condition, a, b):
    """`where` for finite a and b, several times as fast on an unpredictable condition: NumPy's `where` jumps."""
    return a * condition + b * ~condition


# ── the error function and the normal distribution ────────────────────────────────────────────

# atanh(erf x) / x in t = x², x <= 5.93, weighted by its effect on erf: fitted to 3e-9 and 2e-16.
# `erf` has the float32 ratio as a continued fraction, which takes fewer passes over the array than Horner's rule.
_ERF_RATIO = (
    (18.78790762630224, 3020.7836623291178, 101334.97086139277, 1784496.9811700685, 20993331.82468135,
     166786054.51303393, 954743051.2892135, 3390888300.9018016, 7849460745.198315),
    (614.6087428461841, 37691.452375479894, 773079.4251403807, 10968385.780865755, 94379121.8029824, 631412053.9929446,
     2371508341.7495975, 6956403462.679218),
)


@_on_floats
def erf(xp, x):
    """erf(x) = 2/√π ∫₀ˣ exp(-t²) dt as tanh(x R(x²)): odd, smooth and bounded by construction. Accuracy 3e-7, 5e-16."""
    if _double(x):
        x = xp.clamp(x, -6.0, 6.0)
        return xp.tanh(x * _ratio(x * x, _ERF_RATIO))
    x = xp.clamp(x, -4.25, 4.25)
    t = x * x
    rest = t + 64.1262663 - 137.215349 / (t + 4.70323977 + 37.5323798 / (t + 4.0820998))
    return xp.tanh(x * (1.12837917 + 5.57571407 * t / rest))


# (x + 5/2) erfcx(x) in s = (x - 5/2) / (x + 5/2), x >= 0: fitted to 6e-9 and 2e-16.
_ERFCX = (
    (-7.13235875e-05, 2.74852416e-05, 0.000662230345, -0.000414963231, -0.00479995417, 0.00838387943, 0.0283576059,
     -0.171249685, 0.45391441, -0.804651915, 1.05403182),
    (4.2505928418078145e-09, 6.430618172083057e-09, -3.430034995957366e-08, -7.456115984593428e-08,
     1.088915045393315e-07, 4.5543557539381044e-07, 2.3263106108192642e-08, -1.9698013928600664e-06,
     -2.351566118629835e-06, 6.758725882247992e-06, 1.82527990879945e-05, -1.953400201622612e-05,
     -0.00011260724042587638, 5.830825964055351e-05, 0.0007026941571524227, -0.0004392083361119459,
     -0.0048187855688959945, 0.008393044308262208, 0.028361550134462038, -0.17125114524627302, 0.4539141166480444,
     -0.8046518494391462, 1.0540318203057184),
)


def _scaled_erfc(xp, x):
    """exp(x²) erfc(x) for x >= 0, infinity included (the variable is that of Shepherd and Laframboise, 1981)."""
    r = 1.0 / (x + 2.5)
    return _poly(1.0 - 5.0 * r, _ERFCX[_double(x)]) * r


def _gauss(xp, x, scale):
    """exp(-scale x²), 0 <= x < 40, from a part of x with an exact square and a rest: rounding x² would cost x² eps."""
    grid = 2.0**20 if _double(x) else 2.0**8
    head = xp.floor(x * grid) * (1 / grid)
    return xp.exp(-scale * head * head) * xp.exp(-scale * (x - head) * (x + head))


@_on_floats
def erfc(xp, x):
    """1 - erf(x), with full relative accuracy for large x. Accuracy 6e-7, 8e-16."""
    a = xp.absolute(xp.clamp(x, -28.0, 28.0))
    sign = xp.sign(x)
    return (1.0 - sign) + sign * (_gauss(xp, a, 1.0) * _scaled_erfc(xp, a))


@_on_floats
def erfcx(xp, x):
    """exp(x²) erfc(x); for x < 0 it is 2 exp(x²) - erfcx(-x). Accuracy 7e-7, 2e-15."""
    top = 26.628 if _double(x) else 9.382
    a = xp.absolute(x)
    y = _scaled_erfc(xp, a)
    mirrored = 2.0 * _gauss(xp, xp.clamp(-x, 0.0, top), -1.0) - y
    return xp.where(x < 0, xp.where(x < -top, INF, mirrored), y)


@_on_floats
def ndtr(xp, x):
    """The normal distribution function Φ(x) = erfc(-x/√2) / 2. Accuracy 6e-7, 8e-16."""
    a = xp.absolute(xp.clamp(x, -39.0, 39.0))
    sign = xp.sign(x)
    tail = 0.5 * _gauss(xp, a, 0.5) * _scaled_erfc(xp, math.sqrt(0.5) * a)
    return (0.5 + 0.5 * sign) - sign * tail


@_on_floats
def log_ndtr(xp, x):
    """log Φ(x): below zero log(erfcx(-x/√2) / 2) - x²/2, above it log1p(-Φ(-x)). Accuracy 8e-7, 2e-15."""
    far = 1.89e154 if _double(x) else 2.6e19  # x²/2 overflows soon after
    a = xp.minimum(xp.absolute(x), far)
    half = 0.5 * _scaled_erfc(xp, math.sqrt(0.5) * a)
    below = xp.log(half) - a * (0.5 * a)
    above = xp.log1p(-half * _gauss(xp, xp.minimum(a, 39.0), 0.5))
    return xp.where(x < -far, -INF, _either(x < 0, below, above))


# erfinv(x) / x in w = -log(1 - x²), w <= 17.4 and w <= 37: fitted to 3e-8 and 2e-16.
_ERFINV = (
    ((19.20364, 537.637854, 6489.35147, 49740.6119, 255078.767, 731516.411),
     (145.066795, 1605.72561, 26588.0229, 71729.6406, 825427.857)),
    ((0.01777996407147433, 24.83059869936121, 3246.499038425455, 96292.9113412159, 3025353.344888762,
      64515288.79089701, 1124001364.348775, 16006590573.75863, 184137718070.56766, 1702733193213.1462,
      12628842210289.53, 73987637751372.02, 327170366690439.3, 1071089532980567.0, 1975138198322708.5),
     (357.6952500630363, 20463.508857395384, 511750.3461265076, 16407357.081967691, 258297403.52182254,
      4979528351.88125, 53174678115.76854, 658696108581.3442, 4753398129773.641, 35011814224345.766,
      176471219825995.38, 625121564161448.4, 2228704795121908.5)),
)
# -ndtri(p) / r in r = √(-2 log p), 5.5 <= r <= 15 and 8 <= r <= 39: fitted to 8e-10 and 4e-17.
_NDTRI_TAIL = (
    ((1.00015634, 12.6399714, 11.021135, -32.5236449),
     (12.6636193, 15.6809212, -2.61973533)),
    ((1.0000019194023717, 212.26626346715628, 11566.188777554167, 214280.80280012987, 1411963.5551205678,
      2712220.9794812654, -1456956.8412155015, -4794201.637250556),
     (212.2685267813411, 11573.389759586087, 215451.89438484824, 1462420.00124703, 3433449.2289781957,
      2005063.2923990837, -139713.25246533073)),
)


def _erfinv_ratio(xp, x, y):
    """erfinv(x) / x, given y = 1 - x²."""
    double = _double(x)
    return _ratio(-xp.log(xp.maximum(y, 1e-16 if double else 3e-8)), _ERFINV[double])


@_on_floats
def erfinv(xp, x):
    """The inverse of erf, x R(-log(1 - x²)): ±∞ at ±1, nan beyond. Accuracy 4e-7, 2e-15."""
    x = xp.clamp(x, -2.0, 2.0)
    y = (1.0 - x) * (1.0 + x)
    return xp.where(y > 0, x * _erfinv_ratio(xp, x, y), xp.where(y == 0, xp.copysign(INF, x), NAN))


@_on_floats
def ndtri(xp, p):
    """The normal quantile √2 erfinv(2p - 1); where 2p - 1 rounds to -1, a fit in √(-2 log p). Accuracy 5e-7, 1e-15."""
    double = _double(p)
    cut = 1e-16 if double else 5e-8
    x = xp.clamp(p, -1.0, 2.0)
    y = 4.0 * x * (1.0 - x)
    centre = (2.0 * x - 1.0) * (math.sqrt(2) * _erfinv_ratio(xp, x, y))
    r = xp.sqrt(-2.0 * xp.log(xp.where(y > 0, xp.minimum(x, cut), cut)))
    result = xp.where(p < cut, -r * _ratio(r, _NDTRI_TAIL[double]), centre)
    return xp.where(y > 0, result, xp.where(y == 0, xp.copysign(INF, x - 0.5), NAN))


# ── logarithms that vanish, and sinc ──────────────────────────────────────────────────────────


def _log(xp, x):
    """log with its limits -∞ at 0 and nan below, in silence."""
    return xp.where(x == 0, -INF, xp.where(x > 0, xp.log(xp.where(x > 0, x, 1.0)), NAN))


@_on_floats
def xlogy(xp, x, y):
    """x log(y), and 0 where x = 0 unless y is nan."""
    return x * xp.where((x == 0) & (y == y), 0.0, _log(xp, y))


@_on_floats
def xlog1py(xp, x, y):
    """x log(1 + y), and 0 where x = 0 unless y is nan."""
    log = xp.where(y == -1, -INF, xp.where(y > -1, xp.log1p(xp.where(y > -1, y, 0.0)), NAN))
    return x * xp.where((x == 0) & (y == y), 0.0, log)


@_on_floats
def entr(xp, x):
    """The entropy term -x log(x): 0 at 0 and -∞ below."""
    inside = (x > 0) & (x < (2.5e305 if _double(x) else 3.8e36))
    safe = xp.where(inside, x, 1.0)
    return xp.where(inside, -safe * xp.log(safe), xp.where(x == 0, 0.0, xp.where(x == x, -INF, x)))


@_on_floats
def logit(xp, x):
    """log(x / (1 - x)), as log1p((2x - 1) / (1 - x)) where it is near zero. Accuracy 3e-7, 3e-16."""
    inside = (x > 0) & (x < 1)
    p = xp.where(inside, x, 0.5)
    low, high = xp.minimum(p, 0.25), xp.maximum(p, 0.25)
    y = _either(p < 0.25, xp.log(low / (1.0 - low)), xp.log1p((2.0 * high - 1.0) / (1.0 - high)))
    return xp.where(inside, y, xp.where((x == 0) | (x == 1), xp.copysign(INF, x - 0.5), NAN))


# sin(πr) / r in r², r <= 1/2: fitted to 5e-9 and 3e-19.
_SIN_PI = (
    (0.0775604241, -0.598242145, 2.55006973, -5.16770968, 3.14159264),
    (7.694727909383125e-07, -2.1903185485707685e-05, 0.00046629968880351573, -0.007370430478770165,
     0.08214588656989374, -0.5992645293187383, 2.550164039877294, -5.167712780049969, 3.141592653589793),
)


def _fraction(xp, x):
    """x - floor(x) for x >= 0, which is exact; 0 for infinity."""
    x = xp.minimum(x, 2.0**53)
    return x - xp.floor(x)


def _sin_pi(xp, r):
    """sin(πr) for -1/2 <= r < 1."""
    r = xp.minimum(r, 1.0 - r)
    return r * _poly(r * r, _SIN_PI[_double(r)])


def _cot_pi(xp, r):
    """cot(πr) for 0 < r < 1, exact to rounding near its zero and its poles."""
    return _sin_pi(xp, 0.5 - r) / _sin_pi(xp, r)


@_on_floats
def sinc(xp, x):
    """sin(πx) / (πx), exactly 0 at the other integers and at infinity. Accuracy 3e-7, 4e-16."""
    a = xp.absolute(x)
    a = xp.where(a == 0, 1.0, xp.minimum(a, 2.0**54))
    period = a - 2.0 * xp.floor(0.5 * a)
    odd = period >= 1
    y = _sin_pi(xp, period - odd) / (PI * a)
    return xp.where(x == 0, 1.0, y - 2.0 * (y * odd))


# ── the gamma function and its derivatives ────────────────────────────────────────────────────

# lgamma(x) / ((x - 1)(x - 2)), 1 <= x <= 4: fitted to 1e-8 and 3e-17.
_LGAMMA = (
    ((-0.00104657078, 0.055186733, 2.06569303, 4.91840015, 1.38823374),
     (6.33953869, 6.48152264, 0.777411499)),
    ((-8.329429227211064e-05, 0.01440732761433924, 3.4749906939107, 71.28898148201291, 417.75731792994986,
      865.0817380522077, 647.7637986578088, 157.07842277281011, 8.020330117152465),
     (34.44503414002311, 322.00267270124306, 1095.6849495912577, 1459.6398690405713, 729.6960665171459,
      114.47058454803309, 3.3189656405881296)),
)
# x (lgamma(x) - (x - 1/2) log x + x - log(2π)/2) in 1/x², x >= 4, weighted by its effect: fitted to 9e-9 and 7e-17.
_STIRLING = (
    (-0.00270684762, 0.0833318011),
    (0.002523109883231226, -0.0016006246501455807, 0.0008263494024145049, -0.0005947984149544648,
     0.0007936437683695284, -0.0027777777221278366, 0.08333333333317479),
)
# digamma(x) / (x - x₀), 1 <= x <= 4: fitted to 6e-9 and 4e-17; its zero x₀ as the sum of two floats.
_DIGAMMA = (
    ((-0.00103200295, 0.0555679385, 3.02749505, 9.92073218, 4.48986048),
     (6.48965002, 6.49012016, 0.0100743617)),
    ((-7.607275791459937e-05, 0.013632832234370925, 4.539310476038519, 117.93373924991472, 930.9011072783278,
      2790.9345355477685, 3151.789268333123, 991.3712599713014),
     (38.1496814074302, 413.9050732362355, 1706.97565445396, 2778.9940174012004, 1449.019030428478,
      9.722280117771129e-05)),
)
_DIGAMMA_ZERO = ((1.46163213, 1.24381499e-08), (1.4616321449683622, 9.549995429965697e-17))
# x² (log x - 1/(2x) - digamma(x)) in 1/x², x >= 4, weighted by its effect: fitted to 3e-10 and 3e-17.
_DIGAMMA_ASYMPTOTIC = (
    (0.00351698136, -0.00831681361, 0.0833331509),
    (-0.10484205647792284, 0.05601246411556807, -0.019646848748603632, 0.007527316121715769, -0.004165674523996253,
     0.003968242340796732, -0.00833333326530303, 0.08333333333319148),
)


def _lgamma_low(xp, x, log_x):
    """log Γ(x) for 0 < x <= 4, via Γ(1 + x) = x Γ(x) below 1."""
    below = x < 1
    above = ~below
    y = x + below
    zeros = (x - above) * ((x - 1.0) - above)  # (y - 1)(y - 2), whose factors are exact
    return zeros * _ratio(y, _LGAMMA[_double(x)]) - log_x * below


def _stirling_rest(xp, x):
    """log Γ(x) - ((x - 1/2) log x - x + log(2π)/2) for x >= 4 (DLMF 5.11.1)."""
    r = 1.0 / x
    return r * _poly(r * r, _STIRLING[_double(x)])


def _lgamma_high(xp, x, log_x):
    return (x - 0.5) * (log_x - 1.0) + (0.5 * math.log(2 * PI) - 0.5 + _stirling_rest(xp, x))


@_on_floats
def lgamma(xp, x):
    """log |Γ(x)|, +∞ at the poles.

    Accuracy 5e-7, 7e-16 for x > 0. For x < 0, through Γ(x) Γ(1 - x) = π / sin(πx), it is 2e-6, 2e-15
    of the larger of 1 and the result, which has zeros there.
    """
    top = 2.5599e305 if _double(x) else 4.085e36  # overflow
    a = xp.absolute(x)
    r = _fraction(xp, a)
    negative = x < 0
    pole = (x <= 0) & (r == 0)
    y = xp.minimum(xp.where(pole, 1.0, a) + negative, top)
    log_y = xp.log(y)
    value = _either(y < 4, _lgamma_low(xp, xp.minimum(y, 4.0), log_y), _lgamma_high(xp, xp.maximum(y, 4.0), log_y))
    mirrored = math.log(PI) - xp.log(_sin_pi(xp, xp.where(negative & (r > 0), r, 0.5))) - value
    return xp.where(pole | (x > top), INF, _either(negative, mirrored, value))


@_on_floats
def digamma(xp, x):
    """ψ(x) = Γ'(x) / Γ(x): ∓∞ at ±0, nan at the other poles.

    Accuracy 4e-7, 7e-16 for x > 0. For x < 0, through ψ(x) = ψ(1 - x) - π cot(πx), it is 2e-6, 2e-15
    of the larger of 1 and the result, which has zeros there.
    """
    double = _double(x)
    tiny = _SMALLEST[1][double]
    a = xp.absolute(x)
    r = _fraction(xp, a)
    negative = x < 0
    pole = (x <= 0) & (r == 0)
    y = xp.maximum(a, tiny) + negative
    low, high = xp.minimum(y, 4.0), xp.maximum(y, 4.0)
    below = low < 1
    z = low + below
    head, rest = _DIGAMMA_ZERO[double]
    near = ((z - head) - rest) * _ratio(z, _DIGAMMA[double]) - below / low
    inverse = 1.0 / high
    far = xp.log(high) - inverse * (0.5 + inverse * _poly(inverse * inverse, _DIGAMMA_ASYMPTOTIC[double]))
    value = xp.where(y < 4, near, far)
    r = xp.where(negative & ~pole, xp.maximum(r, tiny), 0.25)
    value = xp.where(negative, value + PI * _cot_pi(xp, r), value)
    return xp.where(a < tiny, xp.copysign(INF, -x), xp.where(pole, NAN, value))


def multigammaln(xp, x, p):
    """log Γ_p(x) = p(p - 1)/4 log π + Σ log Γ(x - j/2), j < p (DLMF 35.3.4)."""
    total = lgamma(xp, x) + p * (p - 1) / 4 * math.log(PI)
    for j in range(1, p):
        total = total + lgamma(xp, x - j / 2)
    return total


# ── Hurwitz' zeta function and polygamma ──────────────────────────────────────────────────────

# B₂ⱼ / (2j)!
_BERNOULLI = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600,
    -3617 / 10670622842880000, 43867 / 5109094217170944000, -174611 / 802857662698291200000,
)


def _hurwitz(xp, s, q):
    """Σ 1 / (q + k)ˢ for s > 1, q > 0: the first terms one by one, the others by Euler and Maclaurin (DLMF 25.11.5)."""
    double = _double(q)
    terms, order, exponent = (10, 10, 709.0) if double else (6, 4, 88.0)
    q = xp.minimum(q, 1e300 if double else 1e38)
    safe = xp.minimum(s, 1e6) * xp.log(q) > -exponent
    total = xp.where(safe, xp.where(safe, q, 1.0) ** -s, INF)
    for k in range(1, terms):
        total = total + (q + k) ** -s
    w = q + terms
    r, t = 1.0 / w, xp.minimum(s, 2000.0)  # beyond, the correction underflows or does not matter
    rise = t * r
    correction = 0.5 + _BERNOULLI[0] * rise
    for j in range(1, order):
        rise = rise * ((t + (2 * j - 1)) * r) * ((t + 2 * j) * r)
        correction = correction + _BERNOULLI[j] * rise
    return total + w ** (1.0 - s) * (correction * r + 1.0 / (s - 1.0))


@_on_floats
def zeta(xp, s, q):
    """Hurwitz' ζ(s, q) = Σ 1 / (q + k)ˢ, k >= 0. Accuracy 6e-7, 2e-15 for q > 0.

    Infinite at s = 1 and at q = 0, -1, -2 ...; nan for s < 1, and for other q < 0 unless s is an integer. Then the sum
    is split by the sign of q + k: ζ(s, q) = ζ(s, f) + (-1)ˢ (ζ(s, 1 - f) - ζ(s, 1 - q)) with f = q - floor(q).
    """
    negative = q < 0
    rest = _fraction(xp, xp.absolute(q))  # 1 - f where q < 0
    valid = (s > 1) & ((q > 0) | (negative & (rest > 0) & (s == xp.floor(s))))
    power = xp.where(valid, s, 2.0)
    size = xp.where(valid, xp.absolute(q), 1.0)
    pole = (s == 1) | ((s > 1) & (q <= 0) & (rest == 0))
    rest = xp.where(negative & (rest > 0), rest, 0.5)
    value = _hurwitz(xp, power, xp.where(negative, 1.0 - rest, size))
    folded = _hurwitz(xp, power, rest) - _hurwitz(xp, power, 1.0 + size)
    odd = _fraction(xp, 0.5 * power) > 0
    value = xp.where(negative, value + xp.where(odd, -folded, folded), value)
    return xp.where(pole, INF, xp.where(valid, value, NAN))


@cache
def _cotangent_derivative(n):
    """dⁿ/dxⁿ cot(πx) over n! (-π)ⁿ as a polynomial in c = cot(πx): p₀ = c, k pₖ = (1 + c²) pₖ₋₁'."""
    p = [0.0, 1.0]  # lowest power first
    for k in range(1, n + 1):
        d = [i * c / k for i, c in enumerate(p)][1:]
        p = [a + b for a, b in zip([*d, 0.0, 0.0], [0.0, 0.0, *d])]
    return tuple(reversed(p))


def _inverse_power(x, n):
    """x⁻ⁿ for an int n > 0."""
    y = r = 1.0 / x
    if n > 8:
        return r ** float(n)
    for _ in range(n - 1):
        y = y * r
    return y


def _zeta_of_int(xp, s, q, largest):
    """ζ(s, q) for an int s > 1 and q > 0 as in `_hurwitz`; infinite where it exceeds `largest`."""
    terms, order = (10, 10) if _double(q) else (6, 4)
    least = largest ** (-1.0 / s)
    total = xp.where(q > least, _inverse_power(xp.maximum(q, least), s), INF)
    for k in range(1, terms):
        total = total + _inverse_power(q + k, s)
    rising = [b * math.prod(range(s, s + 2 * j + 1)) for j, b in enumerate(_BERNOULLI[:order])]
    r = 1.0 / (q + terms)
    tail = 1.0 / (s - 1) + r * (0.5 + r * _poly(r * r, rising[::-1]))
    return total + tail * _inverse_power(q + terms, s - 1)


def trigamma(xp, x):
    """The derivative of digamma: polygamma(1, x)."""
    return polygamma(xp, 1, x)


def polygamma(xp, n, x):
    """The n-th derivative of digamma, (-1)ⁿ⁺¹ n! ζ(n + 1, x) for x > 0; infinite at the poles.

    Accuracy 7e-7, 1e-15 for x > 0 (measured for n <= 5). For x < 0, through the n-th derivative of
    ψ(x) = ψ(1 - x) - π cot(πx), it is 1e-6, 2e-15 of the larger of 1 and the result.
    """
    return _polygamma(xp, x, n=n) if n else digamma(xp, x)


@_on_floats
def _polygamma(xp, x, *, n):
    double, even = _double(x), n % 2 == 0
    if n > 1 << 16:                 # n! is beyond any dtype
        return xp.full_like(x, float("nan"))
    a = xp.absolute(x)
    r = _fraction(xp, a)
    negative = x < 0
    pole = (x <= 0) & (r == 0)
    log_factorial = math.lgamma(n + 1.0)
    largest = math.exp((690.0 if double else 83.0) - log_factorial)
    series = _zeta_of_int(xp, n + 1, xp.where(pole, 1.0, a) + negative, largest)
    cot = -_cot_pi(xp, xp.where(negative & ~pole, xp.maximum(r, _SMALLEST[1][double]), 0.25))
    top = math.exp((690.0 if double else 83.0) / (n + 1)) / PI
    turn = PI ** (n + 1) * _poly(xp.clamp(cot, -top, top), _cotangent_derivative(n))
    value = xp.where(negative, -series - turn if even else turn - series, -series if even else series)
    y = xp.clamp(value, -largest, largest)
    for root in [math.exp(0.5 * log_factorial)] * 2 if n > 20 else [float(math.factorial(n))]:
        y = y * root
    y = xp.where(xp.absolute(value) > 0.99 * largest, xp.copysign(INF, value), y)
    return xp.where(pole, -INF if even else INF, y)


# ── the incomplete gamma functions ────────────────────────────────────────────────────────────

# The functions c₀, c₁ ... of η in Temme's expansion (DLMF 8.12.8), fitted on -0.345 <= η <= 0.285 to what is needed for
# a >= 20 and a >= 200.
_TEMME = (
    ((0.000386895194, 0.0011368035, -0.0148171171, 0.0833338264, -0.333333315),
     (0.00276097389, -0.00354349261, -0.0018545669), (-0.00272553719, 0.00417063338), (0.000649434156,)),
    ((1.0418671719209713e-09, -1.742475326194266e-07, 8.308345129283417e-07, -1.8542748620740326e-06,
      -2.185542662862681e-06, 3.919264059856366e-05, -0.00017875514062316714, 0.0003527336858950628,
      0.0011574074073566049, -0.014814814814813506, 0.08333333333333355, -0.3333333333333333),
     (-5.796634572572264e-08, -1.5835799560749384e-06, 7.659572032914618e-06, -1.810065112172103e-05,
      -4.0250089610691047e-07, 0.00020576138239116826, -0.0009902263234093924, 0.0026455026447500776,
      -0.0034722222223072903, -0.001851851851850375),
     (-4.822553576277942e-07, -1.2521846589472442e-05, 5.298803134267526e-05, -0.00010737986954257681,
      2.006901268957519e-06, 0.0007716051868878596, -0.0026813271365389783, 0.00413359788283466),
     (-7.33071272576649e-05, 0.00026763798473328714, -0.0004693036542793059, 0.0002294743113417261,
      0.0006494349829201934),
     (-0.00028977237341403325, 0.0007837356252186608, -0.0008620538506060383)),
)


@cache
def _gauss_legendre(n):
    """Nodes and weights for the integral over [0, 1], by Newton's method on the Legendre polynomial."""
    pairs = []
    for i in range(n):
        z = math.cos(PI * (i + 0.75) / (n + 0.5))
        for _ in range(6):
            p, q = 1.0, z
            for k in range(2, n + 1):
                p, q = q, ((2 * k - 1) * z * q - (k - 1) * p) / k
            slope = n * (z * q - p) / (z * z - 1.0)
            z -= q / slope
        pairs.append(((1.0 - z) / 2, 1.0 / ((1.0 - z * z) * slope * slope)))
    return pairs


def _log_rest(xp, mu, ratio):
    """mu - log(1 + mu), given ratio = 1 + mu too; for -1/2 < mu < 1 from log(1 + mu) = 2 artanh(mu / (2 + mu))."""
    mild = xp.clamp(mu, -0.5, 1.0)
    s = mild / (2.0 + mild)
    t = s * s
    terms = 16 if _double(mu) else 7
    series = mild * s - 2.0 * s * t * _poly(t, [1 / (2 * k + 3) for k in reversed(range(terms))])
    return xp.where(mild == mu, series, mu - xp.log(ratio))


def _gamma_quadrature(xp, a, x, upper):
    """Γ(a, x) where upper, else γ(a, x), over xᵃ exp(-x), where max(a, x) >= 1.

    With t = x (1 + w)² the integrals are 2 ∫ (1 + w)²ᵃ⁻¹ exp(-x w (2 + w)) dw over w > 0 or -1 < w < 0. They are cut
    where the integrand has fallen to exp(-depth) or less and left to Gauss and Legendre. γ is taken at a + steps, where
    it is smoother, and brought back by γ(a, x) = (γ(a + 1, x) + xᵃ exp(-x)) / a (DLMF 8.8.1).
    """
    nodes, depth, steps = (24, 38.0, 8) if _double(a) else (12, 18.0, 4)
    head, term, less = 0.0, 1.0, xp.minimum(x, a)
    for k in range(steps):
        term = term / (a + k)
        head = head + term
        term = term * less
    a, x = xp.where(upper, a, a + steps), xp.where(upper, xp.maximum(x, 1.0), x)
    size = xp.maximum(xp.maximum(a, x), 1.0)
    slope, level = xp.absolute(x - a) / size, depth / size
    cut = level / (slope + xp.sqrt(slope * slope + level * (x / size)))
    cut = xp.where(upper, cut, -xp.minimum(cut, 1.0))
    total, twice = 0.0, 2.0 * a
    for node, weight in _gauss_legendre(nodes):
        w = cut * node
        total = total + weight * xp.exp(twice * xp.log1p(w) - x * (w * (2.0 + w))) / (1.0 + w)
    total = total * (2.0 * cut)
    return xp.where(upper, total, head - term * total)


def _gamma_taylor(xp, a, x, upper):
    """Q where upper, else P, for a, x < 1, from the series of γ(a, x) (DLMF 8.7.1) without cancellation for small a."""
    a, x = xp.minimum(a, 1.0), xp.minimum(x, 1.0)
    total, power = 0.0, 1.0
    for k in range(1, 19 if _double(a) else 11):
        power = power * x * (-1 / k)
        total = total + power / (a + k)
    log_scale = a * xp.log(x) - a * (a - 1.0) * _ratio(1.0 + a, _LGAMMA[_double(a)])
    rest = xp.exp(log_scale) * a * total
    return xp.where(upper, -xp.expm1(log_scale) - rest, xp.exp(log_scale) + rest)


def _log_gamma_scale(xp, a):
    """log(aᵃ exp(-a) / Γ(a))"""
    low, high = xp.minimum(a, 4.0), xp.maximum(a, 4.0)
    log = xp.log(low)
    near = low * (log - 1.0) - _lgamma_low(xp, low, log)
    return xp.where(a < 4, near, 0.5 * xp.log(high / (2 * PI)) - _stirling_rest(xp, high))


def _gamma_tail(xp, a, x, upper):
    """Q(a, x) where upper (x >= a), else P(a, x): the one that is not near 1. 0 < a, x < 1e30."""
    double = _double(a)
    a = xp.maximum(a, 1e-290 if double else 1e-30)
    x = xp.minimum(x, 4.0 * a + 2000.0)  # Q is 0 long before
    mu = (x - a) / a
    h = _log_rest(xp, mu, xp.maximum(x / a, _SMALLEST[1][double]))
    decay = a * h
    quadrature = xp.exp(_log_gamma_scale(xp, a) - decay) * _gamma_quadrature(xp, a, x, upper)
    eta = xp.clamp(xp.copysign(xp.sqrt(2.0 * h), mu), -0.345, 0.285)
    series, inverse = 0.0, 1.0 / xp.maximum(a, 20.0)
    for c in reversed(_TEMME[double]):
        series = series * inverse + _poly(eta, c)
    series = series * xp.sqrt(inverse / (2 * PI))
    uniform = xp.exp(-decay) * (0.5 * _scaled_erfc(xp, xp.sqrt(decay)) + xp.where(upper, series, -series))
    tail = xp.where((a >= (200 if double else 20)) & (xp.absolute(mu) < 0.3), uniform, quadrature)
    return xp.where((a < 1) & (x < 1), _gamma_taylor(xp, a, x, upper), tail)


def _incomplete_gamma(xp, a, x, lower):
    inside = (a > 0) & (x > 0) & (a < 1e30) & (x < 1e30)
    upper = x >= a
    tail = _gamma_tail(xp, xp.where(inside, a, 1.0), xp.where(inside, x, 2.0), upper | ~inside)
    value = xp.where(upper, 1.0 - tail, tail) if lower else xp.where(upper, tail, 1.0 - tail)
    full = (a == 0) | upper  # outside P is a step at x = a
    step = xp.where(full, 1.0, 0.0 * tail) if lower else xp.where(full, 0.0 * tail, 1.0)
    undefined = ~((a >= 0) & (x >= 0)) | ((a == x) & ((a == 0) | (a == INF)))
    return xp.where(inside, value, xp.where(undefined, NAN, step))


@_on_floats
def igamma(xp, a, x):
    """The regularised lower incomplete gamma function P(a, x) = γ(a, x) / Γ(a).

    Accuracy 1e-5, 2e-14 where it is above 1e-30; farther out, the error of an exponent of that size.
    """
    return _incomplete_gamma(xp, a, x, True)


@_on_floats
def igammac(xp, a, x):
    """The regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x).

    Accuracy 4e-6, 2e-14 where it is above 1e-30; farther out, the error of an exponent of that size.
    """
    return _incomplete_gamma(xp, a, x, False)
