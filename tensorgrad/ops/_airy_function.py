"""Airy's function Ai as a formula over whole arrays, written as those in `_special_functions.py`.

With ζ = 2/3 |x|^(3/2), the tables are Chebyshev coefficients, lowest degree first, interpolated in 40 digits to double
precision: for x ≥ 2 of eᶻ x^(1/4) Ai(x) in 1/ζ; for −5 ≤ x ≤ 2 of Ai itself; for x ≤ −5 of the slowly changing factors
    of cos and sin in
Ai(x) = (f cos(ζ − π/4) + g sin(ζ − π/4)) / (√π |x|^(1/4)) in 1/ζ (DLMF 9.7).
"""
from __future__ import annotations

from math import pi, sqrt

LOW, HIGH = -5.0, 2.0

DECAY = (
    0.2776956095117059, -0.004172967562045923, 0.00020669586013998011, -1.7280997841068207e-05, 1.928052166797157e-06,
    -2.605774398776262e-07, 4.051516883512395e-08, -7.022240440986223e-09, 1.3286081997701028e-09,
    -2.703558037129289e-10, 5.852297782838998e-11, -1.3363584416519756e-11, 3.1978547149289153e-12,
    -7.976813559559603e-13, 2.0651347541109665e-13, -5.52899978215978e-14, 1.526165619010181e-14,
    -4.331979304955806e-15, 1.2616239319898747e-15, -3.7626070399357594e-16, 1.1471616156264618e-16,
    -3.570144365109208e-17, 1.1326462271400218e-17,
)
MIDDLE = (
    0.15168947628223672, -0.005228692408472365, -0.007183007563342123, -0.2750085825170078, 0.15267285652736612,
    0.11299722901833571, -0.12930163519980795, 0.021717950423082666, 0.024911850702736413, -0.01433585742189573,
    0.000696689451639598, 0.001974398933529019, -0.0007230393972252199, -1.6112414526177467e-05,
    8.133273673249939e-05, -2.0775365813975462e-05, -1.6054762687164758e-06, 2.0560158255601387e-06,
    -3.825520517284178e-07, -4.913870596184178e-08, 3.514168642051892e-08, -4.846385010860496e-09,
    -8.897812059422213e-10, 4.329786248648808e-10, -4.414745597439301e-11, -1.1096862995764342e-11,
    4.024832028797832e-12, -2.9609936249846454e-13, -1.0257635127287476e-13, 2.920579876829024e-14,
    -1.4619955511486232e-15, -7.35505053091767e-16, 1.6986548408182807e-16,
)
COSINE = (
    0.9997541229881233, -0.0003265982675007251, -7.981413648152953e-05, 1.017222243442064e-06, 1.0399553244035248e-07,
    -6.345336539621232e-09, -1.8372886389906092e-10, 5.2076899039877404e-11, -2.371394869982987e-12,
    -3.4056038047789317e-13, 6.671006052435995e-14, -2.8738167332319415e-15, -7.836814938587172e-16,
    1.7492629791170046e-16,
)
SINE = (
    0.004630924989192124, 0.00461732811229969, -1.6157259215371876e-05, -2.4899097470110906e-06, 7.58525978466523e-08,
    4.81309770244552e-09, -5.685833379370605e-10, 3.3522334901936132e-12, 4.58059303274358e-12,
    -4.513051502103502e-13, -1.1422485920420535e-14, 8.25811025404406e-15, -9.189414960121667e-16,
    -2.6983573735339896e-17, 2.4956338117494666e-17, -3.7683593116707946e-18,
)


def chebyshev(t, coefficients):
    """Σ cₖ Tₖ(t) by Clenshaw's recurrence."""
    after = here = 0.0 * t
    for c in reversed(coefficients[1:]):
        after, here = here, 2.0 * t * here - after + c
    return t * here - after + coefficients[0]


def airy_ai(xp, x):
    """Ai(x), the solution of y″ = x·y that vanishes at infinity, computed in double precision.

    Accuracy 4e-14, of the envelope where it waves.
    """
    dtype, x = x.dtype, xp.cast(x, dtype="float64")
    middle = chebyshev((xp.clamp(x, LOW, HIGH) - (LOW + HIGH) / 2) * (2 / (HIGH - LOW)), MIDDLE)

    right = xp.maximum(x, HIGH)
    zeta = right * xp.sqrt(right) * (2 / 3)
    decay = chebyshev(2 * (HIGH * sqrt(HIGH) * 2 / 3) / zeta - 1, DECAY)
    decay = decay * xp.exp(-zeta) / xp.sqrt(xp.sqrt(right))

    left = xp.maximum(-x, -LOW)
    zeta = left * xp.sqrt(left) * (2 / 3)
    t, angle = 2 * (-LOW * sqrt(-LOW) * 2 / 3) / zeta - 1, zeta - pi / 4
    waves = chebyshev(t, COSINE) * xp.cos(angle) + chebyshev(t, SINE) * xp.sin(angle)
    waves = waves / (sqrt(pi) * xp.sqrt(xp.sqrt(left)))
    return xp.cast(xp.where(x > HIGH, decay, xp.where(x < LOW, waves, middle)), dtype=dtype)
