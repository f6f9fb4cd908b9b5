"""Factorizations of matrices, and solvers that use them: Cholesky, QR, LU, LDLᴴ, eigenvalues, singular values.
https://pytorch.org/docs/stable/linalg.html#matrix-decompositions"""
from __future__ import annotations

from typing import Any

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core.dispatch import namespace, xp
from . import return_types
from ._arguments import check_tensor, is_unknown, warn
from ._linalg import (
    NOT_POSITIVE,
    SINGULAR,
    adjoint,
    check_fits,
    check_info,
    check_kernel,
    check_matrix,
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


def check_pair(b: Any, a: Any, name: str) -> None:
    """Raise the errors of the older functions that solve A·X = B."""
    if a.array.dtype != b.array.dtype:
        raise RuntimeError(f"Expected b and A to have the same dtype, but found b of type {kind_of(b)} and A of type {kind_of(a)} instead.")
    m, n = a.array.shape, b.array.shape
    if m[-1] != m[-2]:
        raise RuntimeError(f"A must be batches of square matrices, but they are {m[-2]} by {m[-1]} matrices")
    if m[-1] != n[-2]:
        raise RuntimeError(f"Incompatible matrix sizes for {name}: each A matrix is {m[-1]} by {m[-1]} but each b matrix is {n[-2]} by {n[-1]}")


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


# ── LU ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _lu(a: Any, pivot: bool, function: str) -> list[Any]:
    check_tensor(a, function.removeprefix("torch.").replace(".", "_"), "A", 1)
    if a.array.ndim < 2:
        where = "linalg.lu" if function == "linalg.lu" else "torch.lu_factor"
        raise RuntimeError(f"{where}: Expected tensor with 2 or more dimensions. Got size: {list(a.array.shape)} instead")
    if not a.array.size:          # no kernel runs for empty tensors
        *stack, m, n = a.array.shape
        return [xp.clone(a), *(a.new_zeros(shape, dtype=dtypes.int32) for shape in ((*stack, min(m, n)), stack))]
    check_kernel(a, "lu_cpu", function)
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    return xp.lu_factor(a)  # type: ignore[no-any-return]


def _check_lu(info: Any, function: str) -> None:
    check_info(info, f"torch.{function}", "U[{},{}] is zero and using it on lu_solve would result in a division by zero. If you still want to "
               "perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)", RuntimeError)


@linalg()
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> return_types.linalg_lu_factor_ex:
    """`lu_factor`, and for each matrix one plus the place of the first zero on the diagonal of U, or 0.

    Input: (*, m, n), floating point or complex of full precision
    Output: LU (*, m, n), pivots (*, min(m, n)) and info (*) of int32
    Errors: RuntimeError if there are less than two axes, without pivoting, or if check_errors is set and U has a zero
        on its diagonal; NotImplementedError for integers and halves
    https://pytorch.org/docs → torch.linalg.lu_factor_ex

    >>> import tensorgrad as torch
    >>> torch.linalg.lu_factor_ex(torch.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """
    packed, pivots, info = _lu(A, pivot, "linalg.lu_factor_ex")
    if check_errors:
        _check_lu(info, "linalg.lu_factor_ex")
    return return_types.linalg_lu_factor_ex(packed, pivots, info)


@linalg()
def lu_factor(A: Tensor, *, pivot: bool = True) -> return_types.linalg_lu_factor:
    """L and U of P·L·U = A in one matrix, and the row that was exchanged with each row, from 1.

    Input: (*, m, n), floating point or complex of full precision
    Output: LU (*, m, n), pivots (*, min(m, n)) of int32
    Errors: RuntimeError if there are less than two axes, U has a zero on its diagonal, or without pivoting;
        NotImplementedError for integers and halves
    https://pytorch.org/docs → torch.linalg.lu_factor

    >>> import tensorgrad as torch
    >>> torch.linalg.lu_factor(torch.tensor([[1., 2.], [2., 2.]]))
    torch.return_types.linalg_lu_factor(
    LU=tensor([[2.0000, 2.0000],
            [0.5000, 1.0000]]),
    pivots=tensor([2, 2], dtype=torch.int32))
    """
    packed, pivots, info = _lu(A, pivot, "linalg.lu_factor")
    _check_lu(info, "linalg.lu_factor")
    return return_types.linalg_lu_factor(packed, pivots)


@linalg()
def lu(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, ...]:
    """P·L·U = A for a permutation P, a triangle L with ones on its diagonal and a triangle U.

    Input: (*, m, n), floating point or complex of full precision
    Output: P (*, m, m), L (*, m, k), U (*, k, n), for k = min(m, n)
    Errors: RuntimeError if there are less than two axes, or without pivoting; NotImplementedError for integers and
        halves
    https://pytorch.org/docs → torch.linalg.lu

    >>> import tensorgrad as torch
    >>> torch.linalg.lu(torch.tensor([[1., 2.], [2., 2.]])).L
    tensor([[1.0000, 0.0000],
            [0.5000, 1.0000]])
    """
    packed, pivots, _ = _lu(A, pivot, "linalg.lu")
    return return_types.linalg_lu(_permutation(pivots, packed), *_triangles(packed))


PIVOTS = "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the result of lu_factor?"


def _permutation(pivots: Any, like: Any) -> Any:
    """P as a matrix."""
    m, given = like.array.shape[-2], pivots.array
    if not is_unknown(pivots) and (not given.ndim or given.size and not 1 <= int(given.min()) <= int(given.max()) <= m):
        raise RuntimeError(PIVOTS)
    order = xp.pivot_order(pivots, rows=m)
    columns = namespace(type(order._storage)).arange(m, dtype=dtypes.int64)
    return xp.cast(xp.equal(xp.expand_dims(order, -1), columns), dtype=like.array.dtype)


def _triangles(packed: Any) -> tuple[Any, Any]:
    """L and U of their matrix."""
    m, n = packed.array.shape[-2:]
    k = min(m, n)
    below, above = (xp.get_slice(packed, index=(..., *part)) if m != n else packed for part in (
        (slice(None), slice(0, k)), (slice(0, k), slice(None))))
    return xp.add(xp.tril(below, k=-1), eye_beside(packed, m, k)), xp.triu(above)


@public(method=False, out=True)
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True,
              unpack_pivots: bool = True) -> return_types.lu_unpack:
    """P, L and U from the results of `lu_factor`.

    Input: LU (*, m, n), pivots (*, k) of int32, for k = min(m, n)
    Output: P (*, m, m), L (*, m, k), U (*, k, n); those that are not asked for are empty
    Errors: RuntimeError if the pivots are not int32 or not in [1, m], or LU has less than two axes
    https://pytorch.org/docs → torch.lu_unpack

    >>> import tensorgrad as torch
    >>> A = torch.tensor([[1., 2.], [2., 2.]])
    >>> P, L, U = torch.lu_unpack(*torch.linalg.lu_factor(A))
    >>> P @ L @ U
    tensor([[1., 2.],
            [2., 2.]])
    """
    check_tensor(LU_data, "lu_unpack", "LU_data", 1)
    if unpack_pivots and LU_pivots.array.dtype != dtypes.int32.numpy:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.")
    if LU_data.array.ndim < 2:
        raise RuntimeError(f"torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: {list(LU_data.array.shape)} instead")
    nothing = [LU_data.new_empty((0,)) for _ in range(3)]
    lower, upper = _triangles(LU_data) if unpack_data else nothing[1:]
    if unpack_pivots:
        *stack, m, n = LU_data.array.shape
        if not LU_pivots.array.ndim or LU_pivots.array.shape[-1] < min(m, n):
            raise RuntimeError(PIVOTS)
        LU_pivots = LU_pivots.narrow(-1, 0, min(m, n)).expand(*stack, min(m, n))      # PyTorch reads no more
    return return_types.lu_unpack(_permutation(LU_pivots, LU_data) if unpack_pivots else nothing[0], lower, upper)


