"""Products of a sparse matrix with a dense one on NumPy: by SciPy if it is loaded or worth loading, else by row sums.

`embedding` and `embedding_add` would do, with an array of a row for each value. Here they come in blocks that stay in
the cache.
"""
from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..core.dispatch import OpDispatch
from ..runtime.numpy_state import outside

BLOCK = 1 << 16
WORTH = 1 << 20         # with more multiplications, SciPy's import, a fifth of a second, pays off


def register(op: str) -> Any:
    return OpDispatch.register(op, "cpu")


def scipy_sparse(size: int) -> Any:
    """Return scipy.sparse where it is installed, and either loaded or worth it for so many multiplications."""
    if "scipy.sparse" not in sys.modules and size < WORTH:
        return None
    try:
        import scipy.sparse  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        return None
    return scipy.sparse


@register("sparse_matmul")
def sparse_matmul(values: Any, b: Any, *, pattern: Any, transposed: bool = False,
                  called: Any = None) -> Any:
    found = scipy_sparse(values.size * b.shape[1])
    if found is not None and values.dtype.char in "fdFD" and values.dtype == b.dtype:
        matrix = outside(found.csr_matrix, (values, pattern.indices, pattern.indptr), pattern.shape)
        return np.asarray(outside((matrix.T if transposed else matrix).dot, b), order="C")
    if transposed:
        pattern, order = pattern.transposed
        values = values[order]
    out = np.zeros((pattern.shape[0], b.shape[1]), np.result_type(values, b))
    step = max(1, BLOCK // max(b.shape[1], 1))
    for start in range(0, values.size if out.size else 0, step):
        part = slice(start, start + step)
        rows = pattern.rows[part]
        firsts = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
        products = values[part, None] * b[pattern.indices[part]]
        out[rows[firsts]] += np.add.reduceat(products, firsts, axis=0)
    return out


@register("sampled_matmul")
def sampled_matmul(a: Any, b: Any, *, pattern: Any) -> Any:
    count = pattern.indices.size
    out = np.empty(count, np.result_type(a, b))
    step = max(1, BLOCK // max(a.shape[1], 1))
    for start in range(0, count, step):
        part = slice(start, start + step)
        np.einsum("ek,ek->e", a[pattern.rows[part]], b[pattern.indices[part]], out=out[part])
    return out
