"""Tables of vectors: reading rows, and adding to them."""
from __future__ import annotations

from .base import Op
from .indexing import ARRAY
from .shape import Movement

ROWS = (ARRAY,)


class Take(Movement):
    """Slices x[i] along the first axis, for an index array of any shape. Row `padding` gets no gradient; `by_frequency`
    divides those of each row by how often it was taken."""

    opname = "embedding"
    torch_name = "Embedding"
    batch = "defined"
    linear = ("x",)
    notation = "{}[{}]"
    former = "LOOKUP"

    def forward(xp, x, index, *, padding=None, by_frequency=False):
        return xp.index(x, index, template=ROWS)

    def infer(x, index, **params):
        return (*index.shape, *x.shape[1:]), x.dtype

    def grad_x(xp, g, index, x_shape, padding=None, by_frequency=False):
        if padding is not None:
            g = xp.where(xp.expand_dims(index != padding, -1), g, 0)
        if by_frequency:
            times = xp.embedding_add(xp.ones(index.shape, dtype=g.dtype), index, rows=x_shape[0])
            g = g / xp.expand_dims(xp.embedding(times, index), -1)
        return xp.embedding_add(g, index, rows=x_shape[0])


class EmbeddingAdd(Movement):
    """Slices added up in the rows that they came from: the adjoint of `embedding`."""

    kernel_name = "cpublas_axpy_impl"
    kinds = Op.kinds
    torch_name = "EmbeddingDenseBackward"
    linear = ("x",)
    batch = "defined"

    def forward(xp, x, index, *, rows):
        return xp.index_add_into(x, index, shape=(rows, *x.shape[index.ndim:]), template=ROWS)

    def infer(x, index, *, rows):
        return (rows, *x.shape[len(index.shape):]), x.dtype

    def grad_x(xp, g, index):
        return xp.embedding(g, index)


class EmbeddingBag(Op):
    """out[k] = Σ s[i] · x[index[i]] over the places i with bag[i] = k"""

    batch = "defined"
    onnx = "definition"

    def forward(xp, x, index, bag, s, *, bags):
        return xp.embedding_add(scaled(xp, xp.embedding(x, index), s), bag, rows=bags)

    def grad_x(xp, g, index, bag, s, x_shape):
        return xp.embedding_add(scaled(xp, xp.embedding(g, bag), s), index, rows=x_shape[0])

    def grad_s(xp, g, x, index, bag):
        return xp.sum(xp.embedding(g, bag) * xp.embedding(x, index), axis=-1)


def scaled(xp, vectors, s):
    return vectors if s is None else vectors * xp.expand_dims(s, -1)
