"""Distributions of transformed variables."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import api as tg
from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import EMPTY, same_as, sum_rightmost

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """Y = f(X) for X from the base distribution and f the composition of the transforms.

    → torch.distributions.TransformedDistribution

    ln p(y) = ln p(x) − ln |det dy/dx|. ValueError for objects that are no transforms.

    >>> import tensorgrad as torch
    >>> from tensorgrad.distributions import AffineTransform, SigmoidTransform, TransformedDistribution, Uniform
    >>> logistic = TransformedDistribution(Uniform(0., 1.), [SigmoidTransform().inv, AffineTransform(loc=1., scale=2.)])
    >>> logistic.log_prob(torch.tensor(1.)).exp(), logistic.cdf(torch.tensor(1.))
    (tensor(0.1250), tensor(0.5000))
    """

    arg_constraints = {}
    _expands, _keeps = ("base_dist",), ("transforms",)

    def __init__(self, base_distribution: Distribution, transforms: Transform | list[Transform],
                 validate_args: bool | None = None) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        shape, base_dim = (base_distribution.batch_shape + base_distribution.event_shape,
                           len(base_distribution.event_shape))
        transform = ComposeTransform(self.transforms)
        domain_dim, codomain_dim = transform.domain.event_dim, transform.codomain.event_dim
        if len(shape) < domain_dim:
            raise ValueError(f"base_distribution needs to have shape with size at least {domain_dim}, but got {shape}.")
        new_shape = transform.forward_shape(shape)
        needed = transform.inverse_shape(new_shape)              # parameters of the transforms may broadcast
        if needed != shape:
            base_distribution = base_distribution.expand(needed[:len(needed) - base_dim])
        self.base_dist = (Independent(base_distribution, domain_dim - base_dim) if domain_dim > base_dim
                          else base_distribution)
        event_dim = max(codomain_dim, base_dim + codomain_dim - domain_dim)
        cut = len(new_shape) - event_dim
        constraints.require(cut >= 0, f"forward_shape length {len(new_shape)} must be >= event_dim {event_dim}")
        super().__init__(new_shape[:cut], new_shape[cut:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    has_rsample = same_as("base_dist.has_rsample")

    def _transformed(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        with tg.no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        event_dim, log_prob, y = len(self.event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            log_prob = log_prob - sum_rightmost(transform.log_abs_det_jacobian(x, y),
                                                event_dim - transform.domain.event_dim)
            y = x
        return log_prob + sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value):
        """Return p where the transforms increase, 1 − p where they decrease."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._transformed(self.base_dist.icdf(self._monotonize_cdf(value)))
