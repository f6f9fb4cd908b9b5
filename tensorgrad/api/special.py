"""Special functions: those of the root package, and those of `torch.special`.

https://pytorch.org/docs/stable/special.html
"""
from __future__ import annotations

import re
from collections.abc import Callable
from math import log, pi
from typing import Any

from .._tensor import Tensor
from ..core.dispatch import SCALAR_TYPES, xp
from ..storage.out_of_memory import check_room
from . import math, pointwise, reduction
from ._arguments import check_long, check_tensor, floating, integer
from ._kinds import Number
from ._register import FUNCTIONS, _with_out, public

SPECIAL: dict[str, Callable[..., Any]] = {}     # the names of `torch.special`


def special(function: Any) -> Any:
    """A name of `torch.special` alone."""
    SPECIAL[function.__name__] = found = _with_out(function)
    return found


# ── functions of one tensor: names in the root and in special, op, formula, an example, its result ────────────────────

PLAIN_FUNCTIONS = """
erf              erf              erf                        2/√π ∫₀ˣ exp(−t²) dt                         [0., 1.]    [0.0000, 0.8427]
erfc             erfc             erfc                       1 − erf x                                    [0., 1.]    [1.0000, 0.1573]
erfinv           erfinv           erfinv                     the inverse of erf                           [0., 0.5]   [0.0000, 0.4769]
digamma          digamma,psi      digamma                    the derivative of ln Γ(x)                    [1., 0.5]   [-0.5772, -1.9635]
lgamma           gammaln          lgamma                     ln |Γ(x)|                                    [0.5, 4.]   [0.5724, 1.7918]
i0               i0               i0                         the modified Bessel function I₀              [0., 1.]    [1.0000, 1.2661]
-                airy_ai          airy_ai                    Airy's function Ai                           [0., 1.]    [0.3550, 0.1353]
-                bessel_j0        bessel_j0                  the Bessel function J₀                       [0., 1.]    [1.0000, 0.7652]
-                bessel_j1        bessel_j1                  the Bessel function J₁                       [0., 1.]    [0.0000, 0.4401]
-                bessel_y0        bessel_y0                  the Bessel function of the second kind Y₀    [1., 2.]    [0.0883, 0.5104]
-                bessel_y1        bessel_y1                  the Bessel function of the second kind Y₁    [1., 2.]    [-0.7812, -0.1070]
-                entr             entr                       −x·ln x, 0 at 0, −∞ below                    [0., 0.5]   [0.0000, 0.3466]
-                erfcx            erfcx                      exp(x²)·erfc x                               [0., 1.]    [1.0000, 0.4276]
-                i0e              i0e                        e⁻|ˣ|·I₀(x)                                  [0., 1.]    [1.0000, 0.4658]
-                i1               i1                         the modified Bessel function I₁              [0., 1.]    [0.0000, 0.5652]
-                i1e              i1e                        e⁻|ˣ|·I₁(x)                                  [0., 1.]    [0.0000, 0.2079]
-                log_ndtr         log_ndtr                   ln Φ(x)                                      [0., 1.]    [-0.6931, -0.1728]
-                modified_bessel_i0         i0                         the modified Bessel function I₀    [0., 1.]    [1.0000, 1.2661]
-                modified_bessel_i1         i1                         the modified Bessel function I₁    [0., 1.]    [0.0000, 0.5652]
-                modified_bessel_k0         modified_bessel_k0         the modified Bessel function K₀    [1., 2.]    [0.4210, 0.1139]
-                modified_bessel_k1         modified_bessel_k1         the modified Bessel function K₁    [1., 2.]    [0.6019, 0.1399]
-                scaled_modified_bessel_k0  scaled_modified_bessel_k0  eˣ·K₀(x)                           [1., 2.]    [1.1445, 0.8416]
-                scaled_modified_bessel_k1  scaled_modified_bessel_k1  eˣ·K₁(x)                           [1., 2.]    [1.6362, 1.0335]
-                ndtr             ndtr                       Φ(x), the normal distribution function       [0., 1.]    [0.5000, 0.8413]
-                ndtri            ndtri                      the inverse of Φ                             [0.5, 0.9]  [0.0000, 1.2816]
-                spherical_bessel_j0        spherical_bessel_j0        sin x / x                          [0., 1.]    [1.0000, 0.8415]
"""  # noqa: E501


