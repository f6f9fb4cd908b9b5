"""Random numbers as functions of their distribution's parameters: implicit reparameterization.

A number x with the distribution function F(x; α) moves with α such that F stays: dx/dα = −(∂F/∂α) / (∂F/∂x). The
derivatives here are the approximations that PyTorch uses, each near its own region of (x, α) and good to about three
digits, so that gradients are PyTorch's.
"""
from __future__ import annotations

from .base import Elementwise


class Drawn(Elementwise):
    """Functions of random numbers and the parameters of their distributions, all of one shape and dtype."""

    __slots__ = ()
    native = False
    casts = None
    row_major = True


class StandardGamma(Drawn):
    """`sample`, drawn from Γ(α, 1), as a function of α"""

    def forward(xp, alpha, sample):              return xp.clone(sample)
    def grad_alpha(xp, g, alpha, sample):        return g * xp.standard_gamma_grad(alpha, sample)


class StandardGammaGrad(Drawn):
    """dx/dα of a number x from Γ(α, 1)"""

    def forward(xp, alpha, x):
        a, y = (xp.cast(v, dtype="float64") for v in (alpha, x))
        many = xp.where(xp.absolute(y / a - 1) <= 0.1, gamma_near_mean(xp, a, y), gamma_saddle_point(xp, a, y))
        return xp.cast(xp.where(y < 0.8, gamma_series(xp, a, y), xp.where(a > 8, many, gamma_fit(xp, a, y))),
                       dtype=x.dtype)

    def grad_alpha(xp, g):    raise NotImplementedError("the derivative for '_standard_gamma_grad' is not implemented.")
    def grad_x(xp, g):        raise NotImplementedError("the derivative for '_standard_gamma_grad' is not implemented.")


class DirichletGrad(Drawn):
    """dx/dα / (1 − x) of a number x from Beta(α, β), where total = α + β"""

    def forward(xp, x, alpha, total):
        y, a, t = (xp.cast(v, dtype="float64") for v in (x, alpha, total))
        b, spread = t - a, t * y * (1 - y)
        rest = xp.where((a > 6) & (b > 6), beta_saddle_point(xp, y, a, b), beta_fit(xp, y, a, b))
        rest = xp.where((y >= 0.5) & (spread < 0.75), -beta_series_other(xp, 1 - y, b, a), rest)
        return xp.cast(xp.where((y <= 0.5) & (spread < 2.5), beta_series(xp, y, a, b), rest), dtype=x.dtype)


# ── gamma ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def gamma_series(xp, a, x):
    """For small x: six terms of the power series of the incomplete gamma function."""
    term, cdf, slope = 1.0, 1 / a, 1 / a**2
    for i in range(1, 6):
        term = term * -x / i
        cdf, slope = cdf + term / (a + i), slope + term / (a + i)**2
    power = xp.power(x, a)
    moved = (xp.log(x) - xp.digamma(a)) * (power * cdf) - power * slope
    return or_zero(xp, -moved / (xp.power(x, a - 1) * xp.exp(-x)))


def gamma_near_mean(xp, a, x):
    """The saddle point expansion for large α where it has a removable singularity: x ≈ α."""
    cubic = 1440 * a**2 + 6 * x * (53 - 120 * x) - 65 * x**2 / a + a * (107 + 3600 * x)
    return (1 + 24 * a * (1 + 12 * a)) * cubic / (1244160 * a**4)


def gamma_saddle_point(xp, a, x):
    """Rice's saddle point expansion, for large α."""
    ratio, width = xp.log(x / a), xp.sqrt(8 * a)
    tail = xp.power(x - a - a * ratio, -1.5)
    inner = ratio * (width / (a - x) + xp.where(x < a, -tail, tail)) - xp.sqrt(2 / a) * (a + x) / (a - x)**2
    return -(1 + (1 + 1 / (24 * a)) / (12 * a)) * x * inner / width


def gamma_fit(xp, a, x):
    """exp(p/q) for polynomials of u = ln(x/α), to degree 2, and v = ln α, to degree 3."""
    u, v = xp.log(x / a), xp.log(a)
    p, q = (polynomial(v, [polynomial(u, c) for c in rows]) for rows in GAMMA_FIT)
    return xp.exp(p / q)


