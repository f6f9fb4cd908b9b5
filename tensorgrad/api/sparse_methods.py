"""Parts of sparse tensors, and conversions between layouts. https://pytorch.org/docs/stable/sparse.html"""
from __future__ import annotations

from typing import Any, NoReturn

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core import inplace
from ..core.dispatch import fresh, namespace, wrap, xp
from ..storage.sparse import SHOWN, Compressed, Coo, pattern_of
from ._arguments import normalize_dim
from ._kinds import Dtype, Ints, Layout
from ._register import public
from ._sparse import rules

COO = dtypes.sparse_coo
ROWS, COLUMNS = (dtypes.sparse_csr, dtypes.sparse_bsr), (dtypes.sparse_csc, dtypes.sparse_bsc)


def shown(x: Any) -> str:
    """PyTorch's name of a tensor's layout, in messages."""
    pattern = pattern_of(x)
    return "Strided" if pattern is None else SHOWN[pattern.layout]


def _expect(x: Any, name: str, layouts: Any, kind: str) -> Any:
    """Return the pattern of a tensor of one of some layouts; RuntimeError for others."""
    pattern = pattern_of(x)
    if pattern is None or pattern.layout not in layouts:
        raise RuntimeError(f"{name} expected sparse {kind} tensor layout but got {shown(x)}")
    return pattern


def _no_kernel(name: str, x: Any) -> NoReturn:
    if pattern_of(x) is not None:
        rules().refuse(name, x)
    raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the '{x.device.type.upper()}' "
                              "backend. This could be because the operator doesn't exist for this backend, or was "
                              "omitted during the selective/custom build process (if using custom build).")


def _table(x: Any) -> Any:
    """The op table for a tensor's values."""
    backend = type(x._storage)
    return namespace(backend.dense or backend)


# ── parts ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@public(function=False)
def indices(input: Tensor) -> Tensor:
    """The coordinates of the values of a coalesced tensor, (sparse_dim, nnz). They cannot be written to.

    https://pytorch.org/docs → torch.Tensor.indices
    """
    pattern = _expect(input, "indices", (COO,), "coordinate")
    if not pattern.coalesced:
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return fresh(pattern.indices, pattern.backend)  # type: ignore[no-any-return]


@public(function=False)
def values(input: Tensor) -> Tensor:
    """The values, which share the tensor's memory. https://pytorch.org/docs → torch.Tensor.values

    Errors: RuntimeError for a tensor that is dense, or not coalesced
    """
    pattern = pattern_of(input)
    if pattern is None:
        raise RuntimeError("values expected sparse tensor layout but got Strided")
    if isinstance(pattern, Coo) and not pattern.coalesced:
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
    return xp.sparse_values(input, pattern=pattern, own=pattern)  # type: ignore[no-any-return]


@public(function=False)
def _indices(input: Tensor) -> Tensor:
    """The coordinates, coalesced or not. https://pytorch.org/docs → torch.Tensor.indices"""
    pattern = pattern_of(input)
    if not isinstance(pattern, Coo):
        _no_kernel("_indices", input)
    return fresh(pattern.indices, pattern.backend)  # type: ignore[no-any-return]


@public(function=False)
def _values(input: Tensor) -> Tensor:
    """The values, coalesced or not, without history. https://pytorch.org/docs → torch.Tensor.values"""
    pattern = pattern_of(input)
    if not isinstance(pattern, Coo):
        _no_kernel("_values", input)
    return fresh(input.array.values, pattern.backend)  # type: ignore[no-any-return]


@public(function=False)
def _nnz(input: Tensor) -> int:
    """The number of values. https://pytorch.org/docs → torch.sparse"""
    pattern = pattern_of(input)
    if pattern is None:
        _no_kernel("_nnz", input)
    return int(pattern.count)


@public("_dimI", function=False)
def sparse_dim(input: Tensor) -> int:
    """The number of sparse dimensions; 0 for a dense tensor. https://pytorch.org/docs → torch.Tensor.sparse_dim"""
    pattern = pattern_of(input)
    if isinstance(pattern, Compressed):
        return 2
    return 0 if pattern is None else pattern.sparse_dim


@public("_dimV", function=False)
def dense_dim(input: Tensor) -> int:
    """The number of dense dimensions. https://pytorch.org/docs → torch.Tensor.dense_dim"""
    pattern = pattern_of(input)
    return input.array.ndim if pattern is None else pattern.dense_dim


@public(function=False)
def is_coalesced(input: Tensor) -> bool:
    """Return True if places are in order, each there once. https://pytorch.org/docs → torch.Tensor.is_coalesced"""
    return bool(_expect(input, "is_coalesced", (COO,), "coordinate").coalesced)


