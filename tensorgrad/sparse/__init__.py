"""torch.sparse: functions on sparse tensors. https://pytorch.org/docs/stable/sparse.html

>>> import tensorgrad as torch
>>> x = torch.tensor([[0., 2.], [3., 0.]]).to_sparse_csr()
>>> torch.sparse.mm(x, torch.ones(2, 1))
tensor([[2.],
        [3.]])
"""
from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ..api._arguments import normalize_dim as _normalize_dim
from ..api._arguments import normalize_dims as _normalize_dims
from ..api._sparse import rules as _rules
from ..api.matrix import addmm as _addmm
from ..api.matrix import mm as _mm
from ..api.sparse import sparse_coo_tensor as _coo_tensor
from ..api.sparse_methods import table as _table
from ..autograd.sparse_gradcheck import as_sparse_gradcheck
from ..dtype import SCALAR_TYPES as _SCALAR_TYPES
from ..dtype import int64 as _int64
from ..dtype import sparse_coo as _coo
from ..dtype import sparse_csc as _csc
from ..dtype import sparse_csr as _csr
from ..messages.unsupported import unsupported as _unsupported
from ..storage.sparse import SHOWN as _SHOWN
from ..storage.sparse import Coo as _Coo
from ..storage.sparse import pattern_of as _pattern_of
from .invariants import check_sparse_tensor_invariants
from .types import TYPES as _TYPES


def _expect_coo(x: Any, name: str) -> Any:
    pattern = _pattern_of(x)
    if not isinstance(pattern, _Coo):
        if pattern is not None:
            _rules().refuse(name, x)
        raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the 'CPU' backend.")
    return pattern


