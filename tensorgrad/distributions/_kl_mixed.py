"""KL(p ‖ q) of distributions of two families: mostly −entropy(p) − E[ln q(x)]."""
from __future__ import annotations

from math import inf, log, pi, sqrt
from typing import TYPE_CHECKING, Any

from .. import api as tg
from ._kl_same import instead
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .continuous_bernoulli import ContinuousBernoulli
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import Gumbel
from .kl import register_kl
from .laplace import Laplace
from .normal import Normal
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform
from .utils import euler_constant

if TYPE_CHECKING:
    from .._tensor import Tensor

# q has probability 0 for values that p may give
INFINITE = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}


def infinite(p: Any, q: Any) -> Any:
    return tg.full_like(p.mean, inf)


for _p, _others in INFINITE.items():
    for _q in _others:
        register_kl(_p, _q)(infinite)


def x_log_x(x: Tensor) -> Any:
    return tg.xlogy(x, x)


def gamma_normalizer(q: Any) -> Any:
    """ln Γ(a) − a·ln rate"""
    return q.concentration.lgamma() - q.concentration * q.rate.log()


# ── from numbers of [0, 1] ────────────────────────────────────────────────────────────────────────────────────────────


@register_kl(Bernoulli, Poisson)
def kl_bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def kl_beta_continuous_bernoulli(p: Any, q: Any) -> Any:
    return -p.entropy() - p.mean * q.logits - tg.log1p(-q.probs) - q._cont_bern_log_norm()


@register_kl(Beta, Exponential)
def kl_beta_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def kl_beta_gamma(p: Any, q: Any) -> Any:
    a, total = p.concentration1, p.concentration1 + p.concentration0
    mean_log = a.digamma() - total.digamma()
    return -p.entropy() + gamma_normalizer(q) - (q.concentration - 1) * mean_log + q.rate * a / total


@register_kl(Beta, Normal)
def kl_beta_normal(p: Any, q: Any) -> Any:
    mean, variance = p.mean, q.scale.pow(2)
    second = mean * (1 - mean) / (p.concentration1 + p.concentration0 + 1) + mean.pow(2)
    return (-p.entropy() + 0.5 * (variance * 2 * pi).log() + (second * 0.5 - q.loc * mean + q.loc.pow(2) * 0.5)
            / variance)


@register_kl(Beta, Uniform)
def kl_beta_uniform(p: Any, q: Any) -> Any:
    return instead(-p.entropy() + (q.high - q.low).log(), (q.low > 0) | (q.high < 1), inf)


@register_kl(ContinuousBernoulli, Exponential)
def kl_continuous_bernoulli_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - tg.log(q.rate) + q.rate * p.mean


@register_kl(ContinuousBernoulli, Normal)
def kl_continuous_bernoulli_normal(p: Any, q: Any) -> Any:
    mean = p.mean
    normalizer = 0.5 * (log(2 * pi) + tg.square(q.loc / q.scale)) + tg.log(q.scale)
    return -p.entropy() + normalizer + (p.variance + tg.square(mean) - 2 * q.loc * mean) / (2 * tg.square(q.scale))


@register_kl(ContinuousBernoulli, Uniform)
def kl_continuous_bernoulli_uniform(p: Any, q: Any) -> Any:
    return instead(-p.entropy() + (q.high - q.low).log(), (q.low >= 0) | (q.high <= 1), inf)


# ── from numbers above 0 ──────────────────────────────────────────────────────────────────────────────────────────────


@register_kl(Exponential, Gamma)
def kl_exponential_gamma(p: Any, q: Any) -> Any:
    ratio, a = q.rate / p.rate, q.concentration
    return -a * tg.log(ratio) + ratio + a.lgamma() + a * euler_constant - (1 + euler_constant)


@register_kl(Exponential, Gumbel)
def kl_exponential_gumbel(p: Any, q: Any) -> Any:
    product, ratio = p.rate * q.scale, q.loc / q.scale
    return product.log() - 1 - ratio + tg.exp(ratio) * product / (product + 1) + product.reciprocal()


@register_kl(Exponential, Normal)
def kl_exponential_normal(p: Any, q: Any) -> Any:
    variance, square = q.scale.pow(2), p.rate.pow(2)
    return (0.5 * tg.log(square * variance * 2 * pi) - 1 + (square.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5)
            / variance)


@register_kl(Gamma, Exponential)
def kl_gamma_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def kl_gamma_gumbel(p: Any, q: Any) -> Any:
    a, product, ratio = p.concentration, p.rate * q.scale, q.loc / q.scale
    return ((a - 1) * a.digamma() - a.lgamma() - a + (product.log() + a / product)
            + (tg.exp(ratio) * (1 + product.reciprocal()).pow(-a) - ratio))


@register_kl(Gamma, Normal)
def kl_gamma_normal(p: Any, q: Any) -> Any:
    a, variance, square = p.concentration, q.scale.pow(2), p.rate.pow(2)
    normalizer = 0.5 * tg.log(square * variance * 2 * pi) - a - a.lgamma()
    return normalizer + (a - 1) * a.digamma() + (0.5 * (a.pow(2) + a) / square - q.loc * a / p.rate + 0.5
                                                 * q.loc.pow(2)) / variance


