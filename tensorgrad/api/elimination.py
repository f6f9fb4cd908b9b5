"""Factorizations by elimination, LU and LDLᴴ, and solvers that use them.
https://pytorch.org/docs/stable/linalg.html#matrix-decompositions"""
from __future__ import annotations

from typing import Any

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core.dispatch import namespace, xp
from . import return_types
from ._arguments import check_tensor, is_unknown, refuse_complex32, warn
from ._linalg import (
    adjoint,
    check_fits,
    check_info,
    check_kernel,
    check_matrix,
    check_pair,
    check_shape,
    eye_beside,
    kind_of,
    linalg,
)
from ._register import public

# ── LU ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _lu(a: Any, pivot: bool, function: str) -> list[Any]:
    check_tensor(a, function.removeprefix("torch.").replace(".", "_"), "A", 1)
    if a.array.ndim < 2:
        where = "linalg.lu" if function == "linalg.lu" else "torch.lu_factor"
        raise RuntimeError(f"{where}: Expected tensor with 2 or more dimensions. Got size: {list(a.array.shape)} "
                           f"instead")
    if not a.array.size:          # no kernel runs for empty tensors
        *stack, m, n = a.array.shape
        return [xp.clone(a), *(a.new_zeros(shape, dtype=dtypes.int32) for shape in ((*stack, min(m, n)), stack))]
    check_kernel(a, "lu_cpu", function)
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    return xp.lu_factor(a)  # type: ignore[no-any-return]


def _check_lu(info: Any, function: str) -> None:
    check_info(info, f"torch.{function}", "U[{},{}] is zero and using it on lu_solve would result in a division by "
               "zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
               "linalg.lu_factor_ex(A, pivot)",
               RuntimeError)


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


PIVOTS = ("pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the result of "
          "lu_factor?")


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
    refuse_complex32(LU_data, "scatter_gather_scalar_cpu")
    if unpack_pivots and LU_pivots.array.dtype != dtypes.int32.numpy:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.")
    if LU_data.array.ndim < 2:
        raise RuntimeError(f"torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: "
                           f"{list(LU_data.array.shape)} instead")
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
        raise RuntimeError(f"torch.linalg.lu_solve: Expected a floating point or complex tensor as input. Got "
                           f"{kind_of(packed)}")
    if packed.array.dtype != b.array.dtype:
        raise RuntimeError(f"linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type "
                           f"{kind_of(packed)} and B of type {kind_of(b)} instead")
    if pivots.array.dtype != dtypes.int32.numpy:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    refuse_complex32(packed, "linalg.lu_solve_cpu")
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
        raise RuntimeError("Pivots given to lu_solve must all be greater or equal to 1. Did you properly pass the "
                           "result of lu_factor?")
    if known and int(pivots.array.max()) > packed.array.shape[-1]:
        raise RuntimeError("Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you properly "
                           "pass the result of lu_factor?")


def _lu_solve(packed: Any, pivots: Any, b: Any, turned: bool) -> Any:
    """U⁻¹·L⁻¹·Pᵀ·B, or P·L⁻ᴴ·U⁻ᴴ·B."""
    from .shape import broadcast_shapes
    n, columns = b.array.shape[-2:]
    lead = tuple(broadcast_shapes(packed.array.shape[:-2], b.array.shape[:-2]))
    order = xp.pivot_order(pivots, rows=n, back=turned)
    order = xp.broadcast_to(xp.expand_dims(order, -1), shape=(*lead, n, columns))

    def moved(x: Any) -> Any:
        return xp.place_along_axis(xp.broadcast_to(x, shape=(*lead, n, columns)), order, shape=(*lead, n, columns),
                                   axis=len(lead))
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
    warn("torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed in a future PyTorch "
         "release.\nNote that torch.linalg.lu_solve has its arguments reversed.\nX = torch.lu_solve(B, LU, "
         "pivots)\nshould be replaced with\nX = torch.linalg.lu_solve(LU, pivots, B)")
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
    warn("torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in "
         "a future PyTorch release.\nLU, pivots = torch.lu(A, compute_pivots)\nshould be replaced with\nLU, pivots = "
         "torch.linalg.lu_factor(A, compute_pivots)\nand\nLU, pivots, info = torch.lu(A, compute_pivots, "
         "get_infos=True)\nshould be replaced with\nLU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)")
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
        check_info(info, function, "The block {} of D is zero, and using it on ldl_solve would result in a division by "
                                   "zero.", RuntimeError)
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
        raise RuntimeError("torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got "
                           f"pivots with shape {list(pivots.array.shape)} instead")
    check_matrix(LD, "torch.linalg.ldl_solve", kernel="ldl_solve_kernel_cpu")
    return xp.ldl_solve(LD, pivots, B, hermitian=hermitian)
