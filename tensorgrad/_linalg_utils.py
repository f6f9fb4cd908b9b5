"""torch._linalg_utils: small functions of matrices, dense or sparse, that programs import from PyTorch.

>>> import tensorgrad as torch
>>> torch._linalg_utils.qform(torch.eye(2) * 3, torch.ones(2, 1))
tensor([[6.]])
"""
from __future__ import annotations

from . import linalg
from ._tensor import Tensor
from .dtype import dtype, float16, float32, float64

__all__ = ["basis", "bform", "get_floating_dtype", "is_sparse", "matmul", "qform", "symeig"]


def is_sparse(A: Tensor) -> bool:
    """Return True for a sparse COO tensor; TypeError for what is no tensor."""
    if isinstance(A, Tensor):
        return A.is_sparse
    raise TypeError(f"expected Tensor but got {type(A)}")


def get_floating_dtype(A: Tensor) -> dtype:
    """Return the dtype of a tensor of floating point, and float32 for others."""
    return A.dtype if A.dtype in (float16, float32, float64) else float32


def matmul(A: Tensor | None, B: Tensor) -> Tensor:
    """Return A·B, for a dense or sparse A, or B for None, the identity."""
    if A is None:
        return B
    return A.mm(B) if A.is_sparse else A.matmul(B)


def bform(X: Tensor, A: Tensor | None, Y: Tensor) -> Tensor:
    """Return Xᵀ·A·Y."""
    return matmul(X.mT, matmul(A, Y))


def qform(A: Tensor | None, S: Tensor) -> Tensor:
    """Return Sᵀ·A·S."""
    return bform(S, A, S)


def basis(A: Tensor) -> Tensor:
    """Return an orthonormal basis of the columns."""
    return linalg.qr(A).Q


def symeig(A: Tensor, largest: bool | None = False) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues of symmetric matrices, the least first unless `largest`, and the eigenvectors."""
    values, vectors = linalg.eigh(A, UPLO="U")
    return (values.flip(-1), vectors.flip(-1)) if largest else (values, vectors)
