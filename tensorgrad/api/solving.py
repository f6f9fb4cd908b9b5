"""Systems of equations, least squares, inverses and ranks of matrices, and of linear maps between tensors.
https://pytorch.org/docs/stable/linalg.html#solvers"""
from __future__ import annotations

from math import prod
from typing import Any

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core.dispatch import fresh, namespace, xp
from ..core.tape import TensorBase
from ..storage.sparse import pattern_of
from . import reduction as _reduction
from . import return_types
from ._arguments import check_tensor, in_dtype, normalize_dim, warn
from ._kinds import Ints
from ._linalg import (
    as_column,
    check_fits,
    check_info,
    check_kernel,
    check_matrix,
    check_pair,
    check_shape,
    counts_as_vectors,
    from_column,
    inverse_of,
    kind_of,
    linalg,
    transposed,
)
from ._register import public
from ._sparse import rules
from .factorizations import eigvalsh, svdvals

# ── systems of equations ──────────────────────────────────────────────────────────────────────────────────────────────


def _check_system(a: Any, b: Any, left: bool, name: str) -> bool:
    """Raise unless A and B form a system of equations; return True if B is a stack of vectors."""
    check_tensor(b, f"linalg_{name}", "B", 2)
    if isinstance(a, TensorBase) and a.array.dtype != b.array.dtype and a.array.dtype.kind not in "biu":
        raise RuntimeError(f"linalg.{name}: Expected A and B to have the same dtype, but found A of type {kind_of(a)} "
                           f"and B of type {kind_of(b)} instead")
    check_matrix(a, f"linalg.{name}", kernel="lu_cpu")
    vectors = name != "solve_triangular" and b.array.ndim > 0 and counts_as_vectors(a, b)
    if not vectors and b.array.ndim < 2:
        raise RuntimeError(f"linalg.{name}: The input tensor B must have at least 2 dimensions.")
    check_fits(a, b, left, vectors, f"linalg.{name}")
    return vectors


@linalg()
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> return_types.linalg_solve_ex:
    """`solve`, and for each system one plus the place where the elimination broke down, or 0.

    Input: A (*, n, n), B as for `solve`, floating point or complex of one dtype
    Output: result as B, info (*) of int32
    Errors: RuntimeError as for `solve`; LinAlgError if a matrix is singular and check_errors is set
    https://pytorch.org/docs → torch.linalg.solve_ex

    >>> import tensorgrad as torch
    >>> torch.linalg.solve_ex(torch.zeros(2, 2), torch.ones(2)).info
    tensor(1, dtype=torch.int32)
    """
    return _solve(A, B, left, check_errors, "solve_ex")


def _solve(a: Any, b: Any, left: bool, check_errors: bool, name: str) -> Any:
    if _check_system(a, b, left, "solve"):
        if not left:
            raise _no_rows(a.array.shape[-1])
        result, info = xp.solve_linear(a, as_column(b))
        result = from_column(result)
        result = xp.in_columns(result) if result.array.ndim > 1 else result
    elif left:
        result, info = xp.solve_linear(a, b)
    else:
        result, info = xp.solve_linear(transposed(a), transposed(b))
        result = transposed(result)
    if check_errors:
        check_info(info, f"torch.linalg.{name}", "The solver failed because the input matrix is singular.")
    return return_types.linalg_solve_ex(result, info)


def _no_rows(n: int) -> RuntimeError:
    """Return the error for vectors as rows."""
    if n == 1:
        return RuntimeError("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. "
                            "In this case linalg.solve is equivalent to B / A.squeeze(-1)")
    return RuntimeError(f"linalg.solve: Incompatible shapes of A and B for the equation XA = B ({n}x{n} and {n}x1)")


