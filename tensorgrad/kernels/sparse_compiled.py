"""Products of a sparse matrix with a dense one by compiled code: native/sparse.inc."""
from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import native, register, whole

PRODUCT = {"l": native.sparse_matmul, "i": native.sparse_matmul_32}
SAMPLES = {"l": native.sampled_matmul, "i": native.sampled_matmul_32}


def fits(pattern: Any, *arrays: Any) -> bool:
    """Return True if there is something to compute, in one dtype that the kernels know."""
    kinds = {x.dtype.char for x in arrays}
    return (len(kinds) == 1 and not kinds.isdisjoint("fd") and pattern.indices.dtype.char in PRODUCT
            and pattern.indices.size > 0 and all(x.size for x in arrays))


def done(refused: Any, bad: Any, out: Any) -> Any:
    """Return `out`, or NotImplemented where the kernel refused the arrays or met an index out of range."""
    return NotImplemented if refused is not None or bad[0] else out


@register("sparse_matmul")
def sparse_matmul(values: Any, b: Any, *, pattern: Any, transposed: bool = False) -> Any:
    if not fits(pattern, values, b):
        return NotImplemented
    pattern, order = pattern.transposed if transposed else (pattern, None)
    (rows, n), width, bad = pattern.shape, b.shape[1], np.empty(1, np.int64)
    out = np.empty((rows, width), b.dtype)
    kernel = PRODUCT[pattern.indices.dtype.char]
    return done(kernel(whole(values), pattern.indptr, pattern.indices, order, whole(b), out, bad, rows, n, width),
                bad, out)


@register("sampled_matmul")
def sampled_matmul(a: Any, b: Any, *, pattern: Any) -> Any:
    if not fits(pattern, a, b):
        return NotImplemented
    (rows, n), width, bad = pattern.shape, a.shape[1], np.empty(1, np.int64)
    out = np.empty(pattern.indices.size, a.dtype)
    kernel = SAMPLES[pattern.indices.dtype.char]
    return done(kernel(whole(a), pattern.indptr, pattern.indices, whole(b), out, bad, rows, n, width), bad, out)
