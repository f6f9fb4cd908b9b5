"""Conversions between dense tensors and the sparse layouts. https://pytorch.org/docs/stable/sparse.html"""
from __future__ import annotations

from typing import Any

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core.dispatch import fresh
from ..storage.sparse import SHOWN, Compressed, Coo, pattern_of, starts_of
from ._kinds import Dtype, Ints1, Layout
from ._register import public
from ._sparse import rules
from .sparse_methods import COLUMNS, COO, ROWS, shown, table

BLOCKED = (ROWS[1], COLUMNS[1])


def _refuse(x: Any, layout: Any, explicit: bool, why: str) -> None:
    """Raise PyTorch's error for a conversion; `explicit` if the name of the function says the layout."""
    own, suffix = pattern_of(x), f"_{str(layout).rpartition('_')[2]}" if explicit else ""
    if own is None:
        source = "dense_"
    elif own.layout is layout:
        source = ""
    elif isinstance(own, Coo):
        source = "coo_" if explicit else "sparse_coo_"
    else:
        source = "sparse_compressed_"
    raise RuntimeError(f"{source}to_sparse{suffix}: {why}")


def _check_arguments(x: Any, layout: Any, blocksize: Any, dense_dim: Any, explicit: bool) -> Any:
    """Return the size of blocks as a tuple, or None. Raises PyTorch's errors for arguments that do not fit."""
    own, blocked = pattern_of(x), layout in BLOCKED

    def refuse(why: str) -> None:
        _refuse(x, layout, explicit, why)

    def cannot(why: str) -> None:
        refuse(f"conversion from {shown(x)} to {SHOWN[layout]} {why} is not supported")
    if isinstance(own, Compressed) and not own.blocked and blocked and own.batch:
        cannot("for batched inputs")
    if isinstance(own, Coo) and layout is not COO and own.sparse_dim != 2:
        cannot("for input tensors with sparse_dim()!=2")
    if own is not None and dense_dim is not None:
        cannot("with dense_dim argument given")
    if blocksize is None:
        return cannot("without blocksize argument given") if blocked else None      # type: ignore[func-returns-value]
    blocksize = (blocksize, blocksize) if isinstance(blocksize, int) else tuple(map(int, blocksize))
    if len(blocksize) != 2:
        refuse(f"blocksize needs to be a tuple of size 2, but got {len(blocksize)}")
    if min(blocksize) < 1:
        refuse(f"blocksize needs to be positive, but got {list(blocksize)}")
    if not blocked:
        cannot("with blocksize argument given")
    if getattr(own, "blocked", False):
        if own.blocksize != blocksize:
            cannot(f"with blocksize changed from {list(own.blocksize)} to {list(blocksize)}")
        return blocksize
    inner = own.dense_dim if own is not None else dense_dim or 0
    sizes = tuple(x.array.shape[x.array.ndim - inner - 2:x.array.ndim - inner])
    if len(sizes) == 2 and any(n % b for n, b in zip(sizes, blocksize, strict=True)):
        refuse(f"tensor sparse size ({sizes[0]},{sizes[1]}) must be divisible by given blocksize "
               f"({blocksize[0]},{blocksize[1]})")
    return blocksize