# ── products ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """The product of a sparse matrix with a sparse or a dense one; gradients flow to both.

    With `reduce`, "sum", "mean", "amax" or "amin", the products that make up an element are combined so; the first
    matrix is sparse_csr then, and the second dense.

    Input: (n, k), (k, m), of one dtype
    Output: (n, m): dense, or sparse if both are sparse
    Errors: RuntimeError if an operand is not 2-D, or k or the dtypes differ; NotImplementedError for reduce with other
        layouts
    https://pytorch.org/docs → torch.sparse.mm

    >>> import tensorgrad as torch
    >>> torch.sparse.mm(torch.eye(2).to_sparse(), torch.tensor([[1., 2.], [3., 4.]]))
    tensor([[1., 2.],
            [3., 4.]])
    """
    for place, (name, value) in enumerate((("sparse", mat1), ("dense", mat2)), 1):
        if not isinstance(value, Tensor):
            raise TypeError(f"_sparse_mm(): argument '{name}' (position {place}) must be Tensor, not "
                            f"{type(value).__name__}")
    if reduce is None:
        out = _mm(mat1, mat2)
        return _rules().named(out, "SparseAddmm") if _pattern_of(out) is None else out  # type: ignore[no-any-return]
    pattern = _pattern_of(mat1)
    if pattern is None or pattern.layout is not _csr:
        _rules().refuse("_sparse_mm_reduce_impl", mat1 if pattern is not None else mat2)
    if mat1.ndim != 2 or mat2.ndim != 2 or mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({mat1.shape[0]}x{mat1.shape[-1]} and "
                           f"{mat2.shape[0]}x{mat2.shape[-1]})")
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise RuntimeError("reduce argument must be either sum, mean, amax or amin, got " + str(reduce))
    from ..interpret.sparse_products import reduced_matmul
    return reduced_matmul(_table(mat1), mat1, mat2, reduce)  # type: ignore[no-any-return]


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """beta·mat + alpha·(mat1 @ mat2) of a sparse matrix mat1; gradients flow to all three.

    Input: mat broadcastable to (n, m); mat1 (n, k); mat2 (k, m); all of one dtype
    Output: (n, m)
    Errors: as for torch.addmm
    https://pytorch.org/docs → torch.sparse.addmm

    >>> import tensorgrad as torch
    >>> torch.sparse.addmm(torch.ones(2, 1), torch.eye(2).to_sparse(), torch.tensor([[1.], [3.]]))
    tensor([[2.],
            [4.]])
    """
    return _addmm(mat, mat1, mat2, beta=beta, alpha=alpha)  # type: ignore[no-any-return]


def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0,
                  out: Tensor | None = None) -> Tensor:
    """beta·input + alpha·(mat1 @ mat2), at the places of a sparse matrix alone.

    Input: input (*, n, m) or (n, m), sparse_csr; mat1 (*, n, k) and mat2 (*, k, m), dense; all of one dtype
    Output: (*, n, m), sparse_csr
    Errors: NotImplementedError for other layouts; RuntimeError if the sizes or dtypes do not fit
    https://pytorch.org/docs → torch.sparse.sampled_addmm

    >>> import tensorgrad as torch
    >>> x = torch.eye(2).to_sparse_csr()
    >>> torch.sparse.sampled_addmm(x, torch.tensor([[1.], [2.]]), torch.tensor([[3., 4.]])).values()
    tensor([4., 9.])
    """
    _check_sampled(input, mat1, mat2)
    from ..interpret.sparse_products import sampled_addmm as sampled
    found = sampled(_table(input), input, mat1, mat2, beta, alpha)
    return _rules().named(found, "SparseSampledAddmm") if out is None else out.copy_(found)  # type: ignore[no-any-return]


def _check_sampled(input: Any, mat1: Any, mat2: Any) -> None:
    """Raise PyTorch's errors for operands of `sampled_addmm` that do not fit."""
    pattern, name = _pattern_of(input), "sparse_sampled_addmm"
    if pattern is None or pattern.layout is _coo:
        _rules().refuse(name, input) if pattern is not None else None
        raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the 'CPU' backend.")
    if pattern.layout is not _csr:
        raise RuntimeError("sampled_addmm: Expected result to have sparse csr layout, but got "
                           f"{_SHOWN[pattern.layout]}")
    for number, t in (("mat1", mat1), ("mat2", mat2)):
        if (found := _pattern_of(t)) is not None:
            raise RuntimeError(f"sampled_addmm: Expected {number} to have strided layout, but got "
                               f"{_SHOWN[found.layout]}")
    if mat1.dtype is not mat2.dtype or mat1.dtype is not input.dtype:
        names, one, two = (("mat1 and mat2", mat1, mat2) if mat1.dtype is not mat2.dtype else
                           ("mat1 and self", mat1, input))
        raise RuntimeError(f"sampled_addmm: Expected {names} to have the same dtype, but got "
                           f"{_SCALAR_TYPES[one.dtype.name]} and {_SCALAR_TYPES[two.dtype.name]}")
    for number, t in (("mat1", mat1), ("mat2", mat2)):
        if t.ndim < 2:
            raise RuntimeError(f"sampled_addmm: Expected {number} to be a matrix, got {t.ndim}-D tensor")
    batches = [pattern.batch, *(tuple(t.shape[:-2]) for t in (mat1, mat2))]
    if batches[1] != batches[2] or batches[0] not in ((), batches[1]):
        names, one, two = (("mat1 and mat2", *batches[1:]) if batches[1] != batches[2] else
                           ("self and mat1", *batches[:2]))
        raise RuntimeError(f"sampled_addmm: Expected {names} to have the same batch size, but got {list(one)} and "
                           f"{list(two)}")
    (n, k), (inner, m) = mat1.shape[-2:], mat2.shape[-2:]
    if k != inner:
        raise RuntimeError(f"sampled_addmm: mat1 and mat2 shapes cannot be multiplied ({n}x{k} and {inner}x{m})")
    for axis, (given, needed) in enumerate(zip(pattern.shape[len(pattern.batch):], (n, m))):
        if given != needed:
            raise RuntimeError(f"sampled_addmm: self.shape[{axis - 2}] must match mat{axis + 1}.shape[{axis - 2}]")


# ── reductions ────────────────────────────────────────────────────────────────────────────────────────────────────────


def sum(input: Tensor, dim: int | tuple[int, ...] | None = None, dtype: Any = None) -> Tensor:
    """The sum of all values, or along dimensions, which it drops: sparse, if sparse dimensions are left.

    Output: dense without dim, or if all sparse dimensions are summed over; else sparse_coo
    https://pytorch.org/docs → torch.sparse.sum

    >>> import tensorgrad as torch
    >>> torch.sparse.sum(torch.tensor([[1., 2.], [0., 3.]]).to_sparse(), 0).to_dense()
    tensor([1., 5.])
    """
    x = input if dtype is None else input.to(dtype)  # type: ignore[attr-defined]
    if _pattern_of(x) is None:
        raise NotImplementedError("Could not run 'aten::_sparse_sum' with arguments from the 'CPU' backend.")
    _rules()
    axes = None if dim is None else _normalize_dims(dim, len(x.shape))
    found = _rules().RULES["sum"](_table(x), x, axis=axes)
    if axes is not None and found.dtype is not x.dtype and _pattern_of(found) is not None:
        found = found.to(x.dtype)
    return found if found is x else _rules().named(found, "SparseSum")  # type: ignore[no-any-return]


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The softmax of the values along a dimension; a place without a value counts as −∞.

    Output: the places of the input
    Errors: IndexError if dim is out of range; NotImplementedError unless the layout is sparse_coo
    https://pytorch.org/docs → torch.sparse.softmax

    >>> import tensorgrad as torch
    >>> torch.sparse.softmax(torch.tensor([[0., 2., 2.]]).to_sparse(), 1).to_dense()
    tensor([[0.0000, 0.5000, 0.5000]])
    """
    return _along(input, dim, dtype, False)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`.

    Output: the places of the input
    Errors: as for softmax
    https://pytorch.org/docs → torch.sparse.log_softmax

    >>> import tensorgrad as torch
    >>> torch.sparse.log_softmax(torch.tensor([[0., 2., 2.]]).to_sparse(), 1).values()
    tensor([-0.6931, -0.6931])
    """
    return _along(input, dim, dtype, True)


