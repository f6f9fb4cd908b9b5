"""Parts of sparse tensors, and functions that change their indices. https://pytorch.org/docs/stable/sparse.html"""
from __future__ import annotations

from typing import Any, NoReturn

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core import inplace
from ..core.dispatch import fresh, namespace, xp
from ..storage.sparse import SHOWN, Compressed, Coo, pattern_of
from ._arguments import normalize_dim
from ._kinds import Ints
from ._register import public
from ._sparse import rules
from .copies import copier

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


def table(x: Any) -> Any:
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
    return rules().coalesced(table(input), input)  # type: ignore[no-any-return]


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


for _name in ("indices", "values", "crow_indices", "col_indices", "ccol_indices", "row_indices"):
    copier(_name, getattr(Tensor, _name))


# ── restrictions ──────────────────────────────────────────────────────────────────────────────────────────────────────


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
    return rules().named(rules().at(table(input), input, wanted), "SparseMask")  # type: ignore[no-any-return]


def narrowed_copy(input: Any, dim: int, start: int, length: int) -> Tensor:
    """`narrow_copy` of a sparse_coo tensor."""
    dim = normalize_dim(dim, input.array.ndim)
    size = input.array.shape[dim]
    if length < 0 or not -size <= start <= size or start % max(size, 1) + length > size and length:
        raise RuntimeError(f"Invalid range to narrow. range(start, start+length) must be a subset of range(0, {size}).")
    rules()
    from ..interpret.sparse_rules import narrowed
    found: Tensor = narrowed(table(input), input, dim, start + size if start < 0 else start, length)
    return found


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
        found.reshape(-1)[:array.values.size] = array.values.reshape(-1)        # in their order in memory
    indices = own.indices if count else module.zeros((sparse_dim, 0), dtype="int64")
    array.pattern, array.values = Coo(indices, size, own.backend, own.coalesced or not count), found
    x._storage.wrote()
    return x


def resized_rows(x: Any, size: tuple[int, ...]) -> Any:
    """Change the numbers of rows and columns of a sparse_csr tensor in place.

    New rows have no values. Where rows are left out, the last one that stays takes over as many of the values as the
    new size has elements.
    """
    own = pattern_of(x)
    if own.layout is not ROWS[0]:
        _no_kernel("resize_", x)
    if min(size, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    if len(size) < 2:
        raise RuntimeError(f"torch.resize_: Only batched sparse CSR matrices are supported, but got size {list(size)}")
    *batch, high, wide = size
    before = own.shape[len(own.batch) + 1]
    if wide < before:
        raise RuntimeError("torch.resize_: Resizing columns of sparse CSR tensors to a smaller value is not supported. "
                           f"The original number of columns is {before} while the requested new number of columns is "
                           f"{wide}.")
    if own.dense_dim or tuple(batch) not in (own.batch, ()):
        raise RuntimeError(f"torch.resize_: batches of the shape {list(own.batch)} cannot become those of the shape "
                           f"{batch}")
    module, array = own.backend.module, x.array
    one = (0,) * (len(own.batch) - len(batch))          # of several matrices, only the first remains
    starts, plain, values = own.compressed[one], own.plain[one], array.values[one]
    count = min(own.count, high * wide)
    rows = module.arange(high + 1)
    starts = starts[..., module.minimum(rows, own.lines)].copy()
    starts[..., -1] = count
    array.pattern = Compressed(ROWS[0], module.minimum(starts, count), plain[..., :count], size, own.backend)
    array.values = values[..., :count].copy()
    x._storage.wrote()
    return x


def _resize_as_compressed(x: Any, like: Any) -> Any:
    """Give a compressed tensor the size and the places of another one, and zeros as values."""
    own, other = pattern_of(x), pattern_of(like)
    for name, found in (("self", own), ("src", other)):
        if not isinstance(found, Compressed):
            raise RuntimeError(f"resize_as_sparse_compressed_: {name}  expected sparse compressed tensor layout but "
                               f"got {shown(x if name == 'self' else like)}")
    if own.layout is not other.layout:
        raise RuntimeError("resize_as_sparse_compressed_tensor_: self and src must have the same layout, but got: self "
                           f"({shown(x)}) and source ({shown(like)})")
    inplace.check(x) if x.requires_grad else None
    kind, array = own.plain.dtype, x.array
    array.pattern = Compressed(other.layout, other.compressed.astype(kind), other.plain.astype(kind), other.shape,
                               own.backend, other.blocksize, other.dense_dim)
    array.values = own.backend.module.zeros(other.values_shape, dtype=array.dtype)
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
    if isinstance(pattern_of(input), Compressed) or isinstance(pattern_of(the_template), Compressed):
        return _resize_as_compressed(input, the_template)  # type: ignore[no-any-return]
    other = _expect(the_template, "resize_as_sparse_", (COO,), "coordinate")
    return _resize(input, other.shape, other.sparse_dim, other.dense_dim, False,  # type: ignore[no-any-return]
                   "resize_as_sparse_")


__all__ = ["shown", "table"]