@linalg()
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """X of A·X = B, of X·A = B, or of these with Aᴴ, from the results of `lu_factor`.

    Input: LU (*, n, n), pivots (*, n) of int32, B (*, n, k), or (*, k, n) with left=False; LU and B of one dtype
    Output: the shape of B, with the leading axes broadcast
    Errors: RuntimeError if LU is not square, they do not fit, the dtypes differ, B has less than two axes, or a pivot
        is not in [1, n]
    https://pytorch.org/docs → torch.linalg.lu_solve

    >>> import tensorgrad as torch
    >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[2., 0.], [0., 4.]]))
    >>> torch.linalg.lu_solve(LU, pivots, torch.tensor([[2.], [2.]]))
    tensor([[1.0000],
            [0.5000]])
    """
    _check_lu_solve(LU, pivots, B, left)
    if not left:
        return _adjoint(_lu_solve(LU, pivots, _adjoint(B), not adjoint))
    return _lu_solve(LU, pivots, B, adjoint)


_adjoint = adjoint


def _check_lu_solve(packed: Any, pivots: Any, b: Any, left: bool) -> None:
    for position, (name, t) in enumerate((("LU", packed), ("pivots", pivots), ("B", b)), 1):
        check_tensor(t, "linalg_lu_solve", name, position)
    if packed.array.dtype.kind in "biu":
        raise RuntimeError(f"torch.linalg.lu_solve: Expected a floating point or complex tensor as input. Got {kind_of(packed)}")
    if packed.array.dtype != b.array.dtype:
        raise RuntimeError(f"linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type {kind_of(packed)} and B of type "
                           f"{kind_of(b)} instead")
    if pivots.array.dtype != dtypes.int32.numpy:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    check_shape(packed, "torch.linalg.lu_solve")
    if b.array.ndim < 2:
        raise RuntimeError("linalg.lu_solve: The input tensor B must have at least 2 dimensions.")
    check_fits(packed, b, left, False, "linalg.lu_solve")
    if not pivots.array.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    if pivots.array.shape[-1:] != packed.array.shape[-1:]:
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    known = pivots.array.size and not is_unknown(pivots)
    if known and int(pivots.array.min()) < 1:
        raise RuntimeError("Pivots given to lu_solve must all be greater or equal to 1. Did you properly pass the result of lu_factor?")
    if known and int(pivots.array.max()) > packed.array.shape[-1]:
        raise RuntimeError("Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you properly pass the result of lu_factor?")


