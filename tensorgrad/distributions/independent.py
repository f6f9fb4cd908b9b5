"""Treat batches of variables as one variable of several dimensions."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import constraints
from .distribution import Distribution
from .utils import EMPTY, same_as, sum_rightmost

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["Independent"]


class Independent(Distribution):
    """The base distribution, with its last `reinterpreted_batch_ndims` batch dimensions as part of the event. →
    torch.distributions.Independent

    log_prob and entropy are sums over them. ValueError if there are not so many.

    >>> import tensorgrad as torch
    >>> d = torch.distributions.Independent(torch.distributions.Normal(torch.zeros(2, 3), 1.), 1)
    >>> d.batch_shape, d.event_shape, d
    (torch.Size([2]), torch.Size([3]), Independent(Normal(loc: torch.Size([2, 3]), scale: torch.Size([2, 3])), 1))
    """

    arg_constraints = {}
    _expands, _keeps = ("base_dist",), ("reinterpreted_batch_ndims",)

    def __init__(self, base_distribution: Any, reinterpreted_batch_ndims: int,
                 validate_args: bool | None = None) -> None:
        if reinterpreted_batch_ndims > len(base_distribution.batch_shape):
            raise ValueError("Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                             f"{reinterpreted_batch_ndims} vs {len(base_distribution.batch_shape)}")
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        shape = base_distribution.batch_shape + base_distribution.event_shape
        cut = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    has_rsample = same_as("base_dist.has_rsample")

    @property
    def has_enumerate_support(self) -> bool:
        return self.base_dist.has_enumerate_support if self.reinterpreted_batch_ndims <= 0 else False

    @constraints.dependent_property
    def support(self) -> Any:
        support, n = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(support, n) if n else support

    mean = same_as("base_dist.mean")
    mode = same_as("base_dist.mode")
    variance = same_as("base_dist.variance")

    def sample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
