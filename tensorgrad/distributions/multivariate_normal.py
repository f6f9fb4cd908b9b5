"""Normal vectors."""
from __future__ import annotations

from collections.abc import Sequence
from math import log, pi
from typing import TYPE_CHECKING

from .. import api as tg
from . import constraints
from ._gaussian import Triangular, apply, factor, log_diagonal, mahalanobis, one_covariance
from .distribution import Distribution
from .utils import EMPTY, lazy_property, same_as, standard_normal

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["MultivariateNormal"]


class MultivariateNormal(Triangular, Distribution):
    """Normal vectors with a mean and a covariance Σ, given as Σ, as its inverse, or as its Cholesky factor. →
    torch.distributions.MultivariateNormal

    Computations use the factor; ValueError unless exactly one is given.

    >>> import tensorgrad as torch
    >>> torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2)).log_prob(torch.tensor([0., 1.]))
    tensor(-2.3379)
    """

    arg_constraints = {"loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True
    _expands, _keeps = ("loc", "covariance_matrix", "precision_matrix", "scale_tril"), ("_unbroadcasted_scale_tril",)

    def __init__(self, loc: Tensor, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
                 scale_tril: Tensor | None = None, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = one_covariance(covariance_matrix, precision_matrix, scale_tril, ValueError)
        if matrix.dim() < 2:
            what = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(f"{what} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = tg.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        self.loc = loc.expand(batch_shape + (-1,))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor(name, matrix)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        return self._broadcast(tg.cholesky_inverse(self._unbroadcasted_scale_tril))

    mean = mode = same_as("loc")

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        return self.loc + apply(self._unbroadcasted_scale_tril,
                                standard_normal(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        distance = mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * log(2 * pi) + distance) - log_diagonal(self._unbroadcasted_scale_tril)

    def entropy(self) -> Tensor:
        return (0.5 * self._event_shape[0] * (1 + log(2 * pi)) + log_diagonal(self._unbroadcasted_scale_tril)).expand(
            self._batch_shape)