def _lu_solve(packed: Any, pivots: Any, b: Any, turned: bool) -> Any:
    """U⁻¹·L⁻¹·Pᵀ·B, or P·L⁻ᴴ·U⁻ᴴ·B."""
    from .shape import broadcast_shapes
    n, columns = b.array.shape[-2:]
    lead = tuple(broadcast_shapes(packed.array.shape[:-2], b.array.shape[:-2]))
    order = xp.pivot_order(pivots, rows=n, back=turned)
    order = xp.broadcast_to(xp.expand_dims(order, -1), shape=(*lead, n, columns))

    def moved(x: Any) -> Any:
        return xp.place_along_axis(xp.broadcast_to(x, shape=(*lead, n, columns)), order, shape=(*lead, n, columns), axis=len(lead))
    if turned:
        back = adjoint(packed)
        y = xp.solve_triangular(back, b, upper=False)
        return xp.in_columns(moved(xp.solve_triangular(back, y, upper=True, unit=True)))
    y = xp.solve_triangular(packed, moved(b), upper=False, unit=True)
    return xp.solve_triangular(packed, y, upper=True)


@public(name="lu_solve", out=True)
def _root_lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """X of A·X = B = input: `linalg.lu_solve`.

    Input: B (*, n, k), LU (*, n, n), pivots (*, n) of int32
    Output: (*, n, k)
    Errors: RuntimeError as for `linalg.lu_solve`
    https://pytorch.org/docs → torch.lu_solve

    >>> import tensorgrad as torch, warnings
    >>> with warnings.catch_warnings(action="ignore"):      # deprecated in favour of linalg.lu_solve
    ...     torch.lu_solve(torch.tensor([[2.], [2.]]), *torch.linalg.lu_factor(torch.eye(2) * 4))
    tensor([[0.5000],
            [0.5000]])
    """
    check_tensor(LU_data, "lu_solve", "LU_data", 2)
    warn("torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed in a future PyTorch release.\nNote that torch.linalg.lu_solve "
         "has its arguments reversed.\nX = torch.lu_solve(B, LU, pivots)\nshould be replaced with\nX = torch.linalg.lu_solve(LU, pivots, B)")
    check_shape(LU_data, "torch.linalg.lu_solve")
    return lu_solve(LU_data, LU_pivots, input)


