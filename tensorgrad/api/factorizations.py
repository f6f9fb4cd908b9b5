"""Factorizations of matrices, and solvers that use them: Cholesky, QR, eigenvalues, singular values.
https://pytorch.org/docs/stable/linalg.html#matrix-decompositions"""
from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ..core.dispatch import xp
from ..core.undefined import undefined
from . import return_types
from ._arguments import check_tensor, warn
from ._linalg import (
    NOT_POSITIVE,
    SINGULAR,
    adjoint,
    check_info,
    check_kernel,
    check_matrix,
    check_pair,
    check_shape,
    eye_beside,
    kind_of,
    linalg,
    transposed,
)
from ._register import public

# ── Cholesky ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _cholesky(a: Any, upper: bool, check_errors: bool, name: str) -> Any:
    check_tensor(a, name.replace(".", "_"), "input", 1)
    check_matrix(a, "linalg.cholesky" if "." in name else name, kernel="cholesky_cpu")
    factor, info = xp.cholesky_factor(adjoint(a) if upper else a)
    if check_errors:
        check_info(info, name, NOT_POSITIVE)
    return return_types.linalg_cholesky_ex(adjoint(factor) if upper else factor, info)


@linalg()
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> return_types.linalg_cholesky_ex:
    """`cholesky`, and for each matrix the order of the first leading minor that is not positive, or 0.

    Input: (*, n, n), floating point or complex of full precision
    Output: L (*, n, n), info (*) of int32
    Errors: RuntimeError if the matrices are not square, or for integers; NotImplementedError for halves; LinAlgError if
        one is not positive definite and check_errors is set
    https://pytorch.org/docs → torch.linalg.cholesky_ex

    >>> import tensorgrad as torch
    >>> torch.linalg.cholesky_ex(-torch.eye(2)).info
    tensor(1, dtype=torch.int32)
    """
    return _cholesky(input, upper, check_errors, "linalg.cholesky_ex")