@register_kl(Pareto, Exponential)
def kl_pareto_exponential(p: Any, q: Any) -> Any:
    product = p.scale * q.rate
    kl = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    return instead(kl, p.alpha <= 1, inf)


@register_kl(Pareto, Gamma)
def kl_pareto_gamma(p: Any, q: Any) -> Any:
    mean_log = p.scale.log() + p.alpha.reciprocal()
    kl = ((p.alpha.log() - mean_log) + gamma_normalizer(q) + (1 - q.concentration) * mean_log
          + q.rate * p.alpha * p.scale / (p.alpha - 1) - 1)
    return instead(kl, p.alpha <= 1, inf)


@register_kl(Pareto, Normal)
def kl_pareto_normal(p: Any, q: Any) -> Any:
    part = p.scale / (p.alpha - 1)
    spread = p.alpha * part.pow(2) / (p.alpha - 2) + (p.alpha * part - q.loc).pow(2)
    kl = (sqrt(2 * pi) * q.scale * p.alpha / p.scale).log() - p.alpha.reciprocal() + spread / (2 * q.scale.pow(2)) - 1
    return instead(kl, p.alpha <= 2, inf)


# ── from all numbers ──────────────────────────────────────────────────────────────────────────────────────────────────


@register_kl(Gumbel, Normal)
def kl_gumbel_normal(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    distance = ((p.loc + p.scale * euler_constant - q.loc) / q.scale).pow(2) * 0.5
    return -(ratio / sqrt(2 * pi)).log() + (pi * ratio * 0.5).pow(2) / 3 + distance - (euler_constant + 1)


@register_kl(Laplace, Normal)
def kl_laplace_normal(p: Any, q: Any) -> Any:
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    distance = (0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)) / variance
    return -0.5 * tg.log(2 * ratio / pi) + ratio + distance - 1


@register_kl(Normal, Gumbel)
def kl_normal_gumbel(p: Any, q: Any) -> Any:
    ours, theirs, square = p.loc / q.scale, q.loc / q.scale, (p.scale / q.scale).pow(2)
    return -0.5 * square.log() + (ours - theirs) + tg.exp(-ours + 0.5 * square + theirs) - 0.5 * (1 + log(2 * pi))


@register_kl(Normal, Laplace)
def kl_normal_laplace(p: Any, q: Any) -> Any:
    distance = p.loc - q.loc
    scaled = distance / p.scale
    mean_distance = sqrt(2 / pi) * p.scale * tg.exp(-0.5 * scaled.pow(2)) + distance * tg.erf(sqrt(0.5) * scaled)
    return -tg.log(p.scale / q.scale) + mean_distance / q.scale - 0.5 * (1 + log(0.5 * pi))


# ── from numbers of an interval ───────────────────────────────────────────────────────────────────────────────────────


def mean_log(high: Any, low: Any) -> Any:
    """E[ln x]"""
    width = high - low
    return (x_log_x(high) - x_log_x(low) - width) / width


@register_kl(Uniform, Beta)
def kl_uniform_beta(p: Any, q: Any) -> Any:
    width = p.high - p.low
    log_rest = (x_log_x(1 - p.high) - x_log_x(1 - p.low) + width) / width
    a, b = q.concentration1, q.concentration0
    kl = ((b - 1) * log_rest + (a.lgamma() + b.lgamma() - (a + b).lgamma()) - tg.log(width) - (a - 1)
          * mean_log(p.high, p.low))
    return instead(kl, (p.high > 1) | (p.low < 0), inf)


@register_kl(Uniform, ContinuousBernoulli)
def kl_uniform_continuous_bernoulli(p: Any, q: Any) -> Any:
    kl = -p.entropy() - p.mean * q.logits - tg.log1p(-q.probs) - q._cont_bern_log_norm()
    return instead(kl, (p.high >= 1) | (p.low <= 0), inf)


@register_kl(Uniform, Exponential)
def kl_uniform_exponential(p: Any, q: Any) -> Any:
    return instead(q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log(), p.low < 0, inf)


@register_kl(Uniform, Gamma)
def kl_uniform_gamma(p: Any, q: Any) -> Any:
    kl = (-(p.high - p.low).log() + gamma_normalizer(q) + (1 - q.concentration) * mean_log(p.high, p.low) + q.rate
          * (p.high + p.low) / 2)
    return instead(kl, p.low < 0, inf)


@register_kl(Uniform, Gumbel)
def kl_uniform_gumbel(p: Any, q: Any) -> Any:
    part, high, low = q.scale / (p.high - p.low), (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return part.log() + 0.5 * (high + low) - part * (tg.exp(-high) - tg.exp(-low))


@register_kl(Uniform, Normal)
def kl_uniform_normal(p: Any, q: Any) -> Any:
    width = p.high - p.low
    spread = width.pow(2) / 12 + ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return (sqrt(2 * pi) * q.scale / width).log() + 0.5 * spread / q.scale.pow(2)


@register_kl(Uniform, Pareto)
def kl_uniform_pareto(p: Any, q: Any) -> Any:
    kl = mean_log(p.high, p.low) * (q.alpha + 1) - (q.alpha * q.scale.pow(q.alpha) * (p.high - p.low)).log()
    return instead(kl, p.low < q.scale, inf)