def _plain(root: str, names: list[str], op: str, maths: str, example: str, result: str) -> None:
    def function(input: Tensor) -> Tensor:
        return getattr(xp, op)(input)
    function.__name__ = function.__qualname__ = name = names[0] if root == "-" else root
    function.__code__ = function.__code__.replace(co_name=name)
    shown = f"special.{name}" if root == "-" else name
    function.__doc__ = (f"{maths}, element by element. https://pytorch.org/docs → torch.{shown}\n\n>>> import "
                        f"tensorgrad as torch\n>>> torch.{shown}(torch.tensor({example}))\ntensor({result})\n")
    found = special(function) if root == "-" else public(inplace=True, out=True)(function)
    SPECIAL.pop(name, None)
    SPECIAL.update(dict.fromkeys(names, found))
    globals()[name] = found


for _row in PLAIN_FUNCTIONS.strip().splitlines():
    _root, _names, _op, _maths, _example, _result = re.split(r"\s{2,}", _row)
    _plain(_root, _names.split(","), _op, _maths, _example, _result)


# ── the gamma function's kin ──────────────────────────────────────────────────────────────────────────────────────────


@public(method=False, out=True)
def polygamma(n: int, input: Tensor) -> Tensor:
    """The n-th derivative of digamma. https://pytorch.org/docs → torch.special.polygamma

    >>> import tensorgrad as torch
    >>> torch.polygamma(1, torch.tensor([1., 0.5]))
    tensor([1.6449, 4.9348])
    """
    check_long(n := integer(n, "n"))
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return xp.polygamma(input, n=n)