@public(function=False)
def to_dense(input: Tensor, dtype: Dtype | None = None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor as a block of memory; a dense tensor is itself.

    Gradients flow to the places of the values. With masked_grad=False they are the whole gradient, in the layout of the
    tensor.

    Errors: RuntimeError for a dtype with a sparse tensor
    https://pytorch.org/docs → torch.Tensor.to_dense

    >>> import tensorgrad as torch
    >>> torch.sparse_coo_tensor([[1]], [2.], (3,)).to_dense()
    tensor([0., 2., 0.])
    """
    pattern = pattern_of(input)
    if pattern is None:
        return input if dtype is None else input.to(dtype)  # type: ignore[attr-defined, no-any-return]
    if dtype is not None:
        kind = "sparse_csr" if isinstance(pattern, Compressed) else "sparse"
        raise RuntimeError(f"dtype argument is not supported by {kind}_to_dense")
    return rules().dense(table(input), input, masked_grad is not False)  # type: ignore[no-any-return]


@public(function=False)
def to_sparse(input: Tensor, sparse_dim: int | None = None, *, layout: Layout | None = None,
              blocksize: Ints1 | None = None, dense_dim: int | None = None) -> Tensor:
    """The tensor in a sparse layout: the nonzeros of a dense one, or another layout of a sparse one.

    Input: sparse_dim: how many of the first dimensions are sparse; or layout, with blocksize for layouts of blocks, and
        dense_dim: how many of the last dimensions of a dense tensor are dense
    Errors: RuntimeError if these do not fit together, or to the tensor
    https://pytorch.org/docs → torch.Tensor.to_sparse

    >>> import tensorgrad as torch
    >>> torch.tensor([[0., 1.], [2., 0.]]).to_sparse()
    tensor(indices=tensor([[0, 1],
                           [1, 0]]),
           values=tensor([1., 2.]),
           size=(2, 2), nnz=2, layout=torch.sparse_coo)
    """
    if sparse_dim is not None:
        if layout is not None or blocksize is not None or dense_dim is not None:
            raise TypeError("to_sparse() takes 0 positional arguments but 1 was given")
        return _of_sparse_dim(input, sparse_dim)        # type: ignore[no-any-return]
    if layout is dtypes.strided:
        return to_dense(input)
    found: Tensor = _converted(input, COO if layout is None else layout, blocksize, dense_dim, False)
    return found


def _of_sparse_dim(x: Any, sparse_dim: int) -> Any:
    """The tensor in the layout sparse_coo, with so many sparse dimensions: another number only for a dense one."""
    own, ndim = pattern_of(x), x.array.ndim
    if own is not None:
        if sparse_dim != x.sparse_dim():
            wanted = "self.sparse_dim()" if isinstance(own, Coo) else x.sparse_dim()
            _refuse(x, COO, False, f"conversion from {shown(x)} to Sparse with sparse_dim argument !={wanted} is not "
                                   "supported")
        return _converted(x, COO, None, None, False)
    if not 0 <= sparse_dim <= ndim:
        raise RuntimeError(f"dense_to_sparse: sparse_dim argument must be in [0,{ndim}] range, but {sparse_dim} is "
                           "given")
    if ndim and not sparse_dim:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    return _nonzeros(x, sparse_dim, COO, None)


def _converted(x: Any, layout: Any, blocksize: Any, dense_dim: Any, explicit: bool) -> Any:
    """The tensor in a sparse layout; `explicit` if the name of the function says which."""
    own, ndim = pattern_of(x), x.array.ndim
    blocksize = _check_arguments(x, layout, blocksize, dense_dim, explicit)
    if own is None:
        inner, most = dense_dim or 0, ndim if layout is COO else ndim - 2
        if not 0 <= inner <= max(most, 0):
            _refuse(x, layout, explicit, f"dense_dim argument must be in [0,{max(most, 0)}] range, but {inner} is "
                                         "given")
        if layout is COO and inner == ndim > 0:
            _refuse(x, layout, explicit, "dense_dim argument must be !=self.dim() when self.dim()>0")
        if most < 0:
            raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got "
                             f"{-2 if layout in BLOCKED else 1})")
        if layout is not COO and 0 in x.array.shape[:ndim - inner - 2]:
            raise RuntimeError(f"to_sparse_{str(layout).rpartition('_')[2]}: Expected product of batch dimensions to "
                               "be non-zero.")
        return _nonzeros(x, ndim - inner, layout, blocksize)
    if own.layout is layout:
        return x
    if layout is COO:
        return rules().made(table(x), own.entries, rules().flat(table(x), x))
    if getattr(own, "blocked", False) and layout not in BLOCKED:
        raise RuntimeError(f"sparse_compressed_to_sparse_{str(layout).rpartition('_')[2]}: expected SparseCsr or "
                           f"SparseCsc layout but got {SHOWN[own.layout]}")
    return rules().in_layout(table(x), x, layout, blocksize)


def _nonzeros(x: Any, sparse_dim: int, layout: Any, blocksize: Any) -> Any:
    """The nonzeros of a dense tensor, in a sparse layout."""
    from ..storage.sparse_patterns import converted, of_nonzeros
    backend = type(x._storage)
    pattern = of_nonzeros(x.array, sparse_dim, backend)
    if layout is not COO:
        pattern = converted(pattern, layout, blocksize)
    name = {COO: "ToSparseBackward1", ROWS[0]: "ToSparseCsr", COLUMNS[0]: "ToSparseCsc", ROWS[1]: "ToSparseBsr",
            COLUMNS[1]: "ToSparseBsc"}[layout]
    return rules().named(rules().at(table(x), x, pattern), name)


@public(function=False)
def to_sparse_coo(input: Tensor) -> Tensor:
    """The tensor in the layout sparse_coo. https://pytorch.org/docs → torch.Tensor.to_sparse_coo"""
    return _converted(input, COO, None, None, True)  # type: ignore[no-any-return]


@public(function=False)
def to_sparse_csr(input: Tensor, dense_dim: int | None = None) -> Tensor:
    """The tensor in the layout sparse_csr: rows. https://pytorch.org/docs → torch.Tensor.to_sparse_csr

    >>> import tensorgrad as torch
    >>> torch.tensor([[0., 1.], [2., 3.]]).to_sparse_csr()
    tensor(crow_indices=tensor([0, 1, 3]),
           col_indices=tensor([1, 0, 1]),
           values=tensor([1., 2., 3.]), size=(2, 2), nnz=3,
           layout=torch.sparse_csr)
    """
    return _converted(input, ROWS[0], None, dense_dim, True)  # type: ignore[no-any-return]


@public(function=False)
def to_sparse_csc(input: Tensor, dense_dim: int | None = None) -> Tensor:
    """The tensor in the layout sparse_csc: columns. https://pytorch.org/docs → torch.Tensor.to_sparse_csc"""
    return _converted(input, COLUMNS[0], None, dense_dim, True)  # type: ignore[no-any-return]


@public(function=False)
def to_sparse_bsr(input: Tensor, blocksize: Ints1, dense_dim: int | None = None) -> Tensor:
    """The tensor in the layout sparse_bsr: rows of blocks. https://pytorch.org/docs → torch.Tensor.to_sparse_bsr"""
    return _converted(input, ROWS[1], blocksize, dense_dim, True)  # type: ignore[no-any-return]


@public(function=False)
def to_sparse_bsc(input: Tensor, blocksize: Ints1, dense_dim: int | None = None) -> Tensor:
    """The tensor in the layout sparse_bsc: columns of blocks. https://pytorch.org/docs → torch.Tensor.to_sparse_bsc"""
    return _converted(input, COLUMNS[1], blocksize, dense_dim, True)  # type: ignore[no-any-return]


# ── indices alone ─────────────────────────────────────────────────────────────────────────────────────────────────────


@public(method=False)
def _convert_indices_from_csr_to_coo(crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False,
                                     transpose: bool = False) -> Tensor:
    """The rows and columns of the values of a sparse_csr matrix, or of a batch of such, whose number comes first.

    Output: (2, nnz), rows and columns, or columns and rows if transpose; (3, batch · nnz) for a batch
    https://pytorch.org/docs → torch.sparse_csr_tensor

    >>> import tensorgrad as torch
    >>> torch._convert_indices_from_csr_to_coo(torch.tensor([0, 1, 3]), torch.tensor([2, 0, 2]))
    tensor([[0, 1, 1],
            [2, 0, 2]])
    """
    from ..storage.sparse_patterns import compressed
    backend, lines, plain = type(crow_indices._storage), crow_indices.array, col_indices.array
    wide = int(backend.host(plain.max())) + 1 if plain.size else 0
    entries = compressed(ROWS[0], lines, plain, (*lines.shape[:-1], lines.shape[-1] - 1, wide), backend).entries
    order = [*range(lines.ndim - 1), *((lines.ndim, lines.ndim - 1) if transpose else (lines.ndim - 1, lines.ndim))]
    found: Tensor = fresh(entries.indices[order].astype("int32" if out_int32 else "int64"), backend)
    return found


@public(method=False)
def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Where each of `size` rows starts, from the rows of values, in order.

    Input: (nnz), integers in ascending order, below size
    Output: (size + 1)
    Errors: RuntimeError if the input is not 1-D, or a row is out of range, or not in order
    https://pytorch.org/docs → torch.sparse_csr_tensor

    >>> import tensorgrad as torch
    >>> torch._convert_indices_from_coo_to_csr(torch.tensor([0, 1, 1]), 3)
    tensor([0, 1, 3, 3])
    """
    rows, backend = input.array, type(input._storage)
    if rows.ndim != 1:
        raise RuntimeError(f"Input is supposed to be a vector, but got {rows.ndim} dimensional tensor.")
    if rows.dtype.kind not in "iu":
        raise NotImplementedError("\"convert_indices_from_coo_to_csr_cpu\" not implemented for "
                                  f"'{dtypes.SCALAR_TYPES[input.dtype.name]}'")
    if rows.size and not (bool((rows[1:] >= rows[:-1]).all()) and int(rows[0]) >= 0 and int(rows[-1]) < size):
        raise RuntimeError(f"the rows must be in ascending order, and from 0 to {size - 1}")
    starts = starts_of(backend.module, rows, size)
    return fresh(starts.astype("int32" if out_int32 else "int64"), backend)  # type: ignore[no-any-return]