@public(function=False)
def coalesce(input: Tensor) -> Tensor:
    """The tensor with its places in order, and the values of one place added up; itself if it is so already.

    https://pytorch.org/docs → torch.Tensor.coalesce

    >>> import tensorgrad as torch
    >>> torch.sparse_coo_tensor([[1, 0, 1]], [1., 2., 3.], (2,)).coalesce()
    tensor(indices=tensor([[0, 1]]),
           values=tensor([2., 4.]),
           size=(2,), nnz=2, layout=torch.sparse_coo)
    """
    _expect(input, "coalesce", (COO,), "coordinate")
    return rules().coalesced(_table(input), input)  # type: ignore[no-any-return]


@public(function=False)
def _coalesced_(input: Tensor, coalesced: bool) -> Tensor:
    """Mark the tensor as coalesced or not. https://pytorch.org/docs → torch.Tensor.coalesce"""
    from ..storage.sparse_patterns import coo
    own = _expect(input, "_coalesced_", (COO,), "coordinate")
    marked = coo(own.indices, own.shape, own.backend, coalesced, whole=True)
    marked.coalesced = bool(coalesced)
    input.array.pattern = marked
    return input


def _line_indices(name: str, layouts: Any, kind: str, compressed: bool) -> None:
    def part(input: Tensor) -> Tensor:
        pattern = _expect(input, name, layouts, f"{kind} compressed")
        return fresh(pattern.compressed if compressed else pattern.plain, pattern.backend)  # type: ignore[no-any-return]
    part.__name__ = part.__qualname__ = name
    what = (f"where each {'row' if kind == 'row' else 'column'} begins among the values" if compressed else
            f"the {'column' if kind == 'row' else 'row'} of each value")
    part.__doc__ = (f"Of a tensor that is compressed by {kind}s, {what}. They cannot be written to. "
                    f"https://pytorch.org/docs → torch.Tensor.{name}")
    part.__module__ = __name__
    public(function=False)(part)


_line_indices("crow_indices", ROWS, "row", True)
_line_indices("col_indices", ROWS, "row", False)
_line_indices("ccol_indices", COLUMNS, "column", True)
_line_indices("row_indices", COLUMNS, "column", False)


# ── conversions ───────────────────────────────────────────────────────────────────────────────────────────────────────


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
    return rules().dense(_table(input), input, masked_grad is not False)  # type: ignore[no-any-return]


@public(function=False)
def to_sparse(input: Tensor, sparse_dim: int | None = None, *, layout: Layout | None = None,
              blocksize: Ints | None = None, dense_dim: int | None = None) -> Tensor:
    """The tensor in a sparse layout: the nonzeros of a dense one, or another layout of a sparse one.

    Input: sparse_dim: how many of the first dimensions are sparse; or layout, with blocksize for layouts of blocks, and
        dense_dim: how many of the last dimensions are dense
    Errors: RuntimeError if these do not fit together, or to the tensor
    https://pytorch.org/docs → torch.Tensor.to_sparse

    >>> import tensorgrad as torch
    >>> torch.tensor([[0., 1.], [2., 0.]]).to_sparse()
    tensor(indices=tensor([[0, 1],
                           [1, 0]]),
           values=tensor([1., 2.]),
           size=(2, 2), nnz=2, layout=torch.sparse_coo)
    """
    if sparse_dim is not None and layout is not None:
        raise TypeError("to_sparse() takes 0 positional arguments but 1 was given")
    layout = COO if layout is None else layout
    if pattern_of(input) is not None:
        return _sparse_to_sparse(input, sparse_dim, layout, blocksize)
    if layout is dtypes.strided:
        return input
    ndim = input.array.ndim
    if blocksize is not None and layout not in (ROWS[1], COLUMNS[1]):
        raise RuntimeError(f"dense_to_sparse: conversion from Strided to {SHOWN[layout]} with blocksize argument given "
                           "is not supported")
    if layout is COO:
        sparse_dim = ndim - (dense_dim or 0) if sparse_dim is None else sparse_dim
        if not 0 <= sparse_dim <= ndim:
            raise RuntimeError(f"dense_to_sparse: sparse_dim argument must be in [0,{ndim}] range, but {sparse_dim} is "
                               "given")
        if ndim and not sparse_dim:
            raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
        return _nonzeros(input, sparse_dim, layout, None)
    if blocksize is None and layout in (ROWS[1], COLUMNS[1]):
        raise RuntimeError(f"dense_to_sparse: conversion from Strided to {SHOWN[layout]} without blocksize argument "
                           "given is not supported")
    return _compressed(input, layout, blocksize, dense_dim)


