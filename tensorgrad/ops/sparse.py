"""Sparse arrays from values and back, and products of a sparse matrix, given by its values, with a dense one.

A pattern (see storage/sparse.py) is a parameter: gradients flow through values alone. Everything else that sparse
tensors do is composed of these ops and of ops on values, see interpret/sparse_rules.py.
"""
from __future__ import annotations

from numpy import result_type

from ..storage.sparse import Coo, SparseArray, pattern_of, values_at
from ..storage.sparse_patterns import converted, of_nonzeros
from .base import Op


def summable(dtype):
    """Return the dtype in which booleans, and dtypes without arithmetic, are summed; None for others."""
    if dtype.kind == "V":       # of these, complex32 alone has four bytes
        return "complex64" if dtype.itemsize == 4 else "float32"
    return "int8" if dtype.kind == "b" else None


class SparseTensor(Op):
    """The values at the places of a pattern, zeros elsewhere"""

    complex32 = True
    torch_name = "SparseCooTensorWithDimsAndTensors"
    linear = ("values",)
    crosses = True

    def name(self):
        return called(self)

    def forward(xp, values, *, pattern, called=None):
        return SparseArray(pattern, values)

    def grad_values(xp, g, pattern):
        own = pattern_of(g)
        if own is pattern and own.entries.ordered[0] is not own.entries:
            # values of one place: each gets the sum of the gradient's values there
            g = restricted(xp, g, own)
        return sampled(xp, g, pattern)


class SparseValues(Op):
    """The values of a sparse array at the places of a pattern, in its order; `own` is the array's pattern"""

    complex32 = True
    torch_name = "Values"
    linear = ("x",)
    crosses = True

    def forward(xp, x, *, pattern, own):
        return values_at(x, pattern)

    def grad_x(xp, g, pattern, own):
        if own is not pattern:
            return restricted(xp, xp.sparse_tensor(g, pattern=pattern), own)
        unique, _, first = pattern.entries.ordered
        if unique is pattern.entries:
            return xp.sparse_tensor(g, pattern=own)
        # values of one place were summed: each got the gradient of the sum
        g = xp.sparse_tensor(xp.embedding(xp.reshape(g, pattern.entries.values_shape), xp.constant(first)),
                             pattern=unique)
        return g if isinstance(own, Coo) else restricted(xp, g, own)


class SparseToDense(Op):
    """A sparse array as a dense one. The gradient is that at its own places, if `masked`; else all of it"""

    complex32 = True
    torch_name = "ToDense"
    linear = ("x",)
    crosses = True

    def forward(xp, x, *, pattern, masked=True):
        entries = pattern.entries
        values = xp.reshape(x.values, entries.values_shape)
        wide = summable(values.dtype)
        out = xp.embedding_add(xp.cast(values, dtype=wide) if wide else values, entries.keys, rows=entries.places)
        if wide:
            out = out != 0 if values.dtype.kind == "b" else xp.cast(out, dtype=values.dtype)
        return xp.reshape(out, pattern.shape)

    def grad_x(xp, g, pattern, masked=True):
        if masked:
            return restricted(xp, g, pattern)
        nonzeros = of_nonzeros(getattr(g, "array", g), pattern.sparse_dim, pattern.backend)
        blocksize = getattr(pattern, "blocksize", None)
        return restricted(xp, g, converted(nonzeros, pattern.layout, blocksize))


def sampled(xp, x, pattern):
    """Return the values of an array of any layout at the places of a pattern."""
    own = pattern_of(x)
    if own is not None:
        return xp.sparse_values(x, pattern=pattern, own=own)
    entries = pattern.entries
    flat = xp.reshape(x, (entries.places, *pattern.dense_shape))
    return xp.reshape(xp.embedding(flat, xp.constant(entries.keys)), pattern.values_shape)


def restricted(xp, x, pattern):
    """Return the sparse array of the values that an array of any layout has at the places of a coalesced pattern."""
    unique = pattern.entries.ordered[0]
    if isinstance(pattern, Coo):
        pattern = unique
    elif unique.count < pattern.entries.count:
        pattern = converted(pattern, pattern.layout, pattern.blocksize)
    return xp.sparse_tensor(sampled(xp, x, pattern), pattern=pattern)


def called(step):
    """Return the name of a step, given the public function that it ends."""
    name = step.params.get("called")
    return type(step).__name__ if not name else name if "Backward" in name else f"{name}Backward0"


class EmbeddingSparse(Op):
    """`embedding` with a sparse gradient: the rows that were taken, in their order"""

    torch_name = "Embedding"
    linear = ("x",)
    onnx = "definition"
    notation = "{}[{}]"

    def forward(xp, x, index, *, padding=None, by_frequency=False):
        return xp.embedding(x, index)

    def infer(x, index, **params):
        return (*index.shape, *x.shape[1:]), x.dtype

    def grad_x(xp, g, index, x_shape, padding=None, by_frequency=False):
        if by_frequency:
            raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
        rows = getattr(index, "array", index).reshape(-1)
        g = xp.reshape(g, (rows.shape[0], *x_shape[1:]))
        if padding is not None:
            kept = (rows != padding).nonzero()[0]
            rows, g = rows[kept], xp.embedding(g, xp.constant(kept))
        return xp.sparse_tensor(g, pattern=Coo(rows.reshape(1, -1).astype("int64"), x_shape, dense_of(xp)))


class GatherSparse(Op):
    """`gather` with a sparse gradient: the elements that were taken, in their order"""

    torch_name = "Gather"
    linear = ("x",)
    onnx = "definition"

    def forward(xp, x, index, *, axis):
        return xp.gather(x, index, axis=axis)

    def infer(x, index, **params):
        return index.shape, x.dtype

    def grad_x(xp, g, index, x_shape, axis):
        index = getattr(index, "array", index)
        module = dense_of(xp).module
        places = module.indices(index.shape, dtype="int64").reshape(index.ndim, -1)
        places[axis] = index.reshape(-1)
        return xp.sparse_tensor(xp.reshape(g, (places.shape[1],)), pattern=Coo(places, x_shape, dense_of(xp)))


def dense_of(xp):
    """Return the dense backend of an op table, for Tensors or for arrays."""
    return xp.backend.dense or xp.backend


class SparseMatmul(Op):
    """out[i, k] = Σₑ values[e] · b[column of e, k] over the values e of row i: A·b, or Aᵀ·b if transposed.

    A matrix A is given by the `values` (nnz), and by `pattern`, a storage.sparse.Csr of A, whether transposed or not.
    `b` is a matrix of the values' dtype.
    """

    torch_name = "Mm"
    kinds = "iufc"
    linear = ("values", "b")
    notation = "{} @ {}"

    def name(self):
        return called(self)

    def forward(xp, values, b, *, pattern, transposed=False, called=None):
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
