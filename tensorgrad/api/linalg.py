"""Linear algebra: norms, products, systems of equations, inverses, determinants. https://pytorch.org/docs/stable/linalg.html"""
from __future__ import annotations

from math import inf, prod
from typing import Any

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core.dispatch import xp
from ..core.tape import TensorBase
from ..ops.linalg import LinAlgError  # noqa: F401
from . import matrix as _matrix
from . import reduction as _reduction
from . import return_types
from ._arguments import check_tensor, in_dtype, normalize_dim
from ._kinds import Dtype, Index, Ints, Ints1, Number
from ._linalg import (
    LINALG,
    as_column,
    check_fits,
    check_info,
    check_matrix,
    check_shape,
    counts_as_vectors,
    from_column,
    inverse_of,
    kind_of,
    linalg,
    transposed,
)
from ._register import public
from .factorizations import eigvalsh, svdvals
from .splitting import diagonal as _diagonal

# ── norms ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@linalg()
def vector_norm(input: Tensor, ord: Number = 2, dim: Ints1 | None = None, keepdim: bool = False, *,
                dtype: Dtype | None = None) -> Tensor:
    """(Σ |x|^ord)^(1/ord) over axes; the greatest |x| for ∞, the least for −∞, the number of nonzero x for 0.

    Input: (*), floating point or complex
    Output: the input's shape without the axes `dim` (by default all), which keepdim keeps as 1; real
    Errors: RuntimeError for integers, for a dtype that narrows, or if there is no element to take a norm ±∞ of;
        IndexError if dim is out of range; TypeError if ord is not a number
    https://pytorch.org/docs → torch.linalg.vector_norm

    >>> import tensorgrad as torch
    >>> torch.linalg.vector_norm(torch.tensor([3., 4.]))
    tensor(5.)
    """
    check_tensor(input, "linalg_vector_norm", "input", 1)
    if isinstance(ord, TensorBase) and ord.array.ndim:
        raise TypeError("linalg_vector_norm(): argument 'ord' (position 2) must be Number, not Tensor")
    if dtype is not None and input.array.dtype.kind in "fc" and dtypes.promote_types(input.dtype, wanted := dtypes.as_dtype(dtype)) is not wanted:
        raise RuntimeError(f"linalg.vector_norm: the dtype of the input ({kind_of(input)}) should be convertible without narrowing to the specified dtype "
                           f"({dtypes.SCALAR_TYPES[wanted.name]})")
    return _reduction.vector_norm(input, ord, dim, keepdim, dtype=dtype)


