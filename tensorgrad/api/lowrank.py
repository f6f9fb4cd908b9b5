"""Parts of factorizations of large matrices: the greatest singular values, principal components, extreme eigenvalues.
https://pytorch.org/docs/stable/torch.html#blas-and-lapack-operations"""
from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core.dispatch import xp
from ..core.mode import no_grad
from ._arguments import check_tensor, floating
from ._linalg import adjoint
from ._register import public
from .factorizations import cholesky, eigh, qr, svd
from .matrix import matmul
from .random import randn
from .solving import solve_triangular

# ── approximations of low rank ────────────────────────────────────────────────────────────────────────────────────────


@public(method=False)
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2,
                M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and V of an approximation of A (less M) of rank q: a random basis of its columns, refined `niter` times (N.
    Halko and others, 2009).

    Input: A (*, m, n), M broadcastable to it, floating point or complex
    Output: U (*, m, k), S (*, k), V (*, n, k), for k = min(q, m, n)
    Errors: ValueError if A has less than two axes; RuntimeError if M does not broadcast, q is negative, or for integers
    https://pytorch.org/docs → torch.svd_lowrank

    >>> import tensorgrad as torch
    >>> A = torch.diag(torch.tensor([3., 2., 0.]))
    >>> U, S, V = torch.svd_lowrank(A, q=2)
    >>> torch.allclose((U * S) @ V.mT, A, atol=1e-5)
    True
    """
    m, n = A.shape[-2:]
    if M is not None:
        A = xp.subtract(A.to_dense() if A._storage.dense else A, M.expand(A.shape))
    tall = adjoint(A) if m < n else A
    basis = _column_basis(tall, 6 if q is None else q, 2 if niter is None else niter)
    left, sizes, right = svd(xp.matmul(adjoint(basis), tall), False)
    left, right = xp.matmul(basis, left), adjoint(right)
    return (right, sizes, left) if m < n else (left, sizes, right)


def _column_basis(a: Any, q: int, niter: int) -> Any:
    """Return orthonormal columns whose span nearly contains those of A."""
    start = randn(a.array.shape[-1], q, dtype=floating(a).dtype, device=a.device)
    basis = qr(matmul(a, start))[0]
    for _ in range(niter):
        basis = qr(xp.matmul(a, qr(xp.matmul(adjoint(a), basis))[0]))[0]
    return basis


@public(method=False)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and V of an approximation of rank q of A, whose columns are first brought to a mean of zero: V holds the
    principal directions.

    Input: A (*, m, n), floating point or complex
    Output: U (*, m, q), S (*, q), V (*, n, q); q = min(6, m, n) by default
    Errors: ValueError if q is not in [0, min(m, n)], niter is negative, or A has less than two axes; RuntimeError for
        integers
    https://pytorch.org/docs → torch.pca_lowrank

    >>> import tensorgrad as torch
    >>> U, S, V = torch.pca_lowrank(torch.tensor([[0., 0.], [2., 2.], [4., 4.]]), q=1)
    >>> torch.allclose(S, torch.tensor([4.]))
    True
    """
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if center and A._storage.dense:
        return svd_lowrank(A, q, niter, A.sum(-2).to_dense().div(m).expand(m, n))  # type: ignore[no-any-return]
    if center:
        A = A - A.mean(dim=-2, keepdim=True)
    return svd_lowrank(A, q, niter)  # type: ignore[no-any-return]


# ── extreme eigenvalues ───────────────────────────────────────────────────────────────────────────────────────────────


