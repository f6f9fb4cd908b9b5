"""Linear algebra: norms, products, determinants, the exponential.
https://pytorch.org/docs/stable/linalg.html"""
from __future__ import annotations

from math import inf
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
from ._linalg import LINALG, as_column, check_matrix, check_shape, kind_of, linalg
from ._register import public
from .factorizations import svdvals
from .solving import inv_ex
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
    if (dtype is not None and (wanted := dtypes.as_dtype(dtype)).category >= dtypes.FLOATING
            and input.array.dtype.kind == ("c" if wanted.is_complex else "f")
            and dtypes.promote_types(input.dtype, wanted) is not wanted):
        raise RuntimeError(f"linalg.vector_norm: the dtype of the input ({kind_of(input)}) should be convertible "
                           f"without narrowing to the specified dtype ({dtypes.SCALAR_TYPES[wanted.name]})")
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
        if input.dtype.to_real().itemsize == 2:
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
        raise TypeError(f"linalg_matrix_norm() received an invalid combination of arguments - got (Tensor, "
                        f"dim={type(dim).__name__}), but expected one of:")
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    rows, columns = (normalize_dim(d, input.array.ndim) for d in dim)
    if rows == columns:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    return rows, columns


def _in_norm_dtype(input: Any, dtype: Any) -> Any:
    """The input in the dtype to compute in."""
    if input.array.dtype.kind in "biu":
        raise RuntimeError(f"linalg.matrix_norm: Expected a floating point or complex tensor as input. Got "
                           f"{kind_of(input)}")
    if dtype is None:
        return input
    target = dtypes.as_dtype(dtype)
    name = _reduction.SCALAR_TYPES[target.name]
    if target.category < dtypes.FLOATING:
        raise RuntimeError(f"linalg.matrix_norm: dtype should be floating point or complex, but got {name}")
    if target.is_complex != input.dtype.is_complex:
        wanted = "complex" if input.dtype.is_complex else "real"
        raise RuntimeError(f"linalg.matrix_norm: dtype should be {wanted} for {wanted} inputs, but got {name}")
    if dtypes.promote_types(input.dtype, target) != target:
        raise RuntimeError(f"linalg.matrix_norm: the dtype of the input ({kind_of(input)}) should be convertible "
                           f"without narrowing to the specified dtype ({name})")
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
        raise RuntimeError(f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {kind_of(x)} "
                           f"and y of type {kind_of(y)} instead")
    if x.array.dtype.kind in "biu":
        raise RuntimeError(f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {kind_of(x)}")
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
    if x.array.dtype.kind in "bV" or x.dtype is dtypes.float16:
        raise RuntimeError(f"linalg.vander supports floating point, complex, and integer tensors, but got {kind_of(x)}")
    if not x.array.ndim:
        x = xp.reshape(x, (1,))
    shape = x.array.shape
    count = shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    powers = xp.cumprod(xp.broadcast_to(as_column(x), (*shape, count - 1)), axis=len(shape))
    return xp.concat([xp.ones_like(powers.narrow(-1, 0, 1)), powers], axis=len(shape))


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
    if input.dtype.is_complex:
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
        raise RuntimeError(f"linalg.matrix_exp: Expected a floating point or complex tensor as input. Got "
                           f"{kind_of(input)}")
    return xp.matrix_exponential(input)


globals().update(LINALG)