@public(name="polygamma", function=False, inplace=True)
def _polygamma_method(input: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma. https://pytorch.org/docs → torch.special.polygamma"""
    return polygamma(n, input)


@public(inplace=True, out=True)
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """p(p − 1)/4·ln π + Σ ln Γ(input − j/2) for j < p: the multivariate ln Γ.

    https://pytorch.org/docs → torch.special.multigammaln

    >>> import tensorgrad as torch
    >>> torch.mvlgamma(torch.tensor([2., 3.]), 2)
    tensor([0.4516, 1.5502])
    """
    check_long(p := integer(p, "p"))
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if input.array.dtype.kind == "b":
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    input = floating(input)
    check_room((*input.array.shape, p), input.array.itemsize, "mvlgamma")
    halves = xp.multiply(xp.arange(p, dtype=input.dtype), 0.5)
    terms = xp.lgamma(xp.subtract(xp.expand_dims(input, -1), halves))
    return xp.add(xp.sum(terms, axis=(-1,), keepdims=False), p * (p - 1) / 4 * log(pi))


def _check_gamma(input: Any, other: Any, name: str) -> None:
    check_tensor(other, name, "other", 2)
    if input.array.dtype.kind in "biu" and other.array.dtype.kind in "biu":
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{SCALAR_TYPES[input.dtype.name]}'")


@public(inplace=True, out=True)
def igamma(input: Tensor, other: Tensor) -> Tensor:
    """P(a, x) = ∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt / Γ(a) for a = input, x = other. https://pytorch.org/docs → torch.special.gammainc

    >>> import tensorgrad as torch
    >>> torch.igamma(torch.tensor([1.]), torch.tensor([1.]))
    tensor([0.6321])
    """
    _check_gamma(input, other, "igamma")
    return xp.igamma(input, other)


@public(inplace=True, out=True)
def igammac(input: Tensor, other: Tensor) -> Tensor:
    """Q(a, x) = 1 − P(a, x). https://pytorch.org/docs → torch.special.gammaincc

    >>> import tensorgrad as torch
    >>> torch.igammac(torch.tensor([1.]), torch.tensor([1.]))
    tensor([0.3679])
    """
    _check_gamma(input, other, "igammac")
    return xp.igammac(input, other)


@special
def zeta(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Hurwitz' ζ(s, q) = Σ 1 / (q + k)ˢ for k ≥ 0, s = input and q = other.

    https://pytorch.org/docs → torch.special.zeta

    >>> import tensorgrad as torch
    >>> torch.special.zeta(2., torch.tensor([1., 2.]))
    tensor([1.6449, 0.6449])
    """
    return xp.zeta(input, other)


@special
def xlog1py(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """input·ln(1 + other), 0 where input is 0. https://pytorch.org/docs → torch.special.xlog1py

    >>> import tensorgrad as torch
    >>> torch.special.xlog1py(torch.tensor([0., 2.]), torch.tensor([-1., 0.]))
    tensor([0., 0.])
    """
    return xp.xlog1py(input, other)


# ── orthogonal polynomials ────────────────────────────────────────────────────────────────────────────────────────────

POLYNOMIALS = """
chebyshev_polynomial_t          Tₙ(cos t) = cos nt                         26.
chebyshev_polynomial_u          Uₙ(cos t) = sin (n + 1)t / sin t           56.
chebyshev_polynomial_v          Vₙ(cos t) = cos (n + ½)t / cos ½t          41.
chebyshev_polynomial_w          Wₙ(cos t) = sin (n + ½)t / sin ½t          71.
shifted_chebyshev_polynomial_t  Tₙ(2x − 1)                                 99.
shifted_chebyshev_polynomial_u  Uₙ(2x − 1)                                 204.
shifted_chebyshev_polynomial_v  Vₙ(2x − 1)                                 169.
shifted_chebyshev_polynomial_w  Wₙ(2x − 1)                                 239.
hermite_polynomial_h            Hₙ(x), orthogonal under exp(−x²)           40.
hermite_polynomial_he           Heₙ(x), orthogonal under exp(−x²/2)        2.
laguerre_polynomial_l           Lₙ(x), orthogonal under exp(−x) for x > 0  -0.3333
legendre_polynomial_p           Pₙ(x), orthogonal on [−1, 1]               17.
"""


def _polynomial(name: str, maths: str, result: str) -> None:
    def function(input: Tensor | Number, n: Tensor | Number) -> Tensor:
        if isinstance(n, complex) or isinstance(input, complex):
            raise NotImplementedError(f"\"{name}_cpu\" not implemented for 'ComplexFloat'")
        if not isinstance(input, Tensor):
            input = n.new_tensor(input, dtype=floating(n).dtype)
        elif not isinstance(n, Tensor):
            n = input.new_tensor(n, dtype=floating(input).dtype)
        return getattr(xp, name)(input, n)
    function.__name__ = function.__qualname__ = name
    function.__code__ = function.__code__.replace(co_name=name)
    function.__doc__ = (f"{maths}; 0 for negative n. https://pytorch.org/docs → torch.special.{name}\n\n>>> import "
                        f"tensorgrad as torch\n>>> torch.special.{name}(torch.tensor([2.]), 3)\ntensor([{result}])\n")
    globals()[name] = special(function)


for _row in POLYNOMIALS.strip().splitlines():
    _polynomial(*re.split(r"\s{2,}", _row))


# ── names of special for functions of the root package ────────────────────────────────────────────────────────────────

SPECIAL |= {name: FUNCTIONS[name] for name in ("exp2", "expm1", "log1p", "sinc")}
SPECIAL |= {"expit": FUNCTIONS["sigmoid"], "gammainc": igamma, "gammaincc": igammac, "logit": pointwise.logit,
            "logsumexp": reduction.logsumexp, "multigammaln": mvlgamma, "polygamma": polygamma,
            "round": pointwise.round, "xlogy": math.xlogy}