@linalg()
def matrix_norm(input: Tensor, ord: Number | str = "fro", dim: Ints = (-2, -1), keepdim: bool = False, *,
                dtype: Dtype | None = None) -> Tensor:
    """'fro': the root of Σ |a|²; 'nuc': Σ σ; ±2: the greatest and least σ; ±1 and ±∞: the greatest and least sums of
    columns and rows.

    Input: (*, n, m), floating point or complex; full precision for 'nuc' and ±2
    Output: (*), or with keepdim (*, 1, 1); real
    Errors: RuntimeError if there are less than two axes, for integers, another ord, two equal axes, or halves with
        'nuc' or ±2; IndexError if an axis is out of range; TypeError if dim is not a pair
    https://pytorch.org/docs → torch.linalg.matrix_norm

    >>> import tensorgrad as torch
    >>> A = torch.tensor([[3., 0.], [0., -4.]])
    >>> torch.linalg.matrix_norm(A), torch.linalg.matrix_norm(A, 2), torch.linalg.matrix_norm(A, 'nuc')
    (tensor(5.), tensor(4.), tensor(7.))
    """
    check_tensor(input, "linalg_matrix_norm", "input", 1)
    check_shape(input, "linalg.matrix_norm", square=False)
    rows, columns = _two_axes(input, dim)
    if isinstance(ord, complex):
        raise RuntimeError("linalg.matrix_norm: Expected a non-complex scalar as the order of norm.")
    input = _in_norm_dtype(input, dtype)
    if ord == "fro":
        return _reduction.vector_norm(input, 2, (rows, columns), keepdim)
    if ord == "nuc" or ord in (2, -2):
        if input.array.dtype.itemsize == 2:
            raise RuntimeError(f"linalg.matrix_norm: Low precision dtypes not supported. Got {kind_of(input)}")
        others = tuple(a for a in range(input.array.ndim) if a not in (rows, columns))
        sizes = svdvals(xp.permute_dims(input, axes=(*others, rows, columns)))
        out = xp.sum(sizes, axis=(-1,), keepdims=False) if ord == "nuc" else _extreme(sizes, -1, False, ord > 0)
        return _with_axes(out, rows, columns) if keepdim else out
    if isinstance(ord, str) or abs(ord) not in (1, inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    added, chosen = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = xp.sum(xp.absolute(input), axis=(added,), keepdims=True)
    out = _extreme(sums, chosen, True, ord > 0)
    return out if keepdim else xp.squeeze(out, axis=(rows, columns))


def _two_axes(input: Any, dim: Any) -> tuple[int, int]:
    """The axes of rows and columns."""
    if not isinstance(dim, (tuple, list)):
        raise TypeError(f"linalg_matrix_norm() received an invalid combination of arguments - got (Tensor, dim={type(dim).__name__}), but expected "
                        "one of:")
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    rows, columns = (normalize_dim(d, input.array.ndim) for d in dim)
    if rows == columns:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    return rows, columns


def _in_norm_dtype(input: Any, dtype: Any) -> Any:
    """The input in the dtype to compute in."""
    if input.array.dtype.kind in "biu":
        raise RuntimeError(f"linalg.matrix_norm: Expected a floating point or complex tensor as input. Got {kind_of(input)}")
    if dtype is None:
        return input
    target = dtypes.as_dtype(dtype)
    name = _reduction.SCALAR_TYPES[target.name]
    if target.category < dtypes.FLOATING:
        raise RuntimeError(f"linalg.matrix_norm: dtype should be floating point or complex, but got {name}")
    if target.is_complex != (input.array.dtype.kind == "c"):
        wanted = "complex" if input.array.dtype.kind == "c" else "real"
        raise RuntimeError(f"linalg.matrix_norm: dtype should be {wanted} for {wanted} inputs, but got {name}")
    if dtypes.promote_types(input.dtype, target) != target:
        raise RuntimeError(f"linalg.matrix_norm: the dtype of the input ({kind_of(input)}) should be convertible without narrowing to the specified "
                           f"dtype ({name})")
    return in_dtype(input, target)


def _extreme(x: Any, axis: int, keepdim: bool, greatest: bool) -> Any:
    """The greatest or the least along an axis; of none, the greatest norm is 0."""
    if greatest and not x.array.shape[axis]:
        return xp.sum(x, axis=(axis,), keepdims=keepdim)
    return (_reduction.amax if greatest else _reduction.amin)(x, axis, keepdim)


def _with_axes(out: Any, rows: int, columns: int) -> Any:
    for axis in sorted((rows, columns)):
        out = xp.expand_dims(out, axis)
    return out


@linalg()
def norm(input: Tensor, ord: Number | str | None = None, dim: Ints1 | None = None, keepdim: bool = False, *,
         dtype: Dtype | None = None) -> Tensor:
    """The norm of a vector or a matrix; without `ord` and `dim`, the root of the sum of all squares.

    Input: (*), floating point or complex; 1-D or 2-D where ord is given without dim
    Output: the input's shape without the axes `dim` (by default all), which keepdim keeps as 1; real
    Errors: RuntimeError for integers, if dim has neither one nor two axes, if ord is given without dim for another
        number of axes, or if the ord is not one of `vector_norm` or `matrix_norm`; IndexError if dim is out of range
    https://pytorch.org/docs → torch.linalg.norm

    >>> import tensorgrad as torch
    >>> torch.linalg.norm(torch.tensor([[3., 4.], [0., 0.]])), torch.linalg.norm(torch.tensor([3., -4.]), 1)
    (tensor(5.), tensor(7.))
    """
    check_tensor(input, "linalg_norm", "input", 1)
    ndim = input.array.ndim
    axes = dim if isinstance(dim, (tuple, list)) else None if dim is None else (dim,)
    if axes is not None and len(axes) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(axes)}")
    if ord is None:
        return vector_norm(input, 2, axes, keepdim, dtype=dtype)
    if axes is None and ndim not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {ndim}D.")
    if isinstance(ord, str) or (ndim if axes is None else len(axes)) == 2:
        return matrix_norm(input, ord, (-2, -1) if axes is None else axes, keepdim, dtype=dtype)
    return vector_norm(input, ord, axes, keepdim, dtype=dtype)


