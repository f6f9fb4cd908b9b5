"""KL(p ‖ q) of two distributions of one family."""
from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from .. import api as tg
from ..nn.functional import softplus
from ._gaussian import log_diagonal, lowrank_mahalanobis, mahalanobis, square_sum
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .kl import kl_divergence, register_kl
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import euler_constant, sum_rightmost

if TYPE_CHECKING:
    from .._tensor import Tensor


def instead(values: Any, places: Any, value: Tensor) -> Any:
    """Return the values with a number at the masked positions."""
    return tg.where(places, value, values)


# ── families of distributions ─────────────────────────────────────────────────────────────────────────────────────────


@register_kl(TransformedDistribution, TransformedDistribution)
def kl_transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL(p || q) is not known for unlike transforms or event shapes")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def kl_independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL(p || q) is not known for unlike reinterpreted_batch_ndims")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# ── discrete ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@register_kl(Bernoulli, Bernoulli)
def kl_bernoulli(p: Any, q: Any) -> Any:
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    return (instead(instead(one, q.probs == 0, inf), p.probs == 0, 0.0)
            + instead(instead(zero, q.probs == 1, inf), p.probs == 1, 0.0))


@register_kl(Binomial, Binomial)
def kl_binomial(p: Any, q: Any) -> Any:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return instead(kl, p.total_count > q.total_count, inf)


@register_kl(Categorical, Categorical)
def kl_categorical(p: Any, q: Any) -> Any:
    terms = p.probs * (p.logits - q.logits)
    return instead(instead(terms, q.probs == 0, inf), p.probs == 0, 0.0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def kl_one_hot(p: Any, q: Any) -> Any:
    return kl_categorical(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def kl_geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - tg.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def kl_poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


# ── continuous ────────────────────────────────────────────────────────────────────────────────────────────────────────


@register_kl(Beta, Beta)
def kl_beta(p: Any, q: Any) -> Any:
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    normalizers = (c.lgamma() + d.lgamma() + (a + b).lgamma()) - (a.lgamma() + b.lgamma() + (c + d).lgamma())
    return normalizers + (a - c) * tg.digamma(a) + (b - d) * tg.digamma(b) + ((c + d) - (a + b)) * tg.digamma(a + b)


@register_kl(Cauchy, Cauchy)
def kl_cauchy(p: Any, q: Any) -> Any:
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def kl_continuous_bernoulli(p: Any, q: Any) -> Any:
    ours, theirs = (d._cont_bern_log_norm() + tg.log1p(-d.probs) for d in (p, q))
    return p.mean * (p.logits - q.logits) + ours - theirs


@register_kl(Dirichlet, Dirichlet)
def kl_dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    normalizers = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return normalizers + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Exponential, Exponential)
def kl_exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def kl_gamma(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    return (b * (p.rate / q.rate).log() + (tg.lgamma(b) - tg.lgamma(a)) + (a - b) * tg.digamma(a)
            + (q.rate - p.rate) * (a / p.rate))


@register_kl(Gumbel, Gumbel)
def kl_gumbel(p: Any, q: Any) -> Any:
    ratio, ours, theirs = p.scale / q.scale, p.loc / q.scale, q.loc / q.scale
    return (-ratio.log() - theirs + ours + ratio * euler_constant + tg.exp(theirs + (1 + ratio).lgamma() - ours)
            - (1 + euler_constant))


@register_kl(Laplace, Laplace)
def kl_laplace(p: Any, q: Any) -> Any:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * tg.exp(-distance / p.scale) - 1


@register_kl(Normal, Normal)
def kl_normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def kl_half_normal(p: Any, q: Any) -> Any:
    return kl_normal(p.base_dist, q.base_dist)


@register_kl(Pareto, Pareto)
def kl_pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    kl = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return instead(kl, p.scale < q.scale, inf)


@register_kl(Uniform, Uniform)
def kl_uniform(p: Any, q: Any) -> Any:
    return instead(((q.high - q.low) / (p.high - p.low)).log(), (q.low > p.low) | (q.high < p.high), inf)


# ── normal vectors: ½·(ln det Σq − ln det Σp + tr(Σq⁻¹·Σp) + |μq − μp|² by Σq − n) ────────────────────────────────────


def check_event_shapes(p: Any, q: Any, kind: Any) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL-divergence between two {kind} with                          different event shapes "
                         f"cannot be computed")


@register_kl(MultivariateNormal, MultivariateNormal)
def kl_multivariate_normal(p: Any, q: Any) -> Any:
    check_event_shapes(p, q, "Multivariate Normals")
    ours, theirs = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    trace = square_sum(tg.linalg.solve_triangular(theirs, ours, upper=False))
    return (log_diagonal(theirs) - log_diagonal(ours) + 0.5
            * (trace + mahalanobis(theirs, q.loc - p.loc) - p.event_shape[0]))


def log_det(d: Any) -> Any:
    """ln det Σ"""
    return d._log_det() if isinstance(d, LowRankMultivariateNormal) else 2 * log_diagonal(d._unbroadcasted_scale_tril)


def kl_to_lowrank(p: Any, q: Any, factors: Any) -> Any:
    """Return the divergence for q of low rank; Σp is the sum of A·Aᵀ over its factors A, where a vector is a
    diagonal matrix."""
    W, D, capacitance = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q._capacitance_tril
    inner = tg.linalg.solve_triangular(capacitance, W.mT / D.unsqueeze(-2), upper=False)
    trace = sum(square_sum(a * D.rsqrt().unsqueeze(-1)) - square_sum(inner @ a) for a in factors)
    return 0.5 * (log_det(q) - log_det(p) + trace + lowrank_mahalanobis(W, D, q.loc - p.loc, capacitance)
                  - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def kl_lowrank(p: Any, q: Any) -> Any:
    check_event_shapes(p, q, "Low Rank Multivariate Normals")
    return kl_to_lowrank(p, q, [p._unbroadcasted_cov_factor, tg.diag_embed(p._unbroadcasted_cov_diag.sqrt())])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def kl_multivariate_normal_lowrank(p: Any, q: Any) -> Any:
    check_event_shapes(p, q, "(Low Rank) Multivariate Normals")
    return kl_to_lowrank(p, q, [p._unbroadcasted_scale_tril])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def kl_lowrank_multivariate_normal(p: Any, q: Any) -> Any:
    check_event_shapes(p, q, "(Low Rank) Multivariate Normals")
    theirs = q._unbroadcasted_scale_tril
    factors = p._unbroadcasted_cov_factor, tg.diag_embed(p._unbroadcasted_cov_diag.sqrt())
    trace = sum(square_sum(tg.linalg.solve_triangular(theirs, a, upper=False)) for a in factors)
    return 0.5 * (log_det(q) - log_det(p) + trace + mahalanobis(theirs, q.loc - p.loc) - p.event_shape[0])
