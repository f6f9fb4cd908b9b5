"""Sparse tensors without values, and the rules of ops on sparse tensors."""
from __future__ import annotations

from typing import Any

from .. import dtype as dtypes
from ..core.dispatch import fresh, namespace, xp
from ..storage.base import backend_of
from ..storage.sparse import SHOWN, Compressed, Coo, pattern_of
from ._register import FILLS


def rules() -> Any:
    """Return the module of what ops do on sparse tensors, all of whose rules are registered."""
    from ..interpret import sparse, sparse_products, sparse_rules  # noqa: F401
    return sparse


def empty_sparse(size: Any, layout: Any, dtype: Any, device: Any, name: str = "empty", dense_dim: int = 0,
                 blocksize: Any = ()) -> Any:
    """A sparse tensor without values. Errors name the function "empty", "zeros" or "zeros_like"."""
    backend, size = backend_of(device), tuple(map(int, size))
    if min(size, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    zeros, sparse_dim = backend.xp.zeros, len(size) - dense_dim
    if layout is dtypes.sparse_coo:
        pattern: Any = Coo(zeros((sparse_dim, 0), dtype="int64"), size, backend, True)
    else:
        _check_compressed(layout, sparse_dim, name, blocksize)
        blocks = tuple(blocksize) or (1, 1)
        rows, columns = (n // b for n, b in zip(size[sparse_dim - 2:sparse_dim], blocks, strict=True))
        lines = rows if layout in (dtypes.sparse_csr, dtypes.sparse_bsr) else columns
        batch = size[:sparse_dim - 2]
        pattern = Compressed(layout, zeros((*batch, lines + 1), dtype="int64"), zeros((*batch, 0), dtype="int64"), size,
                             backend, blocks, dense_dim)
    rules()
    numpy = (dtypes.as_dtype(dtype) if dtype is not None else dtypes.get_default_dtype()).numpy
    return xp.sparse_tensor(fresh(zeros(pattern.values_shape, dtype=numpy), backend), pattern=pattern)


def _check_compressed(layout: Any, sparse_dim: int, name: str, blocksize: Any) -> None:
    """Raise PyTorch's errors for a compressed tensor without values that cannot be."""
    blocked = layout in (dtypes.sparse_bsr, dtypes.sparse_bsc)
    if name == "zeros_like" and blocked is not bool(blocksize):
        raise RuntimeError("sparse_compressed_tensor_with_dims: blocksize " + (
            "needs to be a tuple of size 2, but got 0" if blocked else
            f"cannot be specified for non-block layout {SHOWN[layout]}"))
    if blocked and not blocksize:
        raise RuntimeError(f"{name}_sparse_compressed expected sparse compressed (non-block) tensor layout but got "
                           f"{SHOWN[layout]}")
    if sparse_dim < 2:
        raise RuntimeError(f"torch.{name}: Only batched sparse compressed (non-block) tensors are supported, but got "
                           f"size {[0] * sparse_dim}")


def like_sparse(name: str, input: Any, layout: Any, dtype: Any, device: Any, fill: Any,
                memory_format: Any = None) -> Any:
    """`zeros_like`, `rand_like` … in a sparse layout, or of a sparse tensor in a dense one.

    `fill(shape)` makes a dense tensor: of the shape, or the values of a compressed tensor, whose places stay.
    """
    own: Any = pattern_of(input)
    layout = layout or own.layout
    if memory_format is not None and layout is not dtypes.strided:
        raise RuntimeError("memory format option is only supported by strided tensors")
    compressed = isinstance(own, Compressed)
    if name != "zeros" and own is None:
        kind = "Sparse" if layout is dtypes.sparse_coo else "SparseCsr"
        raise NotImplementedError(f"Could not run 'aten::empty_strided' with arguments from the '{kind}CPU' backend. "
                                  "This could be because the operator doesn't exist for this backend, or was omitted "
                                  "during the selective/custom build process (if using custom build).")
    if compressed and layout is not own.layout and (name != "zeros" or layout is dtypes.strided):
        raise RuntimeError(f"empty_like with different sparse layout is not supported (self is {SHOWN[own.layout]} but "
                           f"you requested {SHOWN.get(layout, 'Strided')})")
    if layout is dtypes.strided:
        return fill(tuple(input.shape))
    inner, blocks = (0, ()) if own is None else (own.dense_dim, own.blocksize if getattr(own, "blocked", False) else ())
    if name == "zeros":
        return empty_sparse(input.shape, layout, dtype, device, "zeros_like", inner, blocks)
    if not compressed:
        found = empty_sparse(input.shape, layout, dtype, device, "empty", inner if layout is own.layout else 0)
        if name == "empty":
            return found
    if name == "rand" or not compressed:
        rules().refuse(FILLS.get(name, "fill_.Scalar"), input)
    values = fill(own.values_shape)
    if (backend := type(values._storage)) is not own.backend:
        lines, plain = (backend.asarray(own.backend.host(part)) if not own.backend.hollow else
                        backend.xp.zeros(part.shape, dtype=part.dtype) for part in (own.compressed, own.plain))
        own = Compressed(layout, lines, plain, own.shape, backend, own.blocksize, own.dense_dim)
    return rules().made(namespace(backend), own, values)
