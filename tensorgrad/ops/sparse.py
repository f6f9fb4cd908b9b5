"""Sparse arrays from values and back, and products of a sparse matrix, given by its values, with a dense one.

A pattern (see storage/sparse.py) is a parameter: gradients flow through values alone. Everything else that sparse
tensors do is composed of these ops and of ops on values, see interpret/sparse_rules.py.
"""
from __future__ import annotations

from numpy import result_type

from ..storage.sparse import SparseArray, pattern_of, values_at
from .base import Op


class SparseTensor(Op):
    """The values at the places of a pattern, zeros elsewhere"""

    torch_name = "SparseCooTensorWithDimsAndTensors"
    linear = ("values",)
    crosses = True

    def forward(xp, values, *, pattern):
        return SparseArray(pattern, values)

    def grad_values(xp, g, pattern):
        return sampled(xp, g, pattern)


class SparseValues(Op):
    """The values of a sparse array at the places of a pattern, in its order"""

    torch_name = "Values"
    linear = ("x",)
    crosses = True

    def forward(xp, x, *, pattern):
        return values_at(x, pattern)

    def grad_x(xp, g, pattern):
        unique, _, first = pattern.entries.ordered
        if unique is pattern.entries:
            return xp.sparse_tensor(g, pattern=pattern)
        # a place that occurs twice has one gradient, which each of its values got
        g = xp.embedding(xp.reshape(g, pattern.entries.values_shape), xp.constant(first))
        return xp.sparse_tensor(g, pattern=unique)


def sampled(xp, x, pattern):
    """The values of an array of any layout at the places of a pattern."""
    if pattern_of(x) is not None:
        return xp.sparse_values(x, pattern=pattern)
    entries = pattern.entries
    flat = xp.reshape(x, (entries.places, *pattern.dense_shape))
    return xp.reshape(xp.embedding(flat, xp.constant(entries.keys)), pattern.values_shape)


class SparseMatmul(Op):
    """out[i, k] = Σₑ values[e] · b[column of e, k] over the values e of row i: A·b, or Aᵀ·b if transposed.

    A matrix A is given by the `values` (nnz), and by `pattern`, a storage.sparse.Csr of A, whether transposed or not.
    `b` is a matrix of the values' dtype.
    """

    torch_name = "SparseMm"
    kinds = "iufc"
    linear = ("values", "b")
    notation = "{} @ {}"

    def forward(xp, values, b, *, pattern, transposed=False):
        into, of = pattern.rows, pattern.indices
        if transposed:
            into, of = of, into
        products = xp.expand_dims(values, -1) * xp.embedding(b, of)
        return xp.embedding_add(products, into, rows=pattern.shape[transposed])

    def infer(values, b, *, pattern, transposed=False):
        return (pattern.shape[transposed], b.shape[1]), result_type(values.dtype, b.dtype)

    def grad_values(xp, g, b, pattern, transposed=False):
        return xp.sampled_matmul(*((b, g) if transposed else (g, b)), pattern=pattern)

    def grad_b(xp, g, values, pattern, transposed=False):
        return xp.sparse_matmul(values, g, pattern=pattern, transposed=not transposed)


class SampledMatmul(Op):
    """out[e] = Σₖ a[i, k] · b[j, k]: the product a·bᵀ at the places (i, j) of a `pattern`, a storage.sparse.Csr"""

    torch_name = "SparseSampledAddmm"
    kinds = "iufc"
    linear = ("a", "b")

    def forward(xp, a, b, *, pattern):
        return xp.sum(xp.embedding(a, pattern.rows) * xp.embedding(b, pattern.indices), axis=-1)

    def infer(a, b, *, pattern):
        return pattern.indices.shape, result_type(a.dtype, b.dtype)

    def grad_a(xp, g, b, pattern):
        return xp.sparse_matmul(g, b, pattern=pattern)

    def grad_b(xp, g, a, pattern):
        return xp.sparse_matmul(g, a, pattern=pattern, transposed=True)