@public(name="lu")
def _root_lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Tensor | None = None) -> tuple[Tensor, ...]:
    """LU, pivots and, with `get_infos`, info: `linalg.lu_factor_ex`.

    Input: (*, m, n), floating point or complex of full precision
    Output: LU (*, m, n), pivots (*, min(m, n)) and info (*) of int32
    Errors: RuntimeError if there are less than two axes, or without pivoting; NotImplementedError for integers and
        halves
    https://pytorch.org/docs → torch.lu

    >>> import tensorgrad as torch, warnings
    >>> with warnings.catch_warnings(action="ignore"):      # deprecated in favour of linalg.lu_factor
    ...     torch.lu(torch.tensor([[1., 2.], [2., 2.]]))[1]
    tensor([2, 2], dtype=torch.int32)
    """
    warn("torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in a future PyTorch release.\nLU, "
         "pivots = torch.lu(A, compute_pivots)\nshould be replaced with\nLU, pivots = torch.linalg.lu_factor(A, compute_pivots)\nand\nLU, pivots, info = "
         "torch.lu(A, compute_pivots, get_infos=True)\nshould be replaced with\nLU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)")
    found = lu_factor_ex(A, pivot=pivot)
    results: Any = return_types._lu_with_info(*found) if get_infos else tuple(found[:2])
    if out is None:
        return results
    from ._register import write_out
    return write_out(results, tuple(out))


# ── LDLᴴ ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@linalg()
def ldl_factor_ex(input: Tensor, *, hermitian: bool = False,
                  check_errors: bool = False) -> return_types.linalg_ldl_factor_ex:
    """`ldl_factor`, and for each matrix one plus the place of the first zero in D, or 0.

    Input: (*, n, n), symmetric or Hermitian, floating point or complex of full precision
    Output: LD (*, n, n), pivots (*, n) and info (*) of int32
    Errors: RuntimeError if the matrices are not square, for integers, or if check_errors is set and D has a zero block;
        NotImplementedError for halves
    https://pytorch.org/docs → torch.linalg.ldl_factor_ex

    >>> import tensorgrad as torch
    >>> torch.linalg.ldl_factor_ex(torch.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """
    return _ldl(input, hermitian, check_errors, "torch.linalg.ldl_factor_ex")


def _ldl(a: Any, hermitian: bool, check_errors: bool, function: str) -> Any:
    check_tensor(a, function.removeprefix("torch.").replace(".", "_"), "input", 1)
    check_matrix(a, "torch.linalg.ldl_factor_ex", kernel="ldl_factor_kernel_cpu")
    packed, pivots, info = xp.ldl_factor(a.detach(), hermitian=hermitian)
    if check_errors:
        check_info(info, function, "The block {} of D is zero, and using it on ldl_solve would result in a division by zero.", RuntimeError)
    return return_types.linalg_ldl_factor_ex(packed, pivots, info)


