"""Making sparse tensors from indices and values. https://pytorch.org/docs/stable/sparse.html"""
from __future__ import annotations

from typing import Any

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core.dispatch import xp
from ..core.tape import TensorBase, node_of
from ..dtype import SCALAR_TYPES
from ._kinds import Device, Dtype, Ints, Layout
from ._register import public
from ._sparse import empty_sparse, rules
from .creation import as_leaf, as_tensor

BLOCKED = (dtypes.sparse_bsr, dtypes.sparse_bsc)
# True if checks of new sparse tensors go beyond memory safety: torch.sparse.check_sparse_tensor_invariants
checks = {"on": False}


def _values(values: Any, dtype: Any, device: Any) -> Any:
    """The values as a Tensor: a given one keeps its history."""
    if not isinstance(values, TensorBase):
        return as_tensor(values, dtype=dtype, device=device)
    return values.to(device=device, dtype=dtype)  # type: ignore[attr-defined]


def _indices(indices: Any, backend: Any, kinds: Any = ("int64",)) -> Any:
    """Return a copy of an index tensor, as an array of a backend; of int64, unless its dtype is another of `kinds`."""
    indices = as_tensor(indices) if not isinstance(indices, TensorBase) else indices
    array = indices.array  # type: ignore[attr-defined]
    home = type(indices._storage)
    if home.device != backend.device:
        array = backend.asarray(home.host(array))
    if array.dtype.kind not in "iub" and array.size and not kinds == ("int64",):
        raise RuntimeError(f"expected indices of int32 or int64, but got {indices.dtype}")  # type: ignore[attr-defined]
    name = array.dtype.name if array.dtype.name in kinds else "int64"
    return array.astype(name) if backend.hollow else backend.module.array(array, dtype=name, order="C")


def _made(pattern: Any, values: Any, requires_grad: bool) -> Any:
    rules()
    out = xp.sparse_tensor(values, pattern=pattern)
    return out if node_of(out) is not None else as_leaf(out, requires_grad)


@public(method=False)
def sparse_coo_tensor(indices: object = None, values: object = None, size: Ints | None = None, *,
                      dtype: Dtype | None = None, layout: Layout | None = None, device: Device | None = None,
                      pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
                      is_coalesced: bool | None = None) -> Tensor:
    """A sparse tensor of values and their coordinates. Values of one place add up.

    Indices are copied, and checked: one that is out of range is an error, though PyTorch looks only where asked to.

    Input: indices (sparse_dim, nnz), integers; values (nnz, *); size: of all dimensions, or else as small as it can be
    Output: the size, of the values' dtype
    Errors: RuntimeError if indices is not 2-D, or out of range, if the numbers of indices and values differ, or the
        number of dimensions is not sparse_dim and those of values after the first
    https://pytorch.org/docs → torch.sparse_coo_tensor

    >>> import tensorgrad as torch
    >>> x = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3., 4., 5.], (2, 3))
    >>> x.to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 5.]])
    """
    if values is None:
        if size is None:
            indices, size = None, indices
        if size is None:
            raise TypeError("sparse_coo_tensor() takes indices and values, or a size")
        size = tuple(size) if not isinstance(size, int) else (size,)
        return as_leaf(empty_sparse(size, dtypes.sparse_coo, dtype, device), requires_grad)  # type: ignore[no-any-return]
    values = _values(values, dtype, device)
    backend = type(values._storage)
    indices = _indices(indices, backend)
    if indices.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    if not values.array.ndim:
        values = xp.expand_dims(values, axis=0)
    sparse_dim, inner = indices.shape[0], tuple(values.array.shape[1:])
    if indices.shape[1] != values.array.shape[0]:
        raise RuntimeError(f"indices and values must have same nnz, but got nnz from indices: {indices.shape[1]}, nnz "
                           f"from values: {values.array.shape[0]}")
    if size is None:
        high = backend.host(indices.max(axis=1)).tolist() if indices.shape[1] else [-1] * sparse_dim
        size = (*(n + 1 for n in high), *inner)
    size = tuple(map(int, size)) if not isinstance(size, int) else (size,)
    return _coo(indices, values, size, check_invariants, is_coalesced, requires_grad)


