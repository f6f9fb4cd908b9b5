"""Patterns: from index arrays, which are checked, from the nonzeros of an array, and from patterns of other layouts.

Messages are PyTorch's. PyTorch checks the range of indices on request. Here they are always checked, so that later code
can read at any index of a pattern.
"""
from __future__ import annotations

from math import prod
from typing import Any

from ..dtype import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from ..runtime.small_floats import computed
from .sparse import LARGEST, Compressed, Coo, Pattern, fixed, increasing

# names of the compressed and of the plain indices, and of the sizes that they count, in messages
NAMES = {sparse_csr: ("crow_indices", "col_indices", "nrows", "ncols"),
         sparse_bsr: ("crow_indices", "col_indices", "nrows", "ncols"),
         sparse_csc: ("ccol_indices", "row_indices", "ncols", "nrows"),
         sparse_bsc: ("ccol_indices", "row_indices", "ncols", "nrows")}


def check_sizes(shape: Any) -> None:
    if prod(n for n in shape if n) > LARGEST:
        raise RuntimeError("numel: integer multiplication overflow")


def coo(indices: Any, shape: tuple[int, ...], backend: Any, coalesced: bool = False, whole: bool = False) -> Coo:
    """Return the pattern of (sparse_dim, nnz) indices, which it owns; RuntimeError if one is out of range.

    With `whole`, indices that are called coalesced must be so.
    """
    check_sizes(shape)
    if indices.shape[1] and not backend.hollow:
        lowest, highest = backend.host(indices.min(axis=1)), backend.host(indices.max(axis=1))
        for dim, (low, high, size) in enumerate(zip(lowest.tolist(), highest.tolist(), shape)):
            if low < 0:
                raise RuntimeError(f"found negative index {low} for dim {dim}")
            if high >= size:
                raise RuntimeError(f"size is inconsistent with indices: for dim {dim}, size is {size} but found index "
                                   f"{high}")
    made = Coo(indices, shape, backend, coalesced)
    if coalesced and not backend.hollow and not (made.count < 2 or increasing(made.keys)):
        if whole:
            raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")
        made.coalesced = False
    return made


def compressed(layout: Any, lines: Any, plain: Any, shape: tuple[int, ...], backend: Any,
               blocksize: tuple[int, int] = (1, 1), dense_dim: int = 0, whole: bool = False) -> Compressed:
    """Return the pattern of compressed and plain indices, which it owns; RuntimeError if they do not fit.

    With `whole`, the indices of a row must be in order, and distinct.
    """
    check_sizes(shape)
    made = Compressed(layout, lines, plain, shape, backend, blocksize, dense_dim)
    if backend.hollow:
        return made
    first, second, line, counted = NAMES[layout]
    rows, columns = (shape[len(shape) - dense_dim - 2 + i] // blocksize[i] for i in (0, 1))
    other = columns if made.by_rows else rows
    steps = lines[..., 1:] - lines[..., :-1]
    requirements = [
        (f"{first}[..., 0] == 0", lines[..., 0] == 0), (f"{first}[..., -1] == nnz", lines[..., -1] == plain.shape[-1]),
        (f"0 <= {first}[..., 1:] - {first}[..., :-1] <= {counted}", (steps >= 0) & (steps <= other) if whole
         else steps >= 0),
        (f"0 <= {second} < {counted}", (plain >= 0) & (plain < other))]
    for text, holds in requirements:
        if not bool(holds.all()):
            raise RuntimeError(f"`{text}` is not satisfied.")
    if whole and not is_sorted(made):
        raise RuntimeError(f"`{second}[..., {first}[..., i - 1]:{first}[..., i]] for all i = 1, ..., {line} are sorted "
                           "and distinct along the last dimension values` is not satisfied.")
    return made


def is_sorted(pattern: Compressed) -> bool:
    """Return True if the plain indices of each line are in order, and distinct."""
    module, plain = pattern.backend.module, pattern.plain.reshape(-1, max(pattern.count, 1))
    if not plain.size:
        return True
    fine = plain[:, 1:] > plain[:, :-1]
    starts = pattern.compressed.reshape(plain.shape[0], -1)
    new = module.zeros((plain.shape[0], plain.shape[1] + 1), dtype=bool)
    module.put_along_axis(new, starts, True, 1)
    return bool((fine | new[:, 1:-1]).all())


def of_nonzeros(array: Any, sparse_dim: int, backend: Any) -> Coo:
    """Return the pattern of the nonzeros of a dense array, or of slices that have some."""
    module = backend.module
    there = (backend.cast(array, computed(array.dtype)) if array.dtype.kind == "V" else array) != 0
    if sparse_dim < array.ndim:
        there = there.any(axis=tuple(range(sparse_dim, array.ndim)))
    if not sparse_dim:      # one place, which is there or not
        return Coo(module.zeros((0, int(bool(there))), dtype="int64"), tuple(array.shape), backend, True)
    return Coo(module.stack(module.nonzero(there)).astype("int64"), tuple(array.shape), backend, True)


def distinct(module: Any, keys: Any) -> Any:
    """Return the keys in order, each once; NumPy's `unique` looks them up in a table, which takes ten times as long."""
    if increasing(keys):
        return keys
    keys = module.sort(keys)
    new = module.ones(keys.shape, dtype=bool)
    new[1:] = keys[1:] != keys[:-1]
    return keys[new]


def compress(entries: Coo, layout: Any, blocksize: tuple[int, int] | None = None) -> Compressed:
    """Return the pattern of a compressed layout with all places of a coalesced one."""
    module, shape, sparse_dim = entries.backend.module, entries.shape, entries.sparse_dim
    high, wide = blocksize or (1, 1)
    *lead, rows, columns = entries.indices
    batch, by_rows = shape[:sparse_dim - 2], layout in (sparse_csr, sparse_bsr)
    major, minor = (rows // high, columns // wide) if by_rows else (columns // wide, rows // high)
    sizes = (shape[sparse_dim - 2] // high, shape[sparse_dim - 1] // wide)
    lines, others = sizes if by_rows else sizes[::-1]
    which, batches = module.zeros(entries.count, dtype="int64"), prod(batch)
    for index, size in zip(lead, batch):
        which = which * size + index
    keys = distinct(module, (which * lines + major) * others + minor)
    line, plain = keys // max(others, 1), keys % max(others, 1)
    starts = module.searchsorted(line, module.arange(batches * lines + 1), side="left")
    first = starts[module.arange(batches) * lines].reshape(-1, 1)
    ends = starts[(module.arange(batches) * lines).reshape(-1, 1) + module.arange(lines + 1)] - first
    count = int(ends[0, -1]) if batches else 0
    if not bool((ends[:, -1] == count).all()):
        raise RuntimeError("Expect the same number of specified elements per batch.")
    made = Compressed(layout, ends.reshape(*batch, lines + 1).astype("int64"), plain.reshape(*batch, count), shape,
                      entries.backend, (high, wide), entries.dense_dim)
    if layout is sparse_csr:
        made._entries = entries
    return made


def converted(pattern: Pattern, layout: Any, blocksize: tuple[int, int] | None = None) -> Pattern:
    """Return a pattern of a layout with all places of another."""
    unique = pattern.entries.ordered[0]
    if layout is sparse_coo:
        return unique
    made = compress(unique, layout, blocksize)
    if isinstance(pattern, Compressed) and pattern.plain.dtype != made.plain.dtype:        # int32 stays so
        kept = pattern.plain.dtype
        made.compressed, made.plain = fixed(made.compressed.astype(kept)), fixed(made.plain.astype(kept))
    return made