GAMMA_FIT = (((0.16009398, 0.53487893, 0.040121004), (-0.094634809, 0.1298071, -0.0065914022),
              (0.025146376, 0.065735949, -0.0026286047), (-0.0030648343, -0.0015649758, -0.0013441777)),
             ((1.0, 0.16639465, 0.017050642), (0.32668115, 0.020070113, -0.0021309326),
              (0.10406089, -0.0035938915, 0.00085092367), (0.0014179084, -0.00058392623, -1.5247877e-07)))


# ── beta ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def beta_series(xp, x, a, b):
    """For x near 0: a power series in x."""
    factor = xp.digamma(a) - xp.digamma(a + b) - xp.log(x)
    term, series = 1.0, (factor + 1 / a) / a
    for i in range(1, 11):
        term = term * (i - b) * x / i
        series = series + term / (a + i) * (factor + 1 / (a + i))
    return or_zero(xp, x * xp.power(1 - x, -b) * series)


def beta_series_other(xp, x, a, b):
    """For x near 0, the derivative by the other parameter, β."""
    factor = xp.digamma(a + b) - xp.digamma(b)
    term, product, slope, series = 1.0, 1.0, 0.0, factor / a
    for i in range(1, 9):
        term = term * -x / i
        slope = slope * (b - i) + product
        product = product * (b - i)
        series = series + term / (a + i) * (slope + factor * product)
    return or_zero(xp, -xp.power(1 - x, 1 - b) * series)


def beta_saddle_point(xp, x, a, b):
    """Rice's saddle point expansion, for large α and β, and its limit near the mean."""
    total = a + b
    mean, std = a / total, xp.sqrt(a * b / (total + 1)) / total
    away = a * (x - 1) + b * x                                   # total·(x − mean)
    first = (2 * a**2 * (x - 1) + a * b * (x - 1) - x * b**2) / (xp.sqrt(2 * a / b) * xp.power(total, 1.5) * away**2)
    tail = xp.power(b * xp.log(b / (total * (1 - x))) + a * xp.log(a / (total * x)), -1.5)
    second = xp.sqrt(8 * a * b / total) / away + xp.where(x < mean, tail, -tail)
    shape = stirling(a) * stirling(b) / stirling(total)
    far = shape * -x / xp.sqrt(2 * a * b / total) * (first + 0.5 * xp.log(a / (total * x)) * second)
    return xp.where(xp.absolute(x - mean) <= 0.1 * std, beta_near_mean(x, a, b), far)


def stirling(n):
    return 1 + 1 / (12 * n) + 1 / (288 * n * n)


def beta_near_mean(x, a, b):
    rows = (47 * x * b**4, (43 + 20 * (16 + 27 * b) * x) * b**3, 3 * (59 + 180 * b - 90 * x) * b**2,
            (453 + 1620 * b * (1 - x) - 455 * x) * b, 8 * (1 - x) * (135 * b - 11))
    total = a + b
    scale = (1 + 12 * a) * (1 + 12 * b) / total**2 / (12960 * a**3 * b**2 * (1 + 12 * total))
    return scale / (1 - x) * polynomial(a, rows)


def beta_fit(xp, x, a, b):
    """x·(ψ(α + β) − ψ(α)) / β, which is near, times p/q for polynomials of u = ln x, v = ln α − u and w = ln(α + β) −
    v.
    """
    u, total = xp.log(x), a + b
    v = xp.log(a) - u
    w = xp.log(total) - v
    p, q = (polynomial(u, [polynomial(v, [polynomial(w, c) for c in rows]) for rows in table]) for table in BETA_FIT)
    return p / q * (x * (xp.digamma(total) - xp.digamma(a)) / b)


BETA_FIT = ((((1.003668233, -0.01061107488, -0.0657888334, 0.01201642863),
              (0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033),
              (-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013)),
             ((0.221950385, -0.3187676331, 0.01799915743, 0.01074823814),
              (-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057),
              (0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05)),
             ((-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565),
              (0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181),
              (0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05))),
            (((1.0, -0.02924021934, -0.04438342661, 0.007285809825),
              (0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521),
              (-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149)),
             ((0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273),
              (0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956),
              (-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05)),
             ((0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05),
              (0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05),
              (-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06))))


def polynomial(x, coefficients):
    """Horner's rule, lowest power first."""
    y = coefficients[-1]
    for c in coefficients[-2::-1]:
        y = y * x + c
    return y


def or_zero(xp, x):
    return xp.where(x == x, x, 0)