@linalg()
def cond(input: Tensor, p: Number | str | None = None) -> Tensor:
    """‖A‖·‖A⁻¹‖; for the norms ±2, the ratio of the greatest and the least singular value.

    Input: (*, n, m), floating point or complex of full precision; n = m for the norms other than ±2
    Output: (*), real
    Errors: RuntimeError if there are less than two axes, for another norm, matrices that are not square where they must
        be, or integers
    https://pytorch.org/docs → torch.linalg.cond

    >>> import tensorgrad as torch
    >>> torch.linalg.cond(torch.tensor([[2., 0.], [0., 8.]]))
    tensor(4.)
    """
    check_tensor(input, "linalg_cond", "input", 1)
    shape = input.array.shape
    if len(shape) < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p not in (None, 2, -2, "fro", "nuc", 1, -1, inf, -inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if not input.array.size:
        return xp.sum(xp.absolute(input), axis=(-2, -1), keepdims=False)
    if p in (None, 2, -2):
        sizes = svdvals(input)
        ends = [sizes.select(-1, i) for i in ((-1, 0) if p == -2 else (0, -1))]
        return xp.divide(*ends)
    check_shape(input, f"linalg.cond(ord={float(p):g})" if not isinstance(p, str) else f"linalg.cond(ord={p})")
    if p == "nuc":
        sizes = svdvals(input)
        return xp.multiply(*(xp.sum(each, axis=(-1,), keepdims=False) for each in (sizes, xp.reciprocal(sizes))))
    inverse, info = inv_ex(input)
    return xp.where(xp.not_equal(info, 0), inf, xp.multiply(matrix_norm(input, p), matrix_norm(inverse, p)))


# ── products ──────────────────────────────────────────────────────────────────────────────────────────────────────────

LINALG["matmul"], LINALG["multi_dot"] = _matrix.matmul, linalg()(_matrix.multi_dot)


@linalg()
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Σ conj(x)·y along an axis.

    Input: (*, n), (*, n), of one dtype; they broadcast
    Output: (*)
    Errors: RuntimeError if the dtypes differ or the shapes do not broadcast; IndexError if dim is out of range
    https://pytorch.org/docs → torch.linalg.vecdot

    >>> import tensorgrad as torch
    >>> torch.linalg.vecdot(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1., 1.]))
    tensor([3., 7.])
    """
    check_tensor(x, "linalg_vecdot", "x", 1)
    check_tensor(y, "linalg_vecdot", "y", 2)
    if x.array.dtype != y.array.dtype:
        raise RuntimeError(f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {kind_of(x)} and y of type {kind_of(y)} "
                           "instead")
    return _matrix.vdot(x, y) if x.array.ndim == y.array.ndim == 1 else _matrix.vecdot(x, y, dim=dim)


@linalg()
def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """input × other of vectors with three elements along an axis.

    Input: two tensors of one dtype and number of axes, which broadcast, each of size 3 along dim
    Output: the broadcast shape
    Errors: RuntimeError if the axis is not of size 3, or the numbers of axes or the dtypes differ; IndexError if dim is
        out of range; NotImplementedError for booleans
    https://pytorch.org/docs → torch.linalg.cross

    >>> import tensorgrad as torch
    >>> torch.linalg.cross(torch.tensor([1., 0., 0.]), torch.tensor([0., 1., 0.]))
    tensor([0., 0., 1.])
    """
    return _matrix.cross(input, other, dim)


@linalg()
def matrix_power(input: Tensor, n: int) -> Tensor:
    """A square matrix to the power of n; of its inverse for negative n.

    Input: (*, n, n); floating point or complex for negative powers
    Output: (*, n, n)
    Errors: RuntimeError if the matrices are not square, or are integers for negative n; LinAlgError if they are
        singular for negative n; TypeError if n is not an integer
    https://pytorch.org/docs → torch.linalg.matrix_power

    >>> import tensorgrad as torch
    >>> torch.linalg.matrix_power(torch.tensor([[1., 1.], [0., 1.]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    if not isinstance(n, int):
        raise TypeError(f"linalg_matrix_power(): argument 'n' (position 2) must be int, not {type(n).__name__}")
    return _matrix.matrix_power(input, n)


@linalg(out=False)
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices, as a view.

    Input: (*, n, m)
    Output: (*, k), for k = min(n, m) without an offset
    Errors: IndexError if an axis is out of range; RuntimeError if the axes are equal
    https://pytorch.org/docs → torch.linalg.diagonal

    >>> import tensorgrad as torch
    >>> torch.linalg.diagonal(torch.tensor([[1., 2.], [3., 4.]]))
    tensor([1., 4.])
    """
    check_tensor(A, "linalg_diagonal", "A", 1)
    return _diagonal(A, offset, dim1, dim2)


@linalg(out=False)
def vander(x: Tensor, *, N: Index | None = None) -> Tensor:
    """Rows of powers 1, x, x², … of each element.

    Input: (*, n), any dtype but bool and halves
    Output: (*, n, N), with N = n by default
    Errors: RuntimeError if N is not above 1, or for booleans and halves
    https://pytorch.org/docs → torch.linalg.vander

    >>> import tensorgrad as torch
    >>> torch.linalg.vander(torch.tensor([2, 3]), N=3)
    tensor([[1, 2, 4],
            [1, 3, 9]])
    """
    check_tensor(x, "linalg_vander", "x", 1)
    if x.array.dtype.kind == "b" or x.array.dtype.itemsize == 2 and x.array.dtype.kind in "fV":
        raise RuntimeError(f"linalg.vander supports floating point, complex, and integer tensors, but got {kind_of(x)}")
    if not x.array.ndim:
        x = xp.reshape(x, (1,))
    shape = x.array.shape
    count = shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    powers = xp.cumprod(xp.broadcast_to(as_column(x), (*shape, count - 1)), axis=len(shape))
    return xp.concat([xp.ones_like(powers.narrow(-1, 0, 1)), powers], axis=len(shape))


# ── systems of equations ──────────────────────────────────────────────────────────────────────────────────────────────


def _check_system(a: Any, b: Any, left: bool, name: str) -> bool:
    """Raise unless A and B form a system of equations; return True if B is a stack of vectors."""
    check_tensor(b, f"linalg_{name}", "B", 2)
    check_matrix(a, f"linalg.{name}", kernel="lu_cpu")
    if a.array.dtype != b.array.dtype:
        raise RuntimeError(f"linalg.{name}: Expected A and B to have the same dtype, but found A of type {kind_of(a)} and B of type {kind_of(b)} "
                           "instead")
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
        return RuntimeError("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve is "
                            "equivalent to B / A.squeeze(-1)")
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
    return xp.in_columns(transposed(xp.solve_triangular(transposed(input), transposed(B), upper=not upper, unit=unitriangular)))


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
    sizes = svdvals(input.detach())
    rank = _rank_of(sizes, 0.0, rcond if driver != "gels" else _precision(input) * max(m, n))
    if driver == "gels":
        short = xp.less(rank, min(m, n))
        code = xp.where(short, xp.add(rank, 1), 0)
        check_info(code, "torch.linalg.lstsq", "The least squares solution could not be computed because the input matrix does not have full rank "
                   "(error code: {}).")
    solution = xp.in_columns(xp.matmul(xp.pseudo_inverse(input, 0.0, rcond if driver != "gels" else 0.0), rows))
    residuals, full = xp.absolute(xp.reshape(solution, (-1,)).narrow(0, 0, 0)), bool((rank.array == n).all())
    if m > n and driver != "gelsy" and full:
        away = xp.subtract(xp.matmul(input, solution), rows)
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
        raise RuntimeError(f"torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype {kind_of(input)} and other's "
                           f"dtype {kind_of(b)}")
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
        if isinstance(bound, TensorBase) and bound.array.dtype.kind == "c":
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
        raise TypeError(f"linalg_pinv() received an invalid combination of arguments - got ({type(input).__name__}), but expected one of:")
    if input.array.ndim < 2 or input.array.dtype.kind not in "fc" or input.array.dtype.itemsize == 2:  # type: ignore[attr-defined]
        raise RuntimeError(f"linalg.pinv({kind_of(input)}{{{list(input.array.shape)}}}): expected a tensor with 2 or more dimensions of float, "
                           "double, cfloat or cdouble types")
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
        raise TypeError(f"linalg_matrix_rank() received an invalid combination of arguments - got ({type(input).__name__}), but expected one of:")
    check_shape(input, "torch.linalg.matrix_rank", "input", square=False)
    _check_precision(input)
    tol, hermitian = (*former, *(tol, hermitian)[len(former):])
    if tol is not None:
        atol, rtol = tol, 0.0
    atol, rtol = _tolerances(input, atol, rtol, "torch.linalg.matrix_rank")
    input = input.detach()  # type: ignore[attr-defined]
    return _rank_of(xp.absolute(eigvalsh(input)) if hermitian else svdvals(input), atol, rtol)


# ── determinants ──────────────────────────────────────────────────────────────────────────────────────────────────────


@linalg()
def det(A: Tensor) -> Tensor:
    """det A.

    Input: (*, n, n), floating point or complex of full precision
    Output: (*)
    Errors: RuntimeError if the matrices are not square, or for integers; NotImplementedError for halves
    https://pytorch.org/docs → torch.linalg.det

    >>> import tensorgrad as torch
    >>> torch.linalg.det(torch.tensor([[2., 0.], [0., 4.]]))
    tensor(8.)
    """
    check_matrix(A, "linalg.det", kernel="lu_cpu")
    return xp.determinant(A)


@linalg()
def slogdet(A: Tensor) -> return_types.linalg_slogdet:
    """det A / |det A| and ln |det A|.

    Input: (*, n, n), floating point or complex of full precision
    Output: sign (*), logabsdet (*), which is real; 0 and −∞ for a singular matrix
    Errors: RuntimeError if the matrices are not square, or for integers and halves
    https://pytorch.org/docs → torch.linalg.slogdet

    >>> import tensorgrad as torch
    >>> torch.linalg.slogdet(torch.tensor([[-1., 0.], [0., 1.]])).sign
    tensor(-1.)
    """
    check_matrix(A, "linalg.slogdet")
    return return_types.linalg_slogdet(*xp.log_determinant(A))


@public(name="det")
def _det(input: Tensor) -> Tensor:
    """det A: `linalg.det`.

    Input: (*, n, n), floating point or complex of full precision
    Output: (*)
    Errors: RuntimeError if the matrices are not square, or for integers; NotImplementedError for halves
    https://pytorch.org/docs → torch.det

    >>> import tensorgrad as torch
    >>> torch.det(torch.tensor([[2., 0.], [0., 4.]]))
    tensor(8.)
    """
    check_tensor(input, "det", "input", 1)
    return det(input)


@public(name="slogdet", out=True)
def _slogdet(input: Tensor) -> return_types.slogdet:
    """det A / |det A| and ln |det A|: `linalg.slogdet`.

    Input: (*, n, n), floating point or complex of full precision
    Output: sign (*), logabsdet (*), which is real
    Errors: RuntimeError if the matrices are not square, or for integers and halves
    https://pytorch.org/docs → torch.slogdet

    >>> import tensorgrad as torch
    >>> torch.slogdet(torch.tensor([[-1., 0.], [0., 1.]])).logabsdet
    tensor(0.)
    """
    check_tensor(input, "slogdet", "input", 1)
    return return_types.slogdet(*slogdet(input))


@public()
def logdet(input: Tensor) -> Tensor:
    """ln det A: NaN where that is negative, −∞ where it is zero.

    Input: (*, n, n), floating point or complex of full precision
    Output: (*)
    Errors: RuntimeError if the matrices are not square, or for integers and halves
    https://pytorch.org/docs → torch.logdet

    >>> import tensorgrad as torch
    >>> torch.logdet(torch.eye(3))
    tensor(0.)
    """
    check_matrix(input, "logdet", argument="input")
    sign, size = xp.log_determinant(input)
    if input.array.dtype.kind == "c":
        return xp.add(xp.log(sign), size)
    return xp.where(xp.equal(sign, -1), float("nan"), size)


# ── functions of matrices ─────────────────────────────────────────────────────────────────────────────────────────────


@linalg("matrix_exp", out=False)
def matrix_exp(input: Tensor) -> Tensor:
    """eᴬ = Σ Aᵏ/k!.

    Input: (*, n, n), floating point or complex
    Output: (*, n, n)
    Errors: RuntimeError if the matrices are not square, or for integers
    https://pytorch.org/docs → torch.linalg.matrix_exp

    >>> import tensorgrad as torch
    >>> torch.linalg.matrix_exp(torch.tensor([[0., 1.], [0., 0.]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    check_tensor(input, "linalg_matrix_exp", "input", 1)
    check_shape(input, "linalg.matrix_exp")
    if input.array.dtype.kind in "biu":
        raise RuntimeError(f"linalg.matrix_exp: Expected a floating point or complex tensor as input. Got {kind_of(input)}")
    return xp.matrix_exponential(input)


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
        raise RuntimeError(f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {prod(last)} != "
                           f"{prod(first)}")
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
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got "
                           f"{prod(last)} != {rows if rows != prod(last) else prod(other.array.shape)}")
    if input.array.dtype != other.array.dtype:
        raise RuntimeError(f"linalg.solve: Expected A and B to have the same dtype, but found A of type {kind_of(input)} and B of type {kind_of(other)} "
                           "instead")
    flat = solve(xp.reshape(input, (rows, rows)), xp.reshape(other, (rows,)))
    return xp.reshape(flat, last)


globals().update(LINALG)