@linalg()
def ldl_factor(input: Tensor, *, hermitian: bool = False) -> return_types.linalg_ldl_factor:
    """L·D·Lᵀ (Hermitian: L·D·Lᴴ) = A in one matrix, for D with blocks of order one and two; and the exchanges of rows,
    as LAPACK writes them.

    Input: (*, n, n), symmetric or Hermitian, floating point or complex of full precision
    Output: LD (*, n, n), pivots (*, n) of int32
    Errors: RuntimeError if the matrices are not square, D has a zero block, or for integers; NotImplementedError for
        halves
    https://pytorch.org/docs → torch.linalg.ldl_factor

    >>> import tensorgrad as torch
    >>> torch.linalg.ldl_factor(torch.tensor([[4., 2.], [2., 2.]])).LD
    tensor([[4.0000, 0.0000],
            [0.5000, 1.0000]])
    """
    return return_types.linalg_ldl_factor(*_ldl(input, hermitian, True, "torch.linalg.ldl_factor")[:2])


@linalg()
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """X of A·X = B from the results of `ldl_factor`.

    Input: LD (*, n, n), pivots (*, n) of integers, B (*, n, k); LD and B of one dtype
    Output: (*, n, k)
    Errors: RuntimeError if they do not fit, the dtypes differ, or the pivots are not integers; IndexError if B has less
        than two axes
    https://pytorch.org/docs → torch.linalg.ldl_solve

    >>> import tensorgrad as torch
    >>> LD, pivots = torch.linalg.ldl_factor(torch.tensor([[4., 2.], [2., 2.]]))
    >>> torch.linalg.ldl_solve(LD, pivots, torch.tensor([[6.], [4.]]))
    tensor([[1.],
            [1.]])
    """
    for position, (name, t) in enumerate((("LD", LD), ("pivots", pivots), ("B", B)), 1):
        check_tensor(t, "linalg_ldl_solve", name, position)
    check_shape(LD, "torch.linalg.ldl_solve")
    if B.array.ndim < 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got -2)")
    check_pair(B, LD, "torch.linalg.ldl_solve")
    if pivots.array.dtype.kind not in "iu":
        raise RuntimeError(f"torch.linalg.ldl_solve: Expected pivots to be integers. Got {kind_of(pivots)}")
    if pivots.array.shape != LD.array.shape[:-1]:
        raise RuntimeError("torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
                           f"{list(pivots.array.shape)} instead")
    check_matrix(LD, "torch.linalg.ldl_solve", kernel="ldl_solve_kernel_cpu")
    return xp.ldl_solve(LD, pivots, B, hermitian=hermitian)


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
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'")
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
    warn("torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch release.\nThe boolean parameter 'some' has been "
         "replaced with a string parameter 'mode'.\nQ, R = torch.qr(A, some)\nshould be replaced with\nQ, R = torch.linalg.qr(A, 'reduced' if some else "
         "'complete')")
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
    return return_types.geqrf(*xp.householder_factors(input))