def _nonzeros(x: Any, sparse_dim: int, layout: Any, blocksize: Any) -> Any:
    """The nonzeros of a dense tensor, in a sparse layout."""
    from ..storage.sparse_patterns import converted, of_nonzeros
    backend = type(x._storage)
    pattern = of_nonzeros(x.array, sparse_dim, backend)
    if layout is not COO:
        pattern = converted(pattern, layout, blocksize)
    name = {COO: "ToSparseBackward1", ROWS[0]: "ToSparseCsr", COLUMNS[0]: "ToSparseCsc", ROWS[1]: "ToSparseBsr",
            COLUMNS[1]: "ToSparseBsc"}[layout]
    return rules().named(rules().at(_table(x), x, pattern), name)


def _compressed(x: Any, layout: Any, blocksize: Any, dense_dim: Any) -> Any:
    """A tensor of any layout in one of the compressed layouts."""
    own, name = pattern_of(x), "to_sparse_" + str(layout).rpartition("_")[2]
    if isinstance(own, Coo) and own.sparse_dim != 2:
        raise RuntimeError(f"coo_{name}: conversion from Sparse to {SHOWN[layout]} for input tensors with "
                           "sparse_dim()!=2 is not supported")
    inner = dense_dim or 0 if own is None else own.dense_dim
    if not 0 <= inner <= x.array.ndim - 2:
        raise RuntimeError(f"{name}: expected at least 2 sparse dimensions, but the tensor has {x.array.ndim} "
                           f"dimensions, and {inner} are dense")
    if blocksize is not None:
        blocksize = (blocksize, blocksize) if isinstance(blocksize, int) else tuple(blocksize)
        sizes = x.array.shape[x.array.ndim - inner - 2:x.array.ndim - inner]
        if any(not b or n % b for n, b in zip(sizes, blocksize, strict=True)):
            raise RuntimeError(f"dense_to_sparse_{name[10:]}: tensor sparse size ({sizes[0]},{sizes[1]}) must be "
                               f"divisible by given blocksize ({blocksize[0]},{blocksize[1]})")
    if own is None:
        return _nonzeros(x, x.array.ndim - inner, layout, blocksize)
    if own.layout is layout and (blocksize is None or blocksize == own.blocksize):
        return x
    if blocksize is None and getattr(own, "blocked", False):
        raise RuntimeError(f"sparse_compressed_{name}: expected SparseCsr or SparseCsc layout but got "
                           f"{SHOWN[own.layout]}")
    return rules().in_layout(_table(x), x, layout, blocksize)


def _sparse_to_sparse(x: Any, sparse_dim: int | None, layout: Any, blocksize: Any) -> Any:
    own = pattern_of(x)
    if sparse_dim is not None and sparse_dim != x.sparse_dim():
        raise RuntimeError(f"to_sparse: conversion from {SHOWN[own.layout]} to Sparse with sparse_dim argument "
                           "!=self.sparse_dim() is not supported")
    if layout is dtypes.strided:
        return to_dense(x)
    return rules().in_layout(_table(x), x, COO) if layout is COO else _compressed(x, layout, blocksize, None)


@public(function=False)
def to_sparse_coo(input: Tensor) -> Tensor:
    """The tensor in the layout sparse_coo. https://pytorch.org/docs → torch.Tensor.to_sparse_coo"""
    return to_sparse(input)


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
    return _compressed(input, ROWS[0], None, dense_dim)  # type: ignore[no-any-return]


@public(function=False)
def to_sparse_csc(input: Tensor, dense_dim: int | None = None) -> Tensor:
    """The tensor in the layout sparse_csc: columns. https://pytorch.org/docs → torch.Tensor.to_sparse_csc"""
    return _compressed(input, COLUMNS[0], None, dense_dim)  # type: ignore[no-any-return]


@public(function=False)
def to_sparse_bsr(input: Tensor, blocksize: Ints, dense_dim: int | None = None) -> Tensor:
    """The tensor in the layout sparse_bsr: rows of blocks. https://pytorch.org/docs → torch.Tensor.to_sparse_bsr"""
    return _compressed(input, ROWS[1], blocksize, dense_dim)  # type: ignore[no-any-return]


@public(function=False)
def to_sparse_bsc(input: Tensor, blocksize: Ints, dense_dim: int | None = None) -> Tensor:
    """The tensor in the layout sparse_bsc: columns of blocks. https://pytorch.org/docs → torch.Tensor.to_sparse_bsc"""
    return _compressed(input, COLUMNS[1], blocksize, dense_dim)  # type: ignore[no-any-return]


