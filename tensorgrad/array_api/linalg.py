"""The standard's linear algebra. https://data-apis.org/array-api/2024.12/extensions/linear_algebra_functions.html"""
from __future__ import annotations

from typing import Any

from .. import api as tg
from .. import linalg as _linalg
from ..api import matmul
from ..api import outer as outer
from ..linalg import det, eigh, eigvalsh, inv, matrix_power, slogdet, svdvals

__all__ = ["cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
           "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
           "trace", "vecdot", "vector_norm"]


def cholesky(x: Any, /, *, upper: Any = False) -> Any:
    """L with L Lᴴ = x."""
    return _linalg.cholesky(x, upper=upper)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross product of vectors of three elements."""
    return _linalg.cross(*_promoted(x1, x2), dim=axis)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of matrices."""
    return _linalg.diagonal(x, offset=offset)


def matrix_norm(x: Any, /, *, keepdims: Any = False, ord: Any = "fro") -> Any:
    """Norms of matrices."""
    return _linalg.matrix_norm(x, ord, keepdim=keepdims)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    """Count the singular values above the tolerance."""
    return _linalg.matrix_rank(x, rtol=rtol)


def matrix_transpose(x: Any, /) -> Any:
    """Swap the last two axes."""
    return x.mT


def pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """The Moore–Penrose inverse."""
    return _linalg.pinv(x, rtol=rtol)


def qr(x: Any, /, *, mode: str = "reduced") -> Any:
    """Q R = x."""
    return _linalg.qr(x, mode)


def solve(x1: Any, x2: Any, /) -> Any:
    """Return the solution X of x1 X = x2, a vector only if x2 has one axis."""
    x1, x2 = _promoted(x1, x2)
    return (_linalg.solve(x1, x2) if x2.ndim == 1
            else _linalg.solve(x1.broadcast_to((*tg.broadcast_shapes(x1.shape[:-2], x2.shape[:-2]), *x1.shape[-2:])),
                               x2.broadcast_to(
                                   (*tg.broadcast_shapes(x1.shape[:-2], x2.shape[:-2]), *x2.shape[-2:]))))


def svd(x: Any, /, *, full_matrices: Any = True) -> Any:
    """U, S, Vh with U diag(S) Vh = x."""
    return _linalg.svd(x, full_matrices)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """Sum products over axes of both."""
    return tg.tensordot(*_promoted(x1, x2), dims=axes)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Sum the diagonals of matrices."""
    return tg.sum(_linalg.diagonal(x, offset=offset), -1, dtype=dtype)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Σ conj(x1) x2 along an axis."""
    x1, x2 = _promoted(x1, x2)
    return tg.sum((tg.conj(x1) if x1.dtype.is_complex else x1) * x2, axis, dtype=x1.dtype)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Any:
    """Norms of vectors."""
    return tg.abs(x) if axis == () else _linalg.vector_norm(x, ord, axis, keepdims)


def _promoted(x1: Any, x2: Any) -> tuple[Any, Any]:
    dtype = tg.result_type(x1, x2)
    return x1.to(dtype), x2.to(dtype)
