"""Linear algebra of normal distributions in several dimensions."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import api as tg
from .utils import lazy_property

if TYPE_CHECKING:
    from .._tensor import Tensor


def log_diagonal(tril: Any) -> Any:
    """ln det of lower triangles"""
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def apply(matrix: Any, vector: Any) -> Any:
    """A·x"""
    return tg.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def mahalanobis(tril: Any, x: Tensor) -> Any:
    """|L⁻¹·x|². Batch dimensions of x that L lacks become columns: each L is solved once."""
    lead = x.dim() - tril.dim() + 1
    columns = x.reshape((x.shape[:lead].numel(),) + x.shape[lead:]).movedim(0, -1)
    squares = tg.linalg.solve_triangular(tril, columns, upper=False).pow(2).sum(-2)
    return squares.movedim(-1, 0).reshape(x.shape[:-1])


def tril_of_precision(precision: Any) -> Any:
    """Return the Cholesky factor of P⁻¹: the inverse of P's factorization from the lower right corner."""
    flipped = tg.linalg.cholesky(tg.flip(precision, (-2, -1)))
    upper_inverse = tg.flip(flipped, (-2, -1)).mT
    identity = tg.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return tg.linalg.solve_triangular(upper_inverse, identity, upper=False)


def square_sum(matrix: Any) -> Any:
    """tr X·Xᵀ"""
    return matrix.pow(2).sum((-2, -1))


class Triangular:
    """Matrices of a distribution, computed from the Cholesky factor of the covariance on first access."""

    def _broadcast(self, matrix):
        return matrix.expand(self._batch_shape + matrix.shape[-2:])

    @lazy_property
    def scale_tril(self) -> Any:
        return self._broadcast(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        return self._broadcast(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)


def one_covariance(covariance_matrix: Any, precision_matrix: Any, scale_tril: Any, error: Any) -> Any:
    """Return the name and value of the given matrix. Raise `error` unless exactly one is given."""
    given = {name: value for name, value in (("scale_tril", scale_tril), ("covariance_matrix", covariance_matrix),
                                             ("precision_matrix", precision_matrix)) if value is not None}
    if len(given) != 1:
        raise error("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
    return next(iter(given.items()))


def factor(name: str, matrix: Any) -> Any:
    """Return the Cholesky factor of the covariance."""
    if name == "scale_tril":
        return matrix
    return tg.linalg.cholesky(matrix) if name == "covariance_matrix" else tril_of_precision(matrix)


# ── covariance = W·Wᵀ + diag D ────────────────────────────────────────────────────────────────────────────────────────


def add_identity(matrix: Any) -> Any:
    return matrix + tg.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


def capacitance_tril(W: Any, D: Any) -> Any:
    """The Cholesky factor of I + Wᵀ·D⁻¹·W"""
    return tg.linalg.cholesky(add_identity(tg.matmul(W.mT / D.unsqueeze(-2), W)))


def lowrank_logdet(D: Any, capacitance: Any) -> Any:
    """ln det(W·Wᵀ + D), by the matrix determinant lemma"""
    return 2 * log_diagonal(capacitance) + D.log().sum(-1)


def lowrank_mahalanobis(W: Any, D: Any, x: Tensor, capacitance: Any) -> Any:
    """xᵀ·(W·Wᵀ + D)⁻¹·x, by the Woodbury identity"""
    return (x.pow(2) / D).sum(-1) - mahalanobis(capacitance, apply(W.mT / D.unsqueeze(-2), x))