@linalg()
def cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """L of L·Lᴴ = A for a positive definite A, or Lᴴ with `upper`.

    Input: (*, n, n), floating point or complex of full precision; only the lower triangle is read, with `upper` the
        upper
    Output: (*, n, n)
    Errors: LinAlgError if a matrix is not positive definite; RuntimeError if they are not square, or for integers;
        NotImplementedError for halves
    https://pytorch.org/docs → torch.linalg.cholesky

    >>> import tensorgrad as torch
    >>> torch.linalg.cholesky(torch.tensor([[4., 2.], [2., 2.]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    return _cholesky(input, upper, True, "linalg.cholesky")[0]


@public(name="cholesky", out=True)
def _root_cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """L of L·Lᴴ = A, or Lᴴ: `linalg.cholesky`.

    Input: (*, n, n), floating point or complex of full precision
    Output: (*, n, n)
    Errors: LinAlgError if a matrix is not positive definite; RuntimeError if they are not square; NotImplementedError
        for integers and halves
    https://pytorch.org/docs → torch.cholesky

    >>> import tensorgrad as torch
    >>> torch.cholesky(torch.tensor([[4., 2.], [2., 2.]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    if getattr(getattr(input, "array", None), "size", 1) == 0:
        return xp.clone(input)
    if getattr(getattr(input, "array", None), "ndim", 0) > 1:
        check_shape(input, "cholesky")
        check_kernel(input, "cholesky_cpu", "cholesky", "input")
    return _cholesky(input, upper, True, "cholesky")[0]


@public(out=True)
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """X of A·X = B = input from A's Cholesky factor, input2.

    Input: B (*, n, k), factor (*, n, n), of one dtype of full precision; leading axes broadcast
    Output: (*, n, k)
    Errors: RuntimeError if an operand has less than two axes, the factor is not square, they do not fit, or the dtypes
        differ; NotImplementedError for integers and halves
    https://pytorch.org/docs → torch.cholesky_solve

    >>> import tensorgrad as torch
    >>> torch.cholesky_solve(torch.tensor([[4.], [8.]]), torch.tensor([[2., 0.], [0., 2.]]))
    tensor([[1.],
            [2.]])
    """
    check_tensor(input2, "cholesky_solve", "input2", 2)
    for name, t in (("b", input), ("u", input2)):
        if t.array.ndim < 2:
            raise RuntimeError(f"{name} should have at least 2 dimensions, but has {t.array.ndim} dimensions instead")
    check_pair(input, input2, "cholesky_solve")
    check_kernel(input, "cholesky_solve_cpu", "cholesky_solve", "input")
    below = adjoint(input2) if upper else input2
    half = xp.solve_triangular(below, input, upper=False)
    return xp.solve_triangular(adjoint(below), half, upper=True)


@public(out=True)
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """A⁻¹ from A's Cholesky factor.

    Input: (*, n, n), floating point or complex of full precision
    Output: (*, n, n)
    Errors: LinAlgError if there is a zero on the diagonal; RuntimeError if the matrices are not square;
        NotImplementedError for integers and halves
    https://pytorch.org/docs → torch.cholesky_inverse

    >>> import tensorgrad as torch
    >>> torch.cholesky_inverse(torch.tensor([[2., 0.], [0., 1.]]))
    tensor([[0.2500, 0.0000],
            [0.0000, 1.0000]])
    """
    check_tensor(input, "cholesky_inverse", "input", 1)
    check_shape(input, "cholesky_inverse")
    check_kernel(input, "cholesky_inverse_out_cpu", "cholesky_inverse", "input")
    broken = xp.cast(xp.equal(xp.diagonal(input, axis1=-2, axis2=-1), 0), dtype="int32")
    if broken.array.any():
        first = xp.multiply(xp.add(xp.argmax(broken, axis=-1), 1), xp.amax(broken, axis=-1))
        check_info(first, "cholesky_inverse", SINGULAR)
    below = adjoint(input) if upper else input
    inverse = xp.solve_triangular(below, eye_beside(input, *input.array.shape[-2:]), upper=False)
    return xp.in_columns(xp.matmul(adjoint(inverse), inverse))


# ── QR ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@linalg()
def qr(A: Tensor, mode: str = "reduced") -> return_types.linalg_qr:
    """Q·R = A for a Q with orthonormal columns (mode 'complete': a square one; 'r': none) and an upper triangle R.

    Input: (*, m, n), floating point or complex of full precision
    Output: Q (*, m, k), R (*, k, n), for k = min(m, n); k = m for 'complete'; an empty Q for 'r'
    Errors: RuntimeError if there are less than two axes, for integers, or for another mode; NotImplementedError for
        halves
    https://pytorch.org/docs → torch.linalg.qr

    >>> import tensorgrad as torch
    >>> torch.linalg.qr(torch.tensor([[3., 1.], [4., 3.]])).R
    tensor([[-5., -3.],
            [ 0.,  1.]])
    """
    check_matrix(A, "linalg.qr", square=False, kernel="geqrf_cpu")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or "
                           f"'complete'")
    return return_types.linalg_qr(*xp.qr_factor(A, mode=mode))


@public(name="qr", out=True)
def _root_qr(input: Tensor, some: bool = True) -> return_types.qr:
    """Q·R = A: `linalg.qr`.

    Input: (*, m, n), floating point or complex of full precision
    Output: Q (*, m, k), R (*, k, n), for k = min(m, n), or k = m with some=False
    Errors: RuntimeError if there are less than two axes, or for integers; NotImplementedError for halves
    https://pytorch.org/docs → torch.qr

    >>> import tensorgrad as torch, warnings
    >>> with warnings.catch_warnings(action="ignore"):      # deprecated in favour of linalg.qr
    ...     torch.qr(torch.tensor([[3., 1.], [4., 3.]])).R
    tensor([[-5., -3.],
            [ 0.,  1.]])
    """
    check_tensor(input, "qr", "input", 1)
    warn("torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch release.\nThe "
         "boolean parameter 'some' has been replaced with a string parameter 'mode'.\nQ, R = torch.qr(A, some)\nshould "
         "be replaced with\nQ, R = torch.linalg.qr(A, 'reduced' if some else 'complete')")
    return return_types.qr(*qr(input, "reduced" if some else "complete"))


@public(out=True)
def geqrf(input: Tensor) -> return_types.geqrf:
    """QR as LAPACK leaves it: R, and below it the vectors of the reflections that make Q; and their factors τ.

    Input: (*, m, n), floating point or complex of full precision
    Output: a (*, m, n), tau (*, min(m, n))
    Errors: RuntimeError if there are less than two axes; NotImplementedError for integers and halves
    https://pytorch.org/docs → torch.geqrf

    >>> import tensorgrad as torch
    >>> torch.geqrf(torch.tensor([[3., 1.], [4., 3.]])).tau
    tensor([1.6000, 0.0000])
    """
    check_tensor(input, "geqrf", "input", 1)
    if input.array.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    check_kernel(input, "geqrf_cpu", "geqrf", "input")
    return return_types.geqrf(*undefined("geqrf", xp.householder_factors(input), input, step="GeqrfBackward0"))


def _reflections(a: Any, tau: Any) -> tuple[Any, Any]:
    """V and T of I − V·T·Vᴴ, the product of the reflections I − τ·v·vᴴ (C. Puglisi, 1992): T = (I + D·S)⁻¹·D for D =
    diag τ and S the upper triangle of Vᴴ·V without its diagonal."""
    k, m = tau.array.shape[-1], a.array.shape[-2]
    if a.array.shape[-1] > k:
        a = xp.get_slice(a, index=(..., slice(0, k)))
    v = xp.add(xp.tril(a, k=-1), eye_beside(a, m, k))
    scaled = xp.multiply(xp.expand_dims(tau, -1), xp.triu(xp.matmul(adjoint(v), v), k=1))
    factors = xp.diagonal_place(tau, shape=(*tau.array.shape, k), axis1=-2, axis2=-1)
    return v, xp.solve_triangular(scaled, factors, upper=True, unit=True)


@linalg()
def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """The first columns of Q, the product of the reflections I − τ·v·vᴴ that `geqrf` gives.

    Input: (*, m, n) with m ≥ n, tau (*, k) with k ≤ n, of one dtype
    Output: (*, m, n)
    Errors: RuntimeError if there are less than two axes, m < n, k > n, the leading axes do not match, or the dtypes
        differ; NotImplementedError for integers and halves
    https://pytorch.org/docs → torch.linalg.householder_product

    >>> import tensorgrad as torch
    >>> torch.linalg.householder_product(*torch.geqrf(torch.tensor([[3.], [4.]])))
    tensor([[-0.6000],
            [-0.8000]])
    """
    _check_householder(input, tau, "torch.linalg.householder_product")
    if input.array.shape[-2] < input.array.shape[-1]:
        raise RuntimeError("torch.linalg.householder_product: input.shape[-2] must be greater than or equal to "
                           "input.shape[-1]")
    if input.array.shape[-1] < tau.array.shape[-1]:
        raise RuntimeError("torch.linalg.householder_product: input.shape[-1] must be greater than or equal to "
                           "tau.shape[-1]")
    if tau.array.dtype != input.array.dtype:
        raise RuntimeError(f"torch.linalg.householder_product: tau dtype {kind_of(tau)} does not match input dtype "
                           f"{kind_of(input)}")
    check_kernel(input, "orgqr_cpu", "linalg_householder_product")
    m, n = input.array.shape[-2:]
    if not tau.array.size:      # no reflections: the result depends on neither operand
        return xp.in_columns(eye_beside(input, m, n).expand(input.array.shape)).requires_grad_(input.requires_grad
                                                                                               or tau.requires_grad)
    v, t = _reflections(input, tau)
    first = xp.get_slice(v, index=(..., slice(0, n), slice(None)))
    return xp.in_columns(xp.subtract(eye_beside(input, m, n), xp.matmul(xp.matmul(v, t), adjoint(first))))


def _check_householder(input: Any, tau: Any, function: str) -> None:
    check_tensor(input, function.removeprefix("torch.").replace(".", "_"), "input", 1)
    check_tensor(tau, function.removeprefix("torch.").replace(".", "_"), "tau", 2)
    if input.array.ndim < 2:
        raise RuntimeError(f"{function}: input must have at least 2 dimensions.")
    _check_tau(input, tau, function)


def _check_tau(input: Any, tau: Any, function: str) -> None:
    if not tau.array.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    if input.array.ndim - tau.array.ndim != 1:
        raise RuntimeError(f"{function}: Expected tau to have one dimension less than input, but got tau.ndim equal to "
                           f"{tau.array.ndim} and input.ndim is equal to {input.array.ndim}")
    if tau.array.shape[:-1] != input.array.shape[:-2]:
        raise RuntimeError(f"{function}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
                           f"{list(tau.array.shape[:-1])}")


@public(out=True)
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """The first columns of Q: `linalg.householder_product`.

    Input: (*, m, n) with m ≥ n, tau (*, k) with k ≤ n, of one dtype
    Output: (*, m, n)
    Errors: RuntimeError as for `linalg.householder_product`
    https://pytorch.org/docs → torch.orgqr

    >>> import tensorgrad as torch
    >>> torch.orgqr(*torch.geqrf(torch.tensor([[3.], [4.]])))
    tensor([[-0.6000],
            [-0.8000]])
    """
    return householder_product(input, input2)


@public(out=True)
def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Q·C, C·Q, or these with Qᴴ, for the Q that `geqrf` gives and C = input3; Q itself is not made.

    Input: (*, m, k), tau (*, k), C (*, m, n), or (*, n, m) with left=False; all of one dtype
    Output: the shape of C
    Errors: RuntimeError if an operand has less than two axes, they do not fit, or the dtypes differ
    https://pytorch.org/docs → torch.ormqr

    >>> import tensorgrad as torch
    >>> torch.ormqr(*torch.geqrf(torch.tensor([[3.], [4.]])), torch.tensor([[5.], [10.]]), transpose=True)
    tensor([[-11.],
            [  2.]])
    """
    _check_ormqr(input, input2, input3, left)
    if not input.array.size:
        return xp.clone(input3)
    v, t = _reflections(input, input2)
    if transpose:
        t = adjoint(t)
    if left:
        return xp.in_columns(xp.subtract(input3, xp.matmul(v, xp.matmul(t, xp.matmul(adjoint(v), input3)))))
    return xp.in_columns(xp.subtract(input3, xp.matmul(xp.matmul(xp.matmul(input3, v), t), adjoint(v))))


def _check_ormqr(input: Any, tau: Any, other: Any, left: bool) -> None:
    check_tensor(input, "ormqr", "input", 1)
    if input.array.ndim < 2:
        raise RuntimeError("torch.ormqr: input must have at least 2 dimensions.")
    if other.array.ndim < 2:
        raise RuntimeError("torch.ormqr: other must have at least 2 dimensions.")
    if not tau.array.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    place = -2 if left else -1
    if tau.array.shape[-1] != min(other.array.shape[place], input.array.shape[-1]):
        raise RuntimeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{place}], input.shape[-1])")
    if other.array.shape[place] != input.array.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{place}] must be equal to input.shape[-2]")
    _check_tau(input, tau, "torch.ormqr")
    if other.array.ndim != input.array.ndim:
        raise RuntimeError("torch.ormqr: Expected other to have the same number of dimensions as input, but got "
                           f"other.ndim equal to {other.array.ndim} and input.ndim is equal to {input.array.ndim}")
    for name, t in (("tau", tau), ("other", other)):
        if t.array.dtype != input.array.dtype:
            raise RuntimeError(f"torch.ormqr: Expected input and {name} to have the same dtype, but input has "
                               f"dtype{kind_of(input)} and {name} has dtype {kind_of(t)}")
    check_kernel(input, "ormqr_cpu", "ormqr", "input")


# ── eigenvalues ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _triangle(a: Any, uplo: Any, function: str) -> str:
    check_tensor(a, function.replace(".", "_"), "input", 1)
    check_shape(a, "linalg.eigh")
    if not isinstance(uplo, str):
        raise TypeError(f"{function.replace('.', '_')}(): argument 'UPLO' (position 2) must be str, not "
                        f"{type(uplo).__name__}")
    if uplo.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {uplo}")
    check_kernel(a, "linalg_eigh_cpu", function)
    return uplo.upper()


@linalg()
def eigh(input: Tensor, UPLO: str = "L") -> return_types.linalg_eigh:
    """V·diag(λ)·Vᴴ = A for a Hermitian A, of which the lower triangle is read, or the upper.

    Input: (*, n, n), floating point or complex of full precision
    Output: eigenvalues (*, n), real, from the least to the greatest; eigenvectors (*, n, n), the columns of V
    Errors: RuntimeError if the matrices are not square, or for another UPLO; NotImplementedError for integers and
        halves; TypeError if UPLO is not a string
    https://pytorch.org/docs → torch.linalg.eigh

    >>> import tensorgrad as torch
    >>> torch.linalg.eigh(torch.tensor([[2., 0.], [0., 1.]])).eigenvalues
    tensor([1., 2.])
    """
    uplo = _triangle(input, UPLO, "linalg.eigh")
    return return_types.linalg_eigh(*xp.eigh_pairs(input, uplo=uplo))


@linalg()
def eigvalsh(input: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of a Hermitian A, from the least to the greatest.

    Input: (*, n, n), floating point or complex of full precision
    Output: (*, n), real
    Errors: RuntimeError if the matrices are not square, or for another UPLO; NotImplementedError for integers and
        halves; TypeError if UPLO is not a string
    https://pytorch.org/docs → torch.linalg.eigvalsh

    >>> import tensorgrad as torch
    >>> torch.linalg.eigvalsh(torch.tensor([[2., 0.], [0., 1.]]))
    tensor([1., 2.])
    """
    return xp.eigh_values(input, uplo=_triangle(input, UPLO, "linalg.eigvalsh"))


def _check_eig(a: Any, function: str, infinite: bool = False) -> None:
    """Raise the errors for a general A. A may have infinities if only eigenvalues are needed, without gradients."""
    check_tensor(a, function.replace(".", "_"), "input", 1)
    check_shape(a, function)
    if a.array.dtype.kind in "biu":
        raise RuntimeError(f"Unknown Complex ScalarType for {kind_of(a)}")
    check_kernel(a, "linalg_eig_out_cpu", function)
    if not bool((abs(a.array) <= float("inf") if infinite else abs(a.array) < float("inf")).all()):
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")


@linalg()
def eig(input: Tensor) -> return_types.linalg_eig:
    """A·V = V·diag(λ): complex eigenvalues, and eigenvectors of length 1.

    Input: (*, n, n), floating point or complex of full precision
    Output: eigenvalues (*, n), eigenvectors (*, n, n), the columns of V, both complex
    Errors: RuntimeError if the matrices are not square, for integers, infinities or NaNs; NotImplementedError for
        halves
    https://pytorch.org/docs → torch.linalg.eig

    >>> import tensorgrad as torch
    >>> torch.linalg.eig(torch.tensor([[2., 0.], [0., 1.]])).eigenvalues
    tensor([2.+0.j, 1.+0.j])
    """
    _check_eig(input, "linalg.eig")
    return return_types.linalg_eig(*xp.eig_pairs(input))


@linalg()
def eigvals(input: Tensor) -> Tensor:
    """The eigenvalues, complex.

    Input: (*, n, n), floating point or complex of full precision
    Output: (*, n), complex
    Errors: RuntimeError if the matrices are not square, for integers or NaNs; for infinities if gradients are recorded;
        NotImplementedError for halves
    https://pytorch.org/docs → torch.linalg.eigvals

    >>> import tensorgrad as torch
    >>> torch.linalg.eigvals(torch.tensor([[2., 0.], [0., 1.]]))
    tensor([2.+0.j, 1.+0.j])
    """
    recorded = input.node is not None
    _check_eig(input, "linalg.eigvals", infinite=not recorded)
    return xp.eig_pairs(input)[0] if recorded else xp.eig_values(input)


# ── singular values ───────────────────────────────────────────────────────────────────────────────────────────────────


def _check_svd(a: Any, driver: Any, name: str) -> None:
    check_tensor(a, f"linalg_{name}", "A", 1)
    check_matrix(a, "linalg.svd", square=False, kernel="linalg_svd_cpu")
    if driver is not None:
        raise RuntimeError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
                           "cuSOLVER backend.")


@linalg()
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> return_types.linalg_svd:
    """U·diag(S)·Vᴴ = A, with orthonormal columns in U and V: as many as A has rows and columns, or as there are
    singular values.

    Input: (*, m, n), floating point or complex of full precision
    Output: U (*, m, m), S (*, k), real, Vh (*, n, n), for k = min(m, n); with full_matrices=False U (*, m, k), Vh (*,
        k, n)
    Errors: RuntimeError if there are less than two axes, for integers, or a driver on the CPU; NotImplementedError for
        halves; LinAlgError for NaNs
    https://pytorch.org/docs → torch.linalg.svd

    >>> import tensorgrad as torch
    >>> U, S, Vh = torch.linalg.svd(torch.tensor([[0., 2.], [1., 0.]]))
    >>> S, U @ torch.diag(S) @ Vh
    (tensor([2., 1.]), tensor([[0., 2.],
            [1., 0.]]))
    """
    _check_svd(A, driver, "svd")
    if not isinstance(full_matrices, bool):
        raise TypeError(f"linalg_svd(): argument 'full_matrices' must be bool, not {type(full_matrices).__name__}")
    return return_types.linalg_svd(*xp.svd_factor(A, full=full_matrices))


@linalg()
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values, from the greatest to the least.

    Input: (*, m, n), floating point or complex of full precision
    Output: (*, min(m, n)), real
    Errors: RuntimeError if there are less than two axes, for integers, or a driver on the CPU; NotImplementedError for
        halves; LinAlgError for NaNs
    https://pytorch.org/docs → torch.linalg.svdvals

    >>> import tensorgrad as torch
    >>> torch.linalg.svdvals(torch.tensor([[0., 2.], [1., 0.]]))
    tensor([2., 1.])
    """
    _check_svd(A, driver, "svdvals")
    return xp.singular_values(A)


@public(name="svd", out=True)
def _root_svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> return_types.svd:
    """U·diag(S)·Vᴴ = A, with V itself among the results: `linalg.svd`.

    Input: (*, m, n), floating point or complex of full precision
    Output: U (*, m, k), S (*, k), V (*, n, k), for k = min(m, n); with some=False U (*, m, m), V (*, n, n); without
        compute_uv they are zeros
    Errors: RuntimeError if there are less than two axes, or for integers; NotImplementedError for halves; LinAlgError
        for NaNs
    https://pytorch.org/docs → torch.svd

    >>> import tensorgrad as torch
    >>> torch.svd(torch.tensor([[0., 2.], [1., 0.]])).S
    tensor([2., 1.])
    """
    check_tensor(input, "svd", "input", 1)
    if input.array.ndim < 2:
        raise RuntimeError(f"linalg.svd: input should have at least 2 dimensions, but has {input.array.ndim} "
                           f"dimensions instead")
    if compute_uv:
        left, sizes, right = svd(input, not some)
        return return_types.svd(left, sizes, adjoint(right))
    *lead, m, n = input.array.shape
    return return_types.svd(input.new_zeros((*lead, m, m)), svdvals(input), transposed(input.new_zeros((*lead, n, n))))