@public(function=False)
def sparse_mask(input: Tensor, mask: Tensor) -> Tensor:
    """The values at the places of a sparse tensor, in its layout.

    Errors: RuntimeError if the sizes differ; NotImplementedError for a dense mask
    https://pytorch.org/docs → torch.Tensor.sparse_mask

    >>> import tensorgrad as torch
    >>> torch.tensor([1., 2., 3.]).sparse_mask(torch.tensor([1., 0., 1.]).to_sparse()).to_dense()
    tensor([1., 0., 3.])
    """
    wanted = pattern_of(mask)
    if wanted is None:
        _no_kernel("sparse_mask", input)
    if tuple(input.shape) != wanted.shape:
        raise RuntimeError("sparse_mask(): operands have incompatible sizes; self has size "
                           f"{list(input.shape)} but mask has size {list(mask.shape)}")
    return rules().named(rules().at(_table(input), input, wanted), "SparseMask")  # type: ignore[no-any-return]


@public(function=False)
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A copy of `length` slices along an axis, from `start` on. https://pytorch.org/docs → torch.Tensor.narrow_copy"""
    dim = normalize_dim(dim, input.array.ndim)
    size = input.array.shape[dim]
    if not isinstance(pattern_of(input), Coo):
        return input.narrow(dim, start, length).clone()  # type: ignore[attr-defined, no-any-return]
    if length < 0 or not -size <= start <= size or start % max(size, 1) + length > size and length:
        raise RuntimeError(f"Invalid range to narrow. range(start, start+length) must be a subset of range(0, {size}).")
    rules()
    from ..interpret.sparse_rules import narrowed
    return narrowed(_table(input), input, dim, start + size if start < 0 else start, length)  # type: ignore[no-any-return]


# ── in place ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _resize(x: Any, size: Any, sparse_dim: int, dense_dim: int, clear: bool, name: str) -> Any:
    own = pattern_of(x)
    if not isinstance(own, Coo):
        _no_kernel(name, x)
    size = tuple(map(int, size))
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, "
                           f"sparse_dim = {sparse_dim}, dense_dim = {dense_dim}")
    inplace.check(x) if x.requires_grad else None
    module, array = own.backend.module, x.array
    if own.count and not clear:
        for kind, one, two in (("sparse", own.sparse_dim, sparse_dim), ("dense", own.dense_dim, dense_dim)):
            if one != two:
                raise RuntimeError(f"changing the number of {kind} dimensions (from {one} to {two}) on a non-empty "
                                   "sparse tensor is not supported.")
        for kind, before, after in (("sparse", own.shape[:sparse_dim], size[:sparse_dim]),
                                    ("dense", own.shape[sparse_dim:], size[sparse_dim:])):
            if any(b < a for a, b in zip(before, after)):
                raise RuntimeError(f"shrinking the size of {kind} dimensions (from {list(before)} to {list(after)}) on "
                                   "a non-empty sparse tensor is not supported.")
    count = 0 if clear else own.count
    found = module.zeros((count, *size[sparse_dim:]), dtype=array.dtype)
    if count:
        found[(slice(None), *map(slice, own.dense_shape))] = array.values
    indices = own.indices if count else module.zeros((sparse_dim, 0), dtype="int64")
    array.pattern, array.values = Coo(indices, size, own.backend, own.coalesced or not count), found
    x._storage.wrote()
    return x


@public(function=False)
def sparse_resize_(input: Tensor, size: Ints, sparse_dim: int, dense_dim: int) -> Tensor:
    """Change the size in place; values stay. https://pytorch.org/docs → torch.Tensor.sparse_resize_"""
    return _resize(input, size, sparse_dim, dense_dim, False, "sparse_resize_")  # type: ignore[no-any-return]


@public(function=False)
def sparse_resize_and_clear_(input: Tensor, size: Ints, sparse_dim: int, dense_dim: int) -> Tensor:
    """Change the size in place, without values. https://pytorch.org/docs → torch.Tensor.sparse_resize_and_clear_"""
    return _resize(input, size, sparse_dim, dense_dim, True, "sparse_resize_and_clear_")  # type: ignore[no-any-return]


@public()
def resize_as_sparse_(input: Tensor, the_template: Tensor) -> Tensor:
    """Change the size in place to that of another sparse tensor. https://pytorch.org/docs → torch.Tensor.sparse_resize_

    >>> import tensorgrad as torch
    >>> x = torch.sparse_coo_tensor([[0]], [1.], (2,))
    >>> torch.resize_as_sparse_(x, torch.sparse_coo_tensor(size=(5,))).shape
    torch.Size([5])
    """
    other = _expect(the_template, "resize_as_sparse_", (COO,), "coordinate")
    return _resize(input, other.shape, other.sparse_dim, other.dense_dim, False,  # type: ignore[no-any-return]
                   "resize_as_sparse_")


__all__ = ["shown", "wrap"]
