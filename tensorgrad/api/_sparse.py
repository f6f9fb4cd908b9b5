"""Sparse tensors without values, and the rules of ops on sparse tensors."""
from __future__ import annotations

from typing import Any

from .. import dtype as dtypes
from ..core.dispatch import fresh, namespace, xp
from ..device import device as Device
from ..storage.base import backend_of
from ..storage.sparse import Compressed, Coo, pattern_of


def rules() -> Any:
    """Return the module of what ops do on sparse tensors, all of whose rules are registered."""
    from ..interpret import sparse, sparse_products, sparse_rules  # noqa: F401
    return sparse


def empty_sparse(size: Any, layout: Any, dtype: Any, device: Any) -> Any:
    """A sparse tensor without values."""
    backend, size = backend_of(device), tuple(map(int, size))
    if min(size, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    zeros = backend.xp.zeros
    if layout is dtypes.sparse_coo:
        pattern: Any = Coo(zeros((len(size), 0), dtype="int64"), size, backend, True)
    elif layout in (dtypes.sparse_csr, dtypes.sparse_csc) and len(size) >= 2:
        lines = size[-2] if layout is dtypes.sparse_csr else size[-1]
        pattern = Compressed(layout, zeros((*size[:-2], lines + 1), dtype="int64"),
                             zeros((*size[:-2], 0), dtype="int64"), size, backend)
    else:
        raise RuntimeError(f"no tensor of size {list(size)} can be made without values in the layout {layout}")
    rules()
    numpy = (dtypes.as_dtype(dtype) if dtype is not None else dtypes.get_default_dtype()).numpy
    return xp.sparse_tensor(fresh(zeros(pattern.values_shape, dtype=numpy), backend), pattern=pattern)


def like_sparse(name: str, input: Any, layout: Any, dtype: Any, device: Any) -> Any:
    """`zeros_like` and `empty_like` in a sparse layout, or of a sparse tensor in a dense one."""
    from ..interpret.sparse_rules import zeros_like
    own, numpy = pattern_of(input), dtypes.as_dtype(dtype).numpy
    if layout is dtypes.strided:
        backend = backend_of(device)
        return fresh(getattr(backend.xp, name)(tuple(input.shape), dtype=numpy), backend)
    if name not in ("zeros", "empty"):
        rules().refuse("fill_.Scalar" if name == "ones" else name, input)
    if own is None or layout not in (None, own.layout) or input.device != Device(device):
        return empty_sparse(input.shape, layout or own.layout, dtype, device)
    return zeros_like(namespace(own.backend), input.detach(), dtype=numpy)