@linalg()
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X of A·X = B, or of X·A = B, for square matrices.

    Input: A (*, n, n), B (*, n, k), or vectors (n) or (*, n); with left=False B (*, k, n); floating point or complex of
        one dtype
    Output: the shape of B, with the leading axes broadcast
    Errors: LinAlgError if a matrix is singular; RuntimeError if A is not square, A and B do not fit, the dtypes differ,
        or they are integers; NotImplementedError for halves
    https://pytorch.org/docs → torch.linalg.solve

    >>> import tensorgrad as torch
    >>> torch.linalg.solve(torch.tensor([[2., 0.], [0., 4.]]), torch.tensor([2., 2.]))
    tensor([1.0000, 0.5000])
    """
    return _solve(A, B, left, True, "solve")[0]


@linalg()
def solve_triangular(input: Tensor, B: Tensor, *, upper: bool, left: bool = True,
                     unitriangular: bool = False) -> Tensor:
    """X of A·X = B, or of X·A = B, for a triangle A = input; `unitriangular`: with ones on its diagonal. Singular
    triangles give infinities.

    Input: A (*, n, n), B (*, n, k), or (*, k, n) with left=False; floating point or complex of full precision
    Output: the shape of B, with the leading axes broadcast, in A's dtype
    Errors: RuntimeError if A is not square, B has less than two axes, or they do not fit; NotImplementedError for
        integers and halves
    https://pytorch.org/docs → torch.linalg.solve_triangular

    >>> import tensorgrad as torch
    >>> torch.linalg.solve_triangular(torch.tensor([[2., 1.], [0., 4.]]), torch.tensor([[4.], [8.]]), upper=True)
    tensor([[1.],
            [2.]])
    """
    check_tensor(input, "linalg_solve_triangular", "input", 1)
    check_tensor(B, "linalg_solve_triangular", "B", 2)
    check_shape(input, "linalg.solve_triangular")
    if B.array.ndim < 2:
        raise RuntimeError("linalg.solve_triangular: The input tensor B must have at least 2 dimensions.")
    check_fits(input, B, left, False, "linalg.solve_triangular")
    if input.array.dtype.kind not in "fc" or input.array.dtype.itemsize == 2:
        raise NotImplementedError(f"\"triangular_solve_cpu\" not implemented for '{kind_of(input)}'")
    if input.array.dtype != B.array.dtype:
        B = in_dtype(B, input.dtype)
    if left:
        return xp.solve_triangular(input, B, upper=upper, unit=unitriangular)
    return xp.in_columns(transposed(xp.solve_triangular(transposed(input), transposed(B), upper=not upper,
                                                        unit=unitriangular)))


DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@linalg()
def lstsq(input: Tensor, b: Tensor, rcond: float | None = None, *,
          driver: str | None = None) -> return_types.linalg_lstsq:
    """The X of least ‖A·X − B‖, and among several the one of least ‖X‖.

    Input: A (*, m, n), B (*, m, k) or vectors (*, m), of one dtype of full precision
    Output: solution (*, n, k) or (*, n); residuals (*, k) where m > n, A has full rank and the driver is not 'gelsy',
        else empty; rank (*), empty for 'gels'; singular_values (*, min(m, n)) for 'gelsd' and 'gelss', else empty
    Errors: RuntimeError if m or the dtypes differ, A has less than two axes, for integers or halves, or for another
        driver; LinAlgError if the driver is 'gels' and the rank is not full
    https://pytorch.org/docs → torch.linalg.lstsq

    >>> import tensorgrad as torch
    >>> A = torch.tensor([[1., 0.], [1., 1.], [1., 2.]])
    >>> torch.linalg.lstsq(A, torch.tensor([[1.], [3.], [5.]])).solution
    tensor([[1.0000],
            [2.0000]])
    """
    check_tensor(b, "linalg_lstsq", "b", 2)
    vectors, driver = _check_least_squares(input, b, driver), driver or "gelsy"
    m, n = input.array.shape[-2:]
    rows = as_column(b) if vectors else b
    if rcond is None:
        rcond = _precision(input) * max(m, n)
    elif driver == "gelsd" and not 0 < rcond < 1:       # LAPACK's rule for this driver alone
        rcond = _precision(input)
    sizes = svdvals(input.detach())
    rank = _rank_of(sizes, 0.0, rcond if driver != "gels" else _precision(input) * max(m, n))
    if driver == "gels":
        short = xp.less(rank, min(m, n))
        code = xp.where(short, xp.add(rank, 1), 0)
        check_info(code, "torch.linalg.lstsq", "The least squares solution could not be computed because the input "
                   "matrix does not have full rank (error code: {}).")
    solution = xp.in_columns(xp.matmul(xp.pseudo_inverse(input, 0.0, rcond if driver != "gels" else 0.0), rows))
    residuals, full = xp.absolute(xp.reshape(solution, (-1,)).narrow(0, 0, 0)), bool((rank.array == n).all())
    if m > n and driver != "gelsy" and full:
        away = xp.subtract(xp.matmul(input, solution), rows if n else xp.zeros_like(rows))
        residuals = xp.sum(xp.square(xp.absolute(away)), axis=(-2,), keepdims=False)
    none = sizes.new_empty((0,))
    return return_types.linalg_lstsq(from_column(solution) if vectors else solution, residuals,
                                     rank if driver != "gels" else input.new_empty((0,), dtype=dtypes.int64),
                                     sizes if driver in ("gelsd", "gelss") else none)


def _check_least_squares(input: Any, b: Any, driver: Any) -> bool:
    """Raise the errors of `lstsq`; return True if B is a stack of vectors."""
    check_tensor(input, "linalg_lstsq", "input", 1)
    m, n = input.array.shape, b.array.shape
    if len(m) < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if not n:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    if input.array.dtype != b.array.dtype:
        raise RuntimeError(f"torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's "
                           f"dtype {kind_of(input)} and other's dtype {kind_of(b)}")
    vectors = counts_as_vectors(input, b)
    place = -1 if vectors else -2
    if m[-2] != n[place]:
        raise RuntimeError(f"torch.linalg.lstsq: input.size(-2) should match other.size({place})")
    if driver not in (None, *DRIVERS):
        raise RuntimeError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    _check_precision(input)
    return vectors


def _precision(x: Any) -> float:
    """The spacing of numbers at 1."""
    return dtypes.finfo(x.dtype).eps  # type: ignore[no-any-return]


def _check_precision(x: Any) -> None:
    if x.array.dtype.kind not in "fc" or x.array.dtype.itemsize == 2:
        raise RuntimeError("This function doesn't handle types other than float and double")


# ── systems with a triangle, as they were ─────────────────────────────────────────────────────────────────────────────


@public(out=True)
def triangular_solve(input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False,
                     unitriangular: bool = False) -> return_types.triangular_solve:
    """X of A·X = input, or of Aᵀ·X = input, for a triangle A; and a copy of A.

    A may be sparse_csr, or sparse_bsr with square blocks; it is solved as a dense matrix, of which there is no copy.

    Input: (*, n, k), A (*, n, n), of one dtype of full precision; leading axes broadcast
    Output: solution (*, n, k), cloned_coefficient (*, n, n), or empty if A is sparse
    Errors: RuntimeError if an operand has less than two axes, A is not square, they do not fit, or the dtypes differ;
        NotImplementedError for integers, halves and sparse_coo; ValueError for columns in a compressed layout
    https://pytorch.org/docs → torch.triangular_solve

    >>> import tensorgrad as torch, warnings
    >>> with warnings.catch_warnings(action="ignore"):      # deprecated in favour of linalg.solve_triangular
    ...     torch.triangular_solve(torch.tensor([[4.], [8.]]), torch.tensor([[2., 1.], [0., 4.]])).solution
    tensor([[1.],
            [2.]])
    """
    check_tensor(A, "triangular_solve", "A", 2)
    warn("torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be removed in a "
         "future PyTorch release.\ntorch.linalg.solve_triangular has its arguments reversed and does not return a copy "
         "of one of the inputs.\nX = torch.triangular_solve(B, A).solution\nshould be replaced with\nX = "
         "torch.linalg.solve_triangular(A, B).")
    for name, t in (("b", input), ("A", A)):
        if t.array.ndim < 2:
            raise RuntimeError(f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has "
                               f"{t.array.ndim} dimensions instead")
    if (own := pattern_of(A)) is not None and own.layout is dtypes.sparse_coo:
        rules().refuse("triangular_solve", A)
    check_pair(input, A, "triangular_solve")
    check_kernel(input, "triangular_solve_cpu" if own is None else "triangular_solve_out_sparse_csr_impl_mkl",
                 "triangular_solve", "input")
    if own is not None:
        A = _dense_triangle(A, own)
    matrix, upper = (transposed(A), not upper) if transpose else (A, upper)
    solution = xp.solve_triangular(matrix, input, upper=upper, unit=unitriangular)
    if own is not None:
        none = type(solution._storage).xp.zeros((0,), dtype=solution.array.dtype)
        return return_types.triangular_solve(solution if own.count else xp.full_like(solution, float("nan")),
                                             fresh(none, type(solution._storage)))
    kept = xp.broadcast_to(A, shape=(*solution.array.shape[:-2], *A.array.shape[-2:]))
    if solution._node is not None and A._node is None:
        kept = xp.copied(input, kept)                   # a result of the step, too, although its gradient is zero
    return return_types.triangular_solve(solution, xp.in_columns(kept))


def _dense_triangle(A: Any, own: Any) -> Any:
    """Return a sparse matrix as a dense one; raise PyTorch's errors for layouts that it does not solve."""
    if not own.by_rows:
        raise ValueError("triangular_solve: unsupported sparse layout.")
    if own.blocksize[0] != own.blocksize[1]:
        raise RuntimeError("MKL Sparse doesn't support matrices with non-square blocks.")
    return rules().dense(namespace(own.backend), A)


