"""Kullback–Leibler divergence, by the classes of two distributions.

https://pytorch.org/docs/stable/distributions.html#module-torch.distributions.kl
"""
from __future__ import annotations

import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

from .exp_family import ExponentialFamily
from .utils import sum_rightmost

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .distribution import Distribution

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY = {}


def register_kl(type_p: Any, type_q: Any) -> Any:
    """Decorate a function that computes the divergence for these classes and their subclasses without their own.

    TypeError for other types.

    >>> import tensorgrad as torch
    >>> class MyNormal(torch.distributions.Normal):
    ...     pass
    >>> @torch.distributions.register_kl(MyNormal, MyNormal)
    ... def of_mine(p, q):
    ...     return torch.zeros(())
    >>> torch.distributions.kl_divergence(MyNormal(0., 1.), MyNormal(2., 1.))
    tensor(0.)
    """
    for kind in (type_p, type_q):
        if not isinstance(kind, type):          # any class is accepted: packages have their own hierarchies
            raise TypeError("issubclass() arg 1 must be a class")

    def decorator(function):
        _KL_REGISTRY[type_p, type_q] = function
        _dispatch.cache_clear()
        return function
    return decorator


def _most_specific(pairs, first, second):
    """Return the most specific pair of classes, by the first of a pair, then the second."""
    return min(pairs, key=lambda pair: (first.__mro__.index(pair[0]), second.__mro__.index(pair[1])))


@cache
def _dispatch(type_p, type_q):
    """Return the function for two classes, or None."""
    pairs = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not pairs:
        return None
    left = _most_specific(pairs, type_p, type_q)
    right = _most_specific([pair[::-1] for pair in pairs], type_q, type_p)[::-1]
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
                      f"register_kl({left[0].__name__}, {right[1].__name__})",
                      RuntimeWarning, stacklevel=3)
    return _KL_REGISTRY[left]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p ‖ q) = E[ln p(x) − ln q(x)] for x from p.

    NotImplementedError if there is no formula. → torch.distributions.kl.kl_divergence

    >>> import tensorgrad as torch
    >>> from tensorgrad.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0., 1.), Normal(torch.tensor([0., 1.]), 1.))
    tensor([0.0000, 0.5000])
    """
    function = _dispatch(type(p), type(q))
    if function is None:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q type "
                                  f"{q.__class__.__name__}")
    return function(p, q)


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: Any, q: Any) -> Any:
    """The Bregman divergence of the log normalizer F: F(θq) − F(θp) − ⟨θq − θp, ∇F(θp)⟩"""
    if type(p) is not type(q):
        raise NotImplementedError("The cross KL-divergence between different exponential families cannot               "
                                  "              be computed using Bregman divergences")
    ours, normalizer, slopes = p._normalized()
    theirs = q._natural_params
    terms = [sum_rightmost((b - a) * g, len(q.event_shape)) for a, b, g in zip(ours, theirs, slopes, strict=True)]
    return q._log_normalizer(*theirs) - normalizer - sum(terms)
