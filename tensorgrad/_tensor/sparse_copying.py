"""Printing, copies and pickles of sparse tensors: of their indices and values."""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtype as dtypes
from ..core.fast_path import PLAIN
from ..core.mode import mode
from ..core.tape import Leaf, new
from ..storage.base import backend_of
from ..storage.sparse import Coo, SparseArray, sparse_of
from . import printing
from .states import restore


def parts(pattern: Any) -> dict[str, Any]:
    """The index arrays of a pattern, by their names."""
    from ..storage.sparse_patterns import NAMES
    if isinstance(pattern, Coo):
        return {"indices": pattern.indices}
    first, second = NAMES[pattern.layout][:2]
    return {first: pattern.compressed, second: pattern.plain}


def text(tensor: Any) -> str:
    """repr(tensor), as PyTorch writes it."""
    array, own, node = tensor.array, tensor.array.pattern, tensor.grad_fn
    prefix = "tensor(" if type(tensor) in PLAIN else f"{type(tensor).__name__}("
    indent, lines = len(prefix), []
    for name, part in {**parts(own), "values": array.values}.items():
        if own.backend.hollow:
            lines.append(f"{name}=tensor(..., size={part.shape})")
            continue
        host = own.backend.host(part)
        body = printing._values(host, host.shape, indent + len(name) + 8) if host.size else "[]"
        size = "" if host.size else f", size={host.shape}"
        lines.append(f"{name}=tensor({body}{size})")
    body = prefix + (",\n" + " " * indent).join(lines)
    suffixes = [] if tensor.is_cpu else [f"device='{tensor.device}'"]
    suffixes += [f"size={tuple(own.shape)}", *([] if own.backend.hollow else [f"nnz={own.count}"])]
    default = dtypes.get_default_dtype()
    if tensor.dtype not in (default, dtypes.int64, dtypes.bool,
                            dtypes.complex128 if default is dtypes.float64 else dtypes.complex64):
        suffixes.append(f"dtype={tensor.dtype}")
    suffixes.append(f"layout={own.layout}")
    if node is not None:
        suffixes.append(f"grad_fn=<{node.name().rpartition('::')[2]}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    if mode.tangents.see is not None:
        suffixes += mode.tangents.see.notes(tensor)
    return printing._with_suffixes(body, suffixes, indent, new_line=isinstance(own, Coo))


def reduced(tensor: Any, state: Any) -> Any:
    """Return what pickle writes for a sparse tensor."""
    own = tensor.array.pattern
    indices = [own.backend.host(part) for part in parts(own).values()]
    values = own.backend.host(tensor.array.values)
    if values.dtype.kind == "V":
        values = values.view(f"u{values.itemsize}")
    return rebuild, (type(tensor), own.layout.name, indices, values, tuple(own.shape), getattr(own, "coalesced", False),
                     tensor.dtype.name, str(tensor.device), tensor.requires_grad, state)


def rebuild(cls: Any, layout_name: str, indices: Any, values: Any, shape: Any, coalesced: bool, dtype_name: str,
            device: str, requires_grad: bool, state: Any) -> Any:
    """Make a pickled sparse tensor again; RuntimeError for indices that are out of range."""
    from ..interpret import sparse_products, sparse_rules  # noqa: F401
    from ..storage.sparse_patterns import compressed, coo
    backend, layout = backend_of(device), getattr(dtypes, layout_name)
    values = backend.asarray(values.view(dtypes.NAMED[dtype_name].numpy))
    arrays = [backend.asarray(np.array(part)) for part in indices]
    if layout is dtypes.sparse_coo:
        pattern: Any = coo(arrays[0], shape, backend, coalesced)
    else:
        blocked = layout in (dtypes.sparse_bsr, dtypes.sparse_bsc)
        place = arrays[1].ndim
        blocksize = values.shape[place:place + 2] if blocked else (1, 1)
        pattern = compressed(layout, *arrays, shape, backend, blocksize, values.ndim - place - 2 * blocked)
    if tuple(values.shape) != tuple(pattern.values_shape):
        raise RuntimeError(f"expected values of the shape {list(pattern.values_shape)}, but got {list(values.shape)}")
    out = new(cls)
    out.array, out._storage = SparseArray(pattern, values), sparse_of(backend)()
    out._node, out._grad, out.origin = None, None, None
    if requires_grad:
        out._node = Leaf(out)
    if state:
        restore(out, state)
    return out