# ── inverses ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@linalg()
def inv_ex(A: Tensor, *, check_errors: bool = False) -> return_types.linalg_inv_ex:
    """`inv`, and for each matrix one plus the place of the first zero on the diagonal of its LU factor, or 0.

    Input: (*, n, n), floating point or complex of full precision
    Output: inverse (*, n, n), info (*) of int32
    Errors: RuntimeError if the matrices are not square, or for integers and halves; LinAlgError if one is singular and
        check_errors is set
    https://pytorch.org/docs → torch.linalg.inv_ex

    >>> import tensorgrad as torch
    >>> torch.linalg.inv_ex(torch.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """
    check_tensor(A, "linalg_inv_ex", "A", 1)
    return return_types.linalg_inv_ex(*inverse_of(A, "linalg.inv_ex", check_errors))


@linalg()
def inv(A: Tensor) -> Tensor:
    """A⁻¹.

    Input: (*, n, n), floating point or complex of full precision
    Output: (*, n, n)
    Errors: LinAlgError if a matrix is singular; RuntimeError if they are not square, or for integers and halves
    https://pytorch.org/docs → torch.linalg.inv

    >>> import tensorgrad as torch
    >>> torch.linalg.inv(torch.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return inverse_of(A, "linalg.inv")[0]


@public(out="same")
def inverse(input: Tensor) -> Tensor:
    """A⁻¹: `linalg.inv`.

    Input: (*, n, n), floating point or complex of full precision
    Output: (*, n, n)
    Errors: LinAlgError if a matrix is singular; RuntimeError if they are not square, or for integers and halves
    https://pytorch.org/docs → torch.inverse

    >>> import tensorgrad as torch
    >>> torch.inverse(torch.tensor([[2.]]))
    tensor([[0.5000]])
    """
    check_tensor(input, "inverse", "input", 1)
    return inverse_of(input, "linalg.inv")[0]


def _tolerances(input: Any, atol: Any, rtol: Any, function: str) -> tuple[Any, Any]:
    """The absolute and relative bounds up to which singular values count as zero."""
    for name, bound in (("atol", atol), ("rtol", rtol)):
        if isinstance(bound, TensorBase) and bound.dtype.is_complex:
            raise RuntimeError(f"{function}: {name} tensor of complex type is not supported. Got {kind_of(bound)}")
    default = _precision(input) * max(input.array.shape[-2:])
    if rtol is None:
        if isinstance(atol, TensorBase):
            rtol = xp.where(xp.greater(atol, 0), 0.0, default)
        else:
            rtol = 0.0 if atol else default
    return 0.0 if atol is None else atol, rtol


@linalg()
def pinv(input: Tensor, *former: Any, atol: Tensor | float | None = None, rtol: Tensor | float | None = None,
         hermitian: bool = False, rcond: Tensor | float | None = None) -> Tensor:
    """A⁺, Moore and Penrose's inverse; singular values up to max(atol, rtol·σ₁) count as zero. The former names of
    arguments are taken too: rcond and hermitian, by position.

    Input: (*, m, n), floating point or complex of full precision; tolerances broadcast to (*)
    Output: (*, n, m)
    Errors: RuntimeError if there are less than two axes, for integers and halves, a complex tolerance, or if hermitian
        is set and the matrices are not square
    https://pytorch.org/docs → torch.linalg.pinv

    >>> import tensorgrad as torch
    >>> torch.linalg.pinv(torch.tensor([[2.], [0.]]))
    tensor([[0.5000, 0.0000]])
    """
    if not isinstance(input, TensorBase):
        raise TypeError(f"linalg_pinv() received an invalid combination of arguments - got ({type(input).__name__}), "
                        f"but expected one of:")
    if input.array.ndim < 2 or input.array.dtype.kind not in "fc" or input.array.dtype.itemsize == 2:  # type: ignore[attr-defined]
        raise RuntimeError(f"linalg.pinv({kind_of(input)}{{{list(input.array.shape)}}}): expected a tensor with 2 or "
                           "more dimensions of float, double, cfloat or cdouble types")
    rcond, hermitian = (*former, *(rcond, hermitian)[len(former):])
    if hermitian:
        check_shape(input, "linalg.eigh")
    atol, rtol = _tolerances(input, atol, rtol if rcond is None else rcond, "torch.linalg.pinv")
    lead = max((t.array.shape for t in (atol, rtol) if isinstance(t, TensorBase)), key=len, default=())
    if len(lead) > input.array.ndim - 2:
        input = xp.broadcast_to(input, (*lead, *input.array.shape[-2:]))
    return xp.pseudo_inverse(input, atol, rtol, hermitian=hermitian)


@public()
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """A⁺: `linalg.pinv`.

    Input: (*, m, n), floating point or complex of full precision
    Output: (*, n, m)
    Errors: RuntimeError if there are less than two axes, or for integers and halves
    https://pytorch.org/docs → torch.pinverse

    >>> import tensorgrad as torch
    >>> torch.pinverse(torch.tensor([[2.], [0.]]))
    tensor([[0.5000, 0.0000]])
    """
    check_tensor(input, "pinverse", "input", 1)
    return pinv(input, rcond)


def _rank_of(sizes: Any, atol: Any, rtol: Any) -> Any:
    """Return how many singular values are above the tolerance."""
    if not sizes.array.shape[-1]:
        return xp.sum(xp.cast(sizes, dtype="int64"), axis=(-1,), keepdims=False)
    atol, rtol = (as_column(bound) if isinstance(bound, TensorBase) else bound for bound in (atol, rtol))
    least = xp.maximum(xp.multiply(_reduction.amax(sizes, -1, True), rtol), atol)
    return xp.sum(xp.greater(sizes, least), axis=(-1,), keepdims=False)


@linalg()
def matrix_rank(input: Tensor, *former: Any, atol: Tensor | float | None = None, rtol: Tensor | float | None = None,
                hermitian: bool = False, tol: Tensor | float | None = None) -> Tensor:
    """The number of singular values above max(atol, rtol·σ₁). The former arguments are taken too: tol (for atol, with
    rtol = 0) and hermitian, by position.

    Input: (*, m, n), floating point or complex of full precision; tolerances broadcast to (*)
    Output: (*) of int64
    Errors: RuntimeError if there are less than two axes, for integers and halves, or a complex tolerance
    https://pytorch.org/docs → torch.linalg.matrix_rank

    >>> import tensorgrad as torch
    >>> torch.linalg.matrix_rank(torch.ones(3, 3))
    tensor(1)
    """
    if not isinstance(input, TensorBase):
        raise TypeError(f"linalg_matrix_rank() received an invalid combination of arguments - got "
                        f"({type(input).__name__}), but expected one of:")
    check_shape(input, "torch.linalg.matrix_rank", "input", square=False)
    _check_precision(input)
    tol, hermitian = (*former, *(tol, hermitian)[len(former):])
    if tol is not None:
        atol, rtol = tol, 0.0
    atol, rtol = _tolerances(input, atol, rtol, "torch.linalg.matrix_rank")
    input = input.detach()  # type: ignore[attr-defined]
    return _rank_of(xp.absolute(eigvalsh(input)) if hermitian else svdvals(input), atol, rtol)


# ── linear maps between tensors ───────────────────────────────────────────────────────────────────────────────────────


@linalg()
def tensorinv(input: Tensor, ind: int = 2) -> Tensor:
    """The inverse of a linear map between tensors; its first `ind` axes are those of the result.

    Input: (*, **), where `ind` axes * and the others ** have the same number of elements n
    Output: (**, *)
    Errors: RuntimeError if the numbers of elements differ or ind is not in [1, the number of axes]; LinAlgError if the
        n × n matrix is singular
    https://pytorch.org/docs → torch.linalg.tensorinv

    >>> import tensorgrad as torch
    >>> torch.linalg.tensorinv(torch.eye(6).reshape(2, 3, 6)).shape
    torch.Size([6, 2, 3])
    """
    check_tensor(input, "linalg_tensorinv", "input", 1)
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    shape = input.array.shape
    if ind > len(shape):
        raise RuntimeError(f"ArrayRef: invalid slice, N = {ind}; size = {len(shape)}")
    first, last = shape[:ind], shape[ind:]
    if prod(first) != prod(last):
        raise RuntimeError(f"Expected self to satisfy the requirement prod(self.shape[ind:]) == "
                           f"prod(self.shape[:ind]), but got {prod(last)} != {prod(first)}")
    return xp.reshape(inverse_of(xp.reshape(input, (prod(first), prod(last))), "inv")[0], (*last, *first))


@linalg()
def tensorsolve(input: Tensor, other: Tensor, dims: Ints | None = None) -> Tensor:
    """X of a linear map between tensors A·X = B; `dims` are axes of A to move to its end first.

    Input: A (*, **), where * and ** have the same number of elements n, B (*), of one dtype
    Output: (**)
    Errors: RuntimeError if the numbers of elements or the dtypes differ; LinAlgError if the n × n matrix is singular;
        IndexError if an axis is out of range
    https://pytorch.org/docs → torch.linalg.tensorsolve

    >>> import tensorgrad as torch
    >>> torch.linalg.tensorsolve(torch.eye(6).reshape(2, 3, 6), torch.ones(2, 3))
    tensor([1., 1., 1., 1., 1., 1.])
    """
    check_tensor(input, "linalg_tensorsolve", "input", 1)
    check_tensor(other, "linalg_tensorsolve", "other", 2)
    if dims is not None:
        ndim = input.array.ndim
        moved = [normalize_dim(d, ndim) for d in dims]
        input = xp.permute_dims(input, axes=(*(a for a in range(ndim) if a not in moved), *moved))
    count, shape = other.array.ndim, input.array.shape
    rows, last = prod(shape[:count]), shape[count:]
    if rows != prod(last) or rows != prod(other.array.shape):
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
                           f"prod(self.shape[:other.ndim]), but got {prod(last)} != "
                           f"{rows if rows != prod(last) else prod(other.array.shape)}")
    if input.array.dtype != other.array.dtype:
        raise RuntimeError(f"linalg.solve: Expected A and B to have the same dtype, but found A of type "
                           f"{kind_of(input)} and B of type {kind_of(other)} instead")
    flat = solve(xp.reshape(input, (rows, rows)), xp.reshape(other, (rows,)))
    return xp.reshape(flat, last)