def _coo(indices: Any, values: Any, size: tuple[int, ...], check: Any, coalesced: Any, requires_grad: bool) -> Any:
    from ..storage.sparse_patterns import coo
    sparse_dim, inner = indices.shape[0], tuple(values.array.shape[1:])
    if len(size) != sparse_dim + len(inner):
        raise RuntimeError(f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, "
                           f"sparse_dim = {sparse_dim}, dense_dim = {len(inner)}")
    if min(size, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    if size[sparse_dim:] != inner:
        raise RuntimeError(f"values has incorrect size, expected {[values.array.shape[0], *size[sparse_dim:]]}, got "
                           f"{list(values.array.shape)}")
    whole = checks["on"] if check is None else check
    pattern = coo(indices, size, type(values._storage), bool(coalesced), whole)
    return _made(pattern, values, requires_grad)


def new_sparse(like: Any, args: tuple[Any, ...]) -> Tensor:
    """`like.new(…)`: a sparse_coo tensor of like's dtype, of a size, or of indices and values."""
    if like.layout is not dtypes.sparse_coo:
        raise RuntimeError(f"Cannot map DispatchKey SparseCsr{like.device.type.upper()} to a unique layout.")
    if isinstance(args[-1] if args else 0, int):
        return empty_sparse(args or (0,), dtypes.sparse_coo, like.dtype, like.device)  # type: ignore[no-any-return]
    if len(args) > 1:
        return sparse_coo_tensor(*args, dtype=like.dtype, device=like.device)  # type: ignore[no-any-return]
    if not isinstance(args[0], tuple):
        raise TypeError("SparseTensor.new(sequence) only accepts sizes.  Please use torch.sparse_coo_tensor() or "
                        "construct a strided tensor and convert it to sparse via to_sparse.")
    return empty_sparse(args[0], dtypes.sparse_coo, like.dtype, like.device)  # type: ignore[no-any-return]


NO_LAYOUT = "sparse_compressed_tensor expected sparse compressed tensor layout but got "


@public(method=False)
def sparse_compressed_tensor(compressed_indices: object, plain_indices: object, values: object,
                             size: Ints | None = None, *, dtype: Dtype | None = None,
                             layout: Layout | None = None, device: Device | None = None, pin_memory: bool = False,
                             requires_grad: bool = False,
                             check_invariants: bool | None = None) -> Tensor:
    """A sparse tensor in one of the layouts sparse_csr, sparse_csc, sparse_bsr and sparse_bsc.

    `compressed_indices` tells where each row (or column) begins among the values, `plain_indices` the column (or row)
    of each value. Indices are copied, and checked.

    Input: compressed_indices (*, lines + 1) and plain_indices (*, nnz), int32 or int64; values (*, nnz, **), for blocks
        (*, nnz, high, wide, **)
    Output: the size, of the values' dtype
    Errors: RuntimeError for another layout, or indices that do not fit
    https://pytorch.org/docs → torch.sparse_compressed_tensor

    >>> import tensorgrad as torch
    >>> x = torch.sparse_compressed_tensor([0, 1, 3], [2, 0, 2], [3., 4., 5.], (2, 3), layout=torch.sparse_csr)
    >>> x.to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 5.]])
    """
    from ..storage.sparse_patterns import NAMES, compressed
    if layout not in NAMES:
        from ..storage.sparse import SHOWN
        raise RuntimeError(NO_LAYOUT + ("none" if layout is None else SHOWN.get(layout, "Strided")))
    values = _values(values, dtype, device)
    backend = type(values._storage)
    whole = checks["on"] if check_invariants is None else check_invariants
    if whole:
        _check_indices(NAMES[layout], compressed_indices, plain_indices)
    lines, plain = (_indices(i, backend, ("int32", "int64")) for i in (compressed_indices, plain_indices))
    if lines.dtype != plain.dtype:
        lines, plain = lines.astype("int64"), plain.astype("int64")
    blocksize, inner = _parts(layout, lines, plain, values.array.shape, size)
    if size is None:
        size = _smallest(layout, lines, plain, blocksize, inner, backend)
    size = tuple(map(int, size))
    _check_compressed(layout, lines, size, blocksize, inner)
    pattern = compressed(layout, lines, plain, size, backend, blocksize, len(inner), whole)
    return _made(pattern, values, requires_grad)


def _check_indices(names: Any, *indices: Any) -> None:
    """Raise PyTorch's errors for indices that are not blocks of memory, or not of the dtype int32 or int64."""
    found = [(name, i.array) for name, i in zip(names, indices) if isinstance(i, TensorBase)]  # type: ignore[attr-defined]
    for name, array in found:
        if array.ndim and array.shape[-1] > 1 and array.strides[-1] != array.itemsize:
            raise RuntimeError(f"expected {name} to be a contiguous tensor per batch")
    kinds = [SCALAR_TYPES[dtypes.as_dtype(array.dtype).name] for _, array in found]
    if len(set(kinds)) == 2:
        raise RuntimeError(f"{names[0]} and {names[1]} must have the same dtype, bot got {kinds[0]} and {kinds[1]}, "
                           "respectively")
    if not set(kinds) <= {"Int", "Long"}:
        raise RuntimeError(f"{names[0]} and {names[1]} dtype must be Int or Long, but got {kinds[0]}")


def _parts(layout: Any, lines: Any, plain: Any, shape: Any, size: Any) -> tuple[tuple[int, int], tuple[int, ...]]:
    """The size of blocks and the shape of one value."""
    from ..storage.sparse_patterns import NAMES
    first, second = NAMES[layout][:2]
    blocks = 2 if layout in BLOCKED else 0
    if not lines.ndim or not lines.shape[-1]:
        raise RuntimeError(f"{first} must have dimensionality >= 1 but got {lines.ndim}")
    if plain.ndim != lines.ndim:
        raise RuntimeError(f"{first} and {second} dimensionalities must be equal but got {lines.ndim} and {plain.ndim},"
                           " respectively")
    if len(shape) < plain.ndim + blocks:
        raise RuntimeError(f"values must have dimensionality > sum of batch and block dimensionalities "
                           f"(={plain.ndim - 1} + {blocks}) but got {len(shape)}")
    place = plain.ndim - 1
    batches = [tuple(part[:place]) for part in (lines.shape, plain.shape, shape)]
    whole = size is not None and len(size) == len(shape) - blocks + 1           # of the right number of dimensions
    wanted = tuple(size[:place]) if whole else batches[0]
    if len({*batches, wanted}) > 1:
        raise _misfit_of_batches(layout, batches, wanted)
    if shape[place] != plain.shape[-1]:
        raise RuntimeError(f"{second}.shape[-1] must be equal to nnz (={shape[place]}) as defined by "
                           f"values.shape[{place}], but got {plain.shape[-1]}")
    block = tuple(shape[plain.ndim:plain.ndim + blocks])
    return ((block[0], block[1]) if blocks else (1, 1)), tuple(shape[plain.ndim + blocks:])


def _misfit_of_batches(layout: Any, found: Any, wanted: Any) -> RuntimeError:
    from ..storage.sparse_patterns import NAMES
    shown = [f"(={list(batch)})" for batch in (*found, wanted)]
    return RuntimeError("all batch dimensions of {0} {2}, {1} {3}, and values {4} must be equal to tensor batch "
                        "dimensions {5}".format(*NAMES[layout][:2], *shown))


def _smallest(layout: Any, lines: Any, plain: Any, blocksize: Any, inner: Any, backend: Any) -> tuple[int, ...]:
    count = lines.shape[-1] - 1
    other = int(backend.host(plain.max())) + 1 if plain.size else 0
    by_rows = layout in (dtypes.sparse_csr, dtypes.sparse_bsr)
    rows, columns = (count, other) if by_rows else (other, count)
    return (*lines.shape[:-1], rows * blocksize[0], columns * blocksize[1], *inner)


def _check_compressed(layout: Any, lines: Any, size: tuple[int, ...], blocksize: Any, inner: Any) -> None:
    from ..storage.sparse_patterns import NAMES
    first = NAMES[layout][0]
    counted = ("rows" if layout is dtypes.sparse_csr else "columns" if layout is dtypes.sparse_csc else
               "row blocks" if layout is dtypes.sparse_bsr else "column blocks")
    batch = tuple(lines.shape[:-1])
    if len(size) != len(batch) + 2 + len(inner) or min(size) < 0:
        raise RuntimeError("tensor dimensionality must be sum of batch, base, and dense dimensionalities "
                           f"(={len(batch)} + 2 + {len(inner)}) but got {len(size)}")
    if size[len(batch) + 2:] != inner:
        raise RuntimeError(f"the size {list(size)} does not fit values of the shape {list(inner)}")
    for i in (0, 1):
        if not blocksize[i] or size[len(batch) + i] % blocksize[i]:
            raise RuntimeError(f"tensor shape[{len(batch) + i}] (={size[len(batch) + i]}) must be divisible with "
                               f"blocksize[{i}] (={blocksize[i]}) as defined by values shape")
    line = 0 if layout in (dtypes.sparse_csr, dtypes.sparse_bsr) else 1
    needed = size[len(batch) + line] // blocksize[line] + 1
    if lines.shape[-1] != needed:
        raise RuntimeError(f"{first}.shape[-1] must be equal to the number of {counted} + 1 (={needed}), but got "
                           f"{lines.shape[-1]}")


def _of_layout(layout: Any, args: Any, options: Any) -> Any:
    if options.pop("layout", None) not in (None, layout):
        raise RuntimeError(f"layout: expected {layout}")
    return sparse_compressed_tensor(*args, layout=layout, **options)


@public(method=False)
def sparse_csr_tensor(crow_indices: object, col_indices: object, values: object, size: Ints | None = None, *,
                      dtype: Dtype | None = None, layout: Layout | None = None, device: Device | None = None,
                      pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> Tensor:
    """A sparse matrix, row by row: the values of row i, and their columns, are those from crow_indices[i] to
    crow_indices[i + 1].

    Input: crow_indices (*, rows + 1) and col_indices (*, nnz), int32 or int64; values (*, nnz, **)
    Output: the size, (*, rows, columns, **)
    Errors: RuntimeError for indices that do not fit
    https://pytorch.org/docs → torch.sparse_csr_tensor

    >>> import tensorgrad as torch
    >>> torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3., 4., 5.], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 5.]])
    """
    return _of_layout(dtypes.sparse_csr, (crow_indices, col_indices, values, size), {
        "dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad,
        "check_invariants": check_invariants})


@public(method=False)
def sparse_csc_tensor(ccol_indices: object, row_indices: object, values: object, size: Ints | None = None, *,
                      dtype: Dtype | None = None, layout: Layout | None = None, device: Device | None = None,
                      pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> Tensor:
    """A sparse matrix, column by column.

    Input: ccol_indices (*, columns + 1) and row_indices (*, nnz), int32 or int64; values (*, nnz, **)
    Output: the size, (*, rows, columns, **)
    Errors: RuntimeError for indices that do not fit
    https://pytorch.org/docs → torch.sparse_csc_tensor

    >>> import tensorgrad as torch
    >>> torch.sparse_csc_tensor([0, 1, 1, 3], [1, 0, 1], [4., 3., 5.], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 5.]])
    """
    return _of_layout(dtypes.sparse_csc, (ccol_indices, row_indices, values, size), {
        "dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad,
        "check_invariants": check_invariants})


@public(method=False)
def sparse_bsr_tensor(crow_indices: object, col_indices: object, values: object, size: Ints | None = None, *,
                      dtype: Dtype | None = None, layout: Layout | None = None, device: Device | None = None,
                      pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> Tensor:
    """A matrix of dense blocks, some of which are there, by rows of blocks.

    Input: crow_indices (*, block rows + 1) and col_indices (*, nnz), int32 or int64; values (*, nnz, high, wide, **)
    Output: the size, (*, rows, columns, **)
    Errors: RuntimeError for indices that do not fit
    https://pytorch.org/docs → torch.sparse_bsr_tensor

    >>> import tensorgrad as torch
    >>> torch.sparse_bsr_tensor([0, 1], [1], [[[1., 2.], [3., 4.]]], (2, 4)).to_dense()
    tensor([[0., 0., 1., 2.],
            [0., 0., 3., 4.]])
    """
    return _of_layout(dtypes.sparse_bsr, (crow_indices, col_indices, values, size), {
        "dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad,
        "check_invariants": check_invariants})


@public(method=False)
def sparse_bsc_tensor(ccol_indices: object, row_indices: object, values: object, size: Ints | None = None, *,
                      dtype: Dtype | None = None, layout: Layout | None = None, device: Device | None = None,
                      pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> Tensor:
    """A matrix of dense blocks, some of which are there, by columns of blocks.

    Input: ccol_indices (*, block columns + 1) and row_indices (*, nnz), int32 or int64; values (*, nnz, high, wide, **)
    Output: the size, (*, rows, columns, **)
    Errors: RuntimeError for indices that do not fit
    https://pytorch.org/docs → torch.sparse_bsc_tensor

    >>> import tensorgrad as torch
    >>> torch.sparse_bsc_tensor([0, 0, 1], [0], [[[1., 2.], [3., 4.]]], (2, 4)).to_dense()
    tensor([[0., 0., 1., 2.],
            [0., 0., 3., 4.]])
    """
    return _of_layout(dtypes.sparse_bsc, (ccol_indices, row_indices, values, size), {
        "dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad,
        "check_invariants": check_invariants})


@public("_sparse_coo_tensor_unsafe", method=False, name="_sparse_coo_tensor_with_dims_and_tensors")
def _with_dims_and_tensors(indices: object, values: object, size: Ints, **options: Any) -> Tensor:
    """Values and their coordinates, which are checked. https://pytorch.org/docs → torch.sparse_coo_tensor"""
    return sparse_coo_tensor(indices, values, size, **options)


@public(method=False)
def _validate_sparse_coo_tensor_args(indices: Tensor, values: Tensor, size: Ints,
                                     is_coalesced: bool | None = None, check_pinning: bool = False) -> None:
    """Raise what `sparse_coo_tensor` raises with check_invariants=True.

    https://pytorch.org/docs → torch.sparse_coo_tensor
    """
    sparse_coo_tensor(indices, values, size, is_coalesced=is_coalesced, check_invariants=True)


@public(method=False)
def _validate_sparse_compressed_tensor_args(compressed_indices: Tensor, plain_indices: Tensor, values: Tensor,
                                            size: Ints, layout: Layout, check_pinning: bool = False) -> None:
    """Raise what `sparse_compressed_tensor` raises with check_invariants=True.

    https://pytorch.org/docs → torch.sparse_compressed_tensor
    """
    sparse_compressed_tensor(compressed_indices, plain_indices, values, size, layout=layout, check_invariants=True)


@public(method=False)
def _validate_compressed_sparse_indices(is_crow: bool, compressed_idx: Tensor, plain_idx: Tensor, cdim: int, dim: int,
                                        nnz: int) -> None:
    """Raise RuntimeError for indices that are not those of `nnz` values of a matrix with `cdim` rows, or columns.

    https://pytorch.org/docs → torch.sparse_compressed_tensor
    """
    from ..storage.sparse_patterns import compressed
    backend = type(compressed_idx._storage)
    lines, plain = (_indices(part, backend, ("int32", "int64")) for part in (compressed_idx, plain_idx))
    if plain.shape[-1] != nnz or lines.shape[-1] != cdim + 1:
        raise RuntimeError(f"expected {cdim + 1} compressed and {nnz} plain indices, but got {lines.shape[-1]} and "
                           f"{plain.shape[-1]}")
    shape = (cdim, dim) if is_crow else (dim, cdim)
    compressed(dtypes.sparse_csr if is_crow else dtypes.sparse_csc, lines, plain, (*lines.shape[:-1], *shape), backend,
               whole=True)


def _validator(name: str, layout: Any) -> None:
    def by_rows(crow_indices: Tensor, col_indices: Tensor, values: Tensor, size: Ints,
                check_pinning: bool = False) -> None:
        _validate_sparse_compressed_tensor_args(crow_indices, col_indices, values, size, layout)

    def by_columns(ccol_indices: Tensor, row_indices: Tensor, values: Tensor, size: Ints,
                   check_pinning: bool = False) -> None:
        _validate_sparse_compressed_tensor_args(ccol_indices, row_indices, values, size, layout)
    validate = by_rows if name in ("sparse_csr", "sparse_bsr") else by_columns
    validate.__name__ = validate.__qualname__ = f"_validate_{name}_tensor_args"
    validate.__doc__ = (f"Raise what `{name}_tensor` raises with check_invariants=True. "
                        f"https://pytorch.org/docs → torch.{name}_tensor")
    public(method=False)(validate)


for _name in ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"):
    _validator(_name, getattr(dtypes, _name))

__all__ = ["SCALAR_TYPES", "Layout", "empty_sparse", "rules"]