def _along(input: Any, dim: int, dtype: Any, log: bool) -> Any:
    x = input if dtype is None else input.to(dtype)
    name = "_sparse_log_softmax" if log else "_sparse_softmax"
    _expect_coo(x, name)
    axis = _normalize_dim(dim, len(x.shape))
    if not x.is_floating_point():
        raise NotImplementedError(f"\"{'log_' * log}softmax\" not implemented for '{_SCALAR_TYPES[x.dtype.name]}'")
    from ..interpret.sparse_products import softmax as along
    return _rules().named(along(_table(x), x, axis, log), "SparseLogSoftmax" if log else "SparseSoftmax")


# ── making ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def spdiags(diagonals: Tensor, offsets: Tensor, shape: tuple[int, int], layout: Any = None) -> Tensor:
    """A sparse matrix of diagonals: row i of `diagonals` is that at `offsets[i]`, above the main one if positive.

    An element's place along its diagonal is its column.

    Input: diagonals (k, n) or (n); offsets (k) or (), distinct; shape: two sizes
    Output: shape, sparse_coo, or of the layout sparse_csr or sparse_csc
    Errors: RuntimeError for offsets that are not distinct, or as many as diagonals, a shape of other than two sizes, or
        another layout
    https://pytorch.org/docs → torch.sparse.spdiags

    >>> import tensorgrad as torch
    >>> torch.sparse.spdiags(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([0, 1]), (2, 2)).to_dense()
    tensor([[1., 4.],
            [0., 2.]])
    """
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if layout not in (None, _coo, _csr, _csc):
        raise RuntimeError("Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got "
                           f"{_SHOWN.get(layout, 'Strided')}")
    lines = diagonals if diagonals.ndim == 2 else diagonals.unsqueeze(0)  # type: ignore[attr-defined]
    if lines.ndim != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if offsets.ndim > 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if offsets.dtype is not _int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {_SCALAR_TYPES[offsets.dtype.name]}")
    places = [int(o) for o in offsets.reshape(-1).tolist()]  # type: ignore[attr-defined]
    if len(places) != lines.shape[0]:
        raise RuntimeError(f"Number of diagonals ({lines.shape[0]}) does not match the number of offsets "
                           f"({len(places)})")
    if len(set(places)) != len(places):
        raise RuntimeError("Offset tensor contains duplicate values")
    rows, columns, which, at = _diagonals(places, int(lines.shape[1]), *map(int, shape))
    out = _coo_tensor([rows, columns], lines[which, at] if which else lines.reshape(-1)[:0], shape)
    return out if layout in (None, _coo) else out.to_sparse(layout=layout)


def _diagonals(offsets: list[int], length: int, rows: int, columns: int) -> list[list[int]]:
    """Of each element on a diagonal its row, its column, the number of the diagonal, and the place along it."""
    import numpy as np
    parts: list[Any] = []
    for number, offset in enumerate(offsets):
        column = np.arange(max(offset, 0), min(length, columns, rows + offset))
        parts.append(np.stack([column - offset, column, np.full_like(column, number), column]))
    joined = np.concatenate(parts, axis=1) if parts else np.zeros((4, 0), dtype="int64")
    return joined.tolist()  # type: ignore[no-any-return]


def spsolve(input: Tensor, other: Tensor, *, left: bool = True) -> Tensor:
    """Solve a sparse system: on CUDA alone, as in PyTorch. https://pytorch.org/docs → torch.sparse.spsolve"""
    if _pattern_of(input) is not None:
        _rules().refuse("_spsolve", input)
    raise NotImplementedError("Could not run 'aten::_spsolve' with arguments from the 'CPU' backend.")


_SEMI = ("to_sparse_semi_structured SparseSemiStructuredTensor SparseSemiStructuredTensorCUTLASS "
         "SparseSemiStructuredTensorCUSPARSELT")
globals().update(_unsupported(_SEMI, "torch.sparse", "the 2:4 pattern is for tensor cores"))
globals().update(_TYPES)

__all__ = ["addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm",
           "softmax", "spdiags", "spsolve", "sum", *_SEMI.split(), *_TYPES]
