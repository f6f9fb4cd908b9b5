"""Invertible functions that turn distributions into others.
https://pytorch.org/docs/stable/distributions.html#module-torch.distributions.transforms

>>> import tensorgrad as torch
>>> exp = torch.distributions.transforms.ExpTransform()
>>> x = torch.tensor([0., 1.])
>>> exp(x), exp.inv(exp(x)), exp.log_abs_det_jacobian(x, exp(x))
(tensor([1.0000, 2.7183]), tensor([0.0000, 1.0000]), tensor([0., 1.]))
"""
from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any

from .. import api as tg
from ..nn.functional import logsigmoid, pad, softplus
from . import constraints
from ._transform import (  # noqa: F401
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    Transform,
    _InverseTransform,
    identity_transform,
)
from ._transform_pieces import CatTransform, StackTransform
from .utils import NUMBER, broadcast_all, lazy_property, same_as, tril_matrix_to_vec, vec_to_tril_matrix

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .distribution import Distribution

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform",
    "identity_transform",
]

LOG_2 = log(2)


class Same:
    """Base of transforms without parameters: any two of a class are equal."""

    def __eq__(self, other: Any) -> Any:
        return isinstance(other, type(self))

    __hash__ = None


class Increasing:
    """Base of bijective increasing transforms of the real numbers."""

    domain, bijective, sign = constraints.real, True, 1


# ── of numbers ────────────────────────────────────────────────────────────────────────────────────────────────────────


class ExpTransform(Same, Increasing, Transform):
    """y = exp x."""

    codomain = constraints.positive

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x^exponent."""

    domain = codomain = constraints.positive
    bijective = True
    _arguments = ("exponent",)

    def __init__(self, exponent: Tensor, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent, = broadcast_all(exponent)

    @lazy_property
    def sign(self) -> int:
        return self.exponent.sign()

    def __eq__(self, other: Any) -> Any:
        return isinstance(other, PowerTransform) and self.exponent.eq(other.exponent).all().item()

    __hash__ = None

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return tg.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


def clipped_sigmoid(x: Tensor) -> Any:
    info = tg.finfo(x.dtype)
    return tg.clamp(tg.sigmoid(x), min=info.tiny, max=1 - info.eps)


class SigmoidTransform(Same, Increasing, Transform):
    """y = 1 / (1 + exp(−x))."""

    codomain = constraints.unit_interval

    def _call(self, x):
        return clipped_sigmoid(x)

    def _inverse(self, y):
        info = tg.finfo(y.dtype)
        y = y.clamp(min=info.tiny, max=1 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(Same, Increasing, Transform):
    """y = ln(1 + exp x)."""

    codomain = constraints.positive

    def _call(self, x):
        return softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class TanhTransform(Same, Increasing, Transform):
    """y = tanh x."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return tg.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2 * (LOG_2 - x - softplus(-2 * x))        # ln(1 − tanh² x), without the overflow to ln 0


class AbsTransform(Same, Transform):
    """y = |x|; the inverse takes the positive x."""

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class AffineTransform(Transform):
    """y = loc + scale·x, on events of `event_dim` dimensions."""

    bijective = True
    _arguments = ("loc", "scale", "event_dim")

    def __init__(self, loc: Tensor | float, scale: Tensor | float, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = same_as("_event_dim")

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return constraints.independent(constraints.real, self.event_dim) if self.event_dim else constraints.real

    codomain = domain

    def __eq__(self, other: Any) -> Any:
        return isinstance(other, AffineTransform) and equal(self.loc, other.loc) and equal(self.scale, other.scale)

    __hash__ = None

    @property
    def sign(self) -> Tensor | int:
        scale = self.scale
        return (scale > 0) - (scale < 0) if isinstance(scale, NUMBER) else scale.sign()

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        n, scale = self.event_dim, self.scale
        slope = tg.full_like(x, log(abs(scale))) if isinstance(scale, NUMBER) else tg.abs(scale).log()
        if not n:
            return slope.expand(x.shape)
        return slope.view(slope.size()[:-n] + (-1,)).sum(-1).expand(x.shape[:-n])

    def forward_shape(self, shape: Any) -> Any:
        return tg.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


def equal(a: Any, b: Any) -> Any:
    """Return True if two parameters, numbers or tensors, are equal in all elements."""
    return a == b if isinstance(a, NUMBER) and isinstance(b, NUMBER) else (a == b).all().item()


class CumulativeDistributionTransform(Transform):
    """y = F(x), the distribution function."""

    bijective, sign, codomain = True, 1, constraints.unit_interval
    _arguments = ("distribution",)

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    domain = same_as("distribution.support")

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)


# ── of vectors and matrices ───────────────────────────────────────────────────────────────────────────────────────────


def at_least(ndim: Any, shape: Any) -> None:
    if len(shape) < ndim:
        raise ValueError("Too few dimensions on input")


class SoftmaxTransform(Same, Transform):
    """y = softmax x; ln y is one of the x that give y."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x):
        weights = (x - x.max(-1, True)[0]).exp()
        return weights / weights.sum(-1, True)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        at_least(1, shape)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Same, Transform):
    """Maps n numbers to n + 1 parts of a stick: each breaks off a share of the rest; x = 0 gives equal parts."""

    domain, codomain, bijective = constraints.real_vector, constraints.simplex, True

    def _call(self, x):
        z = clipped_sigmoid(x - log_parts(x))
        return pad(z, [0, 1], value=1) * pad((1 - z).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y):
        parts = y[..., :-1]
        left = tg.clamp(1 - parts.cumsum(-1), min=tg.finfo(y.dtype).tiny)
        return parts.log() - left.log() + log_parts(parts)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - log_parts(x)
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        at_least(1, shape)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape: Any) -> Any:
        at_least(1, shape)
        return shape[:-1] + (shape[-1] - 1,)


def log_parts(x: Tensor) -> Any:
    """Return ln n, …, ln 1 for n numbers: the logarithm of the number of parts that follow each."""
    n = x.shape[-1]
    return (n + 1 - x.new_ones(n).cumsum(-1)).log()


class CorrCholeskyTransform(Transform):
    """Maps n(n − 1)/2 numbers to the Cholesky factor of an n × n correlation matrix.

    Each row is made by stick breaking: tanh of the numbers are its entries, relative to the remaining length.
    """

    domain, codomain, bijective = constraints.real_vector, constraints.corr_cholesky, True

    def _call(self, x):
        eps = tg.finfo(x.dtype).eps
        r = vec_to_tril_matrix(tg.tanh(x).clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - r ** 2).sqrt().cumprod(-1)
        return (r + tg.eye(r.shape[-1], dtype=r.dtype, device=r.device)) * pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y):
        left = pad((1 - tg.cumsum(y * y, dim=-1))[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(dim=-1), diag=-2)
        return 0.5 * left.log().sum(-1) - 2 * (x + softplus(-2 * x) - LOG_2).sum(dim=-1)

    def forward_shape(self, shape: Any) -> Any:
        at_least(1, shape)
        count = shape[-1]
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (n, n)

    def inverse_shape(self, shape: Any) -> Any:
        at_least(2, shape)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        n = shape[-1]
        return shape[:-2] + (n * (n - 1) // 2,)


class LowerCholeskyTransform(Same, Transform):
    """Maps square matrices to lower triangles with a positive diagonal, exp of theirs."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Same, Transform):
    """Maps square matrices to L·Lᵀ, where L is their LowerCholeskyTransform."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x):
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(tg.linalg.cholesky(y))
