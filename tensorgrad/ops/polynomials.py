"""Orthogonal polynomials pₙ(x), each by its recurrence from p₀ = 1 and p₁; n differs from element to element."""
from __future__ import annotations

from .base import Floating


class Polynomial(Floating):
    """pₙ(x); 0 for negative n"""

    __slots__ = ()
    native = False
    kinds = "f"
    host = True          # the greatest n says how long the recurrence runs


def recurrence(xp, x, n, first, following):
    """pₙ(x) for every element, from p₁ and `following(k, pₖ, pₖ₋₁)` = pₖ₊₁."""
    n = xp.trunc(xp.zeros_like(x) + n)
    n = xp.where(xp.absolute(n) < 2.0**63, n, -1)       # NaN and what no integer holds count as negative
    before, here = xp.ones_like(x), first
    out = xp.where(n == 0, before, xp.where(n == 1, here, 0))
    for k in range(1, int(xp.max(n)) if n.size else 1):
        before, here = here, following(k, here, before)
        out = xp.where(n == k + 1, here, out)
        if not k % 1024 and not xp.any(here == here):      # NaN from here on, however long that is
            return xp.where(n > k, here, out)
    return out


def chebyshev(xp, x, n, first):
    """All four kinds: pₖ₊₁ = 2x·pₖ − pₖ₋₁"""
    return recurrence(xp, x, n, first, lambda k, here, before: 2 * x * here - before)


class ChebyshevPolynomialT(Polynomial):
    """Tₙ(cos t) = cos nt"""

    def forward(xp, x, n): return chebyshev(xp, x, n, x)


class ChebyshevPolynomialU(Polynomial):
    """Uₙ(cos t) = sin (n + 1)t / sin t"""

    def forward(xp, x, n): return chebyshev(xp, x, n, 2 * x)


class ChebyshevPolynomialV(Polynomial):
    """Vₙ(cos t) = cos (n + ½)t / cos ½t"""

    def forward(xp, x, n): return chebyshev(xp, x, n, 2 * x - 1)


class ChebyshevPolynomialW(Polynomial):
    """Wₙ(cos t) = sin (n + ½)t / sin ½t"""

    def forward(xp, x, n): return chebyshev(xp, x, n, 2 * x + 1)


class ShiftedChebyshevPolynomialT(Polynomial):
    """Tₙ(2x − 1)"""

    def forward(xp, x, n): return chebyshev(xp, 2 * x - 1, n, 2 * x - 1)


class ShiftedChebyshevPolynomialU(Polynomial):
    """Uₙ(2x − 1)"""

    def forward(xp, x, n): return chebyshev(xp, 2 * x - 1, n, 4 * x - 2)


class ShiftedChebyshevPolynomialV(Polynomial):
    """Vₙ(2x − 1)"""

    def forward(xp, x, n): return chebyshev(xp, 2 * x - 1, n, 4 * x - 3)


class ShiftedChebyshevPolynomialW(Polynomial):
    """Wₙ(2x − 1)"""

    def forward(xp, x, n): return chebyshev(xp, 2 * x - 1, n, 4 * x - 1)


class HermitePolynomialH(Polynomial):
    """Hₙ(x), orthogonal under exp(−x²)"""

    def forward(xp, x, n):
        return recurrence(xp, x, n, 2 * x, lambda k, here, before: 2 * (x * here - k * before))


class HermitePolynomialHe(Polynomial):
    """Heₙ(x), orthogonal under exp(−x²/2)"""

    def forward(xp, x, n):
        return recurrence(xp, x, n, x, lambda k, here, before: x * here - k * before)


class LaguerrePolynomialL(Polynomial):
    """Lₙ(x), orthogonal under exp(−x) for x > 0"""

    def forward(xp, x, n):
        return recurrence(xp, x, n, 1 - x, lambda k, here, before: ((2 * k + 1 - x) * here - k * before) / (k + 1))


class LegendrePolynomialP(Polynomial):
    """Pₙ(x), orthogonal on [−1, 1]"""

    def forward(xp, x, n):
        return recurrence(xp, x, n, x, lambda k, here, before: ((2 * k + 1) * x * here - k * before) / (k + 1))