@public(method=False)
def lobpcg(A: Tensor, k: int | None = None, B: Tensor | None = None, X: Tensor | None = None, n: int | None = None,
           iK: Tensor | None = None, niter: int | None = None, tol: float | None = None, largest: bool | None = None,
           method: str | None = None, tracker: Callable[..., Any] | None = None,
           ortho_iparams: dict[str, int] | None = None, ortho_fparams: dict[str, float] | None = None,
           ortho_bparams: dict[str, bool] | None = None) -> tuple[Tensor, Tensor]:
    """The k greatest (or least) eigenvalues of A·X = B·X·diag(λ) and their vectors, for a symmetric A and a positive
    definite B: the best in the span of the last vectors, their residuals and their last steps, again and again (A.
    Knyazev, 2001).

    Input: A and B (*, m, m), X (*, m, n), iK (*, m, m), which approximates A⁻¹; floating point of one dtype
    Output: eigenvalues (*, k), eigenvectors (*, m, k)
    Errors: ValueError if m < 3·n, where n = k without X
    https://pytorch.org/docs → torch.lobpcg

    >>> import tensorgrad as torch
    >>> values, vectors = torch.lobpcg(torch.diag(torch.arange(1., 10.)), k=2)
    >>> torch.allclose(values, torch.tensor([9., 8.]), atol=1e-3)
    True
    """
    check_tensor(A, "lobpcg", "A", 1)
    if A.array.ndim < 2 or A.array.shape[-2] != A.array.shape[-1]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    m = A.array.shape[-1]
    k = (1 if X is None else X.array.shape[-1]) if k is None else k
    n = (k if X is None else X.array.shape[-1]) if n is None else n
    largest = True if largest is None else largest
    if m < 3 * n:
        raise ValueError(f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the "
                         "number of requested eigenpairs "
                         f"(={n})")
    if A.requires_grad or B is not None and B.requires_grad:
        return _all_pairs(A, B, k, largest)      # the gradients involve the other eigenvectors, too
    lead = A.array.shape[:-2]
    start = randn(*lead, m, n, dtype=A.dtype, device=A.device) if X is None else X
    tol = float(dtypes.finfo(A.dtype).eps) ** 0.5 if tol is None else tol
    with no_grad():
        stacks = [t if t is None else [t] if t._storage.dense else xp.reshape(t, (-1, *t.array.shape[-2:])).unbind(0)
                  for t in (A, B, start, iK)]
        found = [_iterated(*(None if s is None else s[i % len(s)] for s in stacks), k, -1 if niter is None else niter,
                           tol, largest)
                 for i in range(len(stacks[0]))]  # type: ignore[arg-type]
        values, vectors = (xp.stack(parts, axis=0) for parts in zip(*found, strict=True))
        return xp.reshape(values, (*lead, k)), xp.reshape(vectors, (*lead, m, k))


def _all_pairs(a: Any, b: Any, k: int, largest: bool) -> tuple[Any, Any]:
    """The pairs from the whole factorization of L⁻¹·A·L⁻ᴴ for L·Lᴴ = B."""
    if b is not None:
        lower = cholesky(b)
        half = solve_triangular(lower, a, upper=False)
        a = adjoint(solve_triangular(lower, adjoint(half), upper=False))
    values, vectors = eigh(a)
    if largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    if b is not None:
        vectors = solve_triangular(adjoint(lower), vectors, upper=True)
    return values.narrow(-1, 0, k), vectors.narrow(-1, 0, k)


def _iterated(a: Any, b: Any, x: Any, preconditioner: Any, k: int, niter: int, tol: float, largest: bool) -> tuple[Any,
                                                                                                                   Any]:
    """Iterate for one matrix, until the residuals are small, or `niter` times."""
    def weighted(y: Any) -> Any:
        return y if b is None else xp.matmul(b, y)
    scale, size = (1.0 if t is None else (t.values() if t._storage.dense and not t.is_sparse else t).norm()
                   for t in (a, b))
    span, wanted = [x], x.array.shape[-1]
    for step in count():
        before = x
        values, x = _best(a, weighted, xp.concat(span, axis=1), wanted, largest)
        residual = xp.subtract(xp.matmul(a, x), xp.multiply(weighted(x), values))
        error = residual.norm(dim=0) / (x.norm(dim=0) * (scale + values.abs() * size))
        if step == niter or bool((error[:k] < tol).all()) or step > 20 * len(a):
            return values[:k], x[:, :k]
        turned = residual if preconditioner is None else xp.matmul(preconditioner, residual)
        overlap = xp.matmul(adjoint(before), weighted(x))
        span = [x, turned, *([xp.subtract(x, xp.matmul(before, overlap))] if step else [])]


def _best(a: Any, weighted: Any, basis: Any, wanted: int, largest: bool) -> tuple[Any, Any]:
    """Rayleigh-Ritz: return the extreme eigenpairs in the span of a basis, without its dependent directions."""
    basis = xp.divide(basis, basis.norm(dim=0).clamp(min=1e-30))
    sizes, turn = eigh(xp.matmul(adjoint(basis), weighted(basis)))
    keep = max(wanted, int((sizes > sizes[-1] * dtypes.finfo(a.dtype).eps * 10).sum()))
    basis = xp.divide(xp.matmul(basis, turn[:, -keep:]), sizes[-keep:].clamp(min=1e-30).sqrt())
    values, mix = eigh(xp.matmul(adjoint(basis), xp.matmul(a, basis)))
    if largest:
        values, mix = values.flip(-1), mix.flip(-1)
    return values[:wanted], xp.matmul(basis, mix[:, :wanted])