def _reflections(a: Any, tau: Any) -> tuple[Any, Any]:
    """V and T of I − V·T·Vᴴ, the product of the reflections I − τ·v·vᴴ (C. Puglisi, 1992): T = (I + D·S)⁻¹·D for D = diag τ and S the upper triangle
    of Vᴴ·V without its diagonal."""
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
        raise RuntimeError("torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if input.array.shape[-1] < tau.array.shape[-1]:
        raise RuntimeError("torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if tau.array.dtype != input.array.dtype:
        raise RuntimeError(f"torch.linalg.householder_product: tau dtype {kind_of(tau)} does not match input dtype {kind_of(input)}")
    check_kernel(input, "orgqr_cpu", "linalg_householder_product")
    m, n = input.array.shape[-2:]
    if not tau.array.size:      # no reflections: the result depends on neither operand
        return xp.in_columns(eye_beside(input, m, n).expand(input.array.shape)).requires_grad_(input.requires_grad or tau.requires_grad)
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
        raise RuntimeError(f"{function}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.array.ndim} and "
                           f"input.ndim is equal to {input.array.ndim}")
    if tau.array.shape[:-1] != input.array.shape[:-2]:
        raise RuntimeError(f"{function}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.array.shape[:-1])}")


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
        raise RuntimeError("torch.ormqr: Expected other to have the same number of dimensions as input, but got other.ndim equal to "
                           f"{other.array.ndim} and input.ndim is equal to {input.array.ndim}")
    for name, t in (("tau", tau), ("other", other)):
        if t.array.dtype != input.array.dtype:
            raise RuntimeError(f"torch.ormqr: Expected input and {name} to have the same dtype, but input has dtype{kind_of(input)} and {name} has "
                               f"dtype {kind_of(t)}")
    check_kernel(input, "ormqr_cpu", "ormqr", "input")


# ── eigenvalues ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _triangle(a: Any, uplo: Any, function: str) -> str:
    check_tensor(a, function.replace(".", "_"), "input", 1)
    check_shape(a, "linalg.eigh")
    if not isinstance(uplo, str):
        raise TypeError(f"{function.replace('.', '_')}(): argument 'UPLO' (position 2) must be str, not {type(uplo).__name__}")
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
    """Raise the errors for a general A. It may have infinities if only eigenvalues are needed, without gradients."""
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
        raise RuntimeError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.")


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
        raise RuntimeError(f"linalg.svd: input should have at least 2 dimensions, but has {input.array.ndim} dimensions instead")
    if compute_uv:
        left, sizes, right = svd(input, not some)
        return return_types.svd(left, sizes, adjoint(right))
    *lead, m, n = input.array.shape
    return return_types.svd(input.new_zeros((*lead, m, m)), svdvals(input), transposed(input.new_zeros((*lead, n, n))))


# ── systems with a triangle, as they were ─────────────────────────────────────────────────────────────────────────────


@public(out=True)
def triangular_solve(input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False,
                     unitriangular: bool = False) -> return_types.triangular_solve:
    """X of A·X = input, or of Aᵀ·X = input, for a triangle A; and a copy of A.

    Input: (*, n, k), A (*, n, n), of one dtype of full precision; leading axes broadcast
    Output: solution (*, n, k), cloned_coefficient (*, n, n)
    Errors: RuntimeError if an operand has less than two axes, A is not square, they do not fit, or the dtypes differ;
        NotImplementedError for integers and halves
    https://pytorch.org/docs → torch.triangular_solve

    >>> import tensorgrad as torch, warnings
    >>> with warnings.catch_warnings(action="ignore"):      # deprecated in favour of linalg.solve_triangular
    ...     torch.triangular_solve(torch.tensor([[4.], [8.]]), torch.tensor([[2., 1.], [0., 4.]])).solution
    tensor([[1.],
            [2.]])
    """
    check_tensor(A, "triangular_solve", "A", 2)
    warn("torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be removed in a future PyTorch release.\n"
         "torch.linalg.solve_triangular has its arguments reversed and does not return a copy of one of the inputs.\nX = torch.triangular_solve(B, "
         "A).solution\nshould be replaced with\nX = torch.linalg.solve_triangular(A, B).")
    for name, t in (("b", input), ("A", A)):
        if t.array.ndim < 2:
            raise RuntimeError(f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has {t.array.ndim} dimensions instead")
    check_pair(input, A, "triangular_solve")
    check_kernel(input, "triangular_solve_cpu", "triangular_solve", "input")
    matrix, upper = (transposed(A), not upper) if transpose else (A, upper)
    solution = xp.solve_triangular(matrix, input, upper=upper, unit=unitriangular)
    kept = xp.broadcast_to(A, shape=(*solution.array.shape[:-2], *A.array.shape[-2:]))
    if solution._node is not None and A._node is None:
        kept = xp.copied(input, kept)                   # a result of the step, too, although its gradient is zero
    return return_types.triangular_solve(solution, xp.in_columns(kept))
