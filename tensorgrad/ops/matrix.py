"""Products of vectors, matrices, and stacks of them."""
from __future__ import annotations

from math import prod

from numpy import result_type

from .base import Op
from .signatures import shapes


def transposed(xp, x):
    """The last two axes exchanged."""
    return xp.t(x) if len(x.shape) == 2 else xp.swapaxes(x, -1, -2)


def rows(xp, x):
    """Reshape a stack of matrices to one matrix, on top of each other."""
    return x if len(x.shape) == 2 else xp.reshape(x, (prod(x.shape[:-1]), x.shape[-1]))


def product_kernel(a, b, *_):
    """Return the name of PyTorch's kernel for a product of vectors, matrices or stacks of them."""
    few, many = sorted((len(a.shape), len(b.shape)))
    return "dot" if many == 1 else "addmv_impl_cpu" if few == 1 else "bmm" if few > 2 else "addmm_impl_cpu_"


class Matmul(Op):
    """out[…, i, j] = Σₖ a[…, i, k]·b[…, k, j]; a vector stands for a row on the left, a column on the right"""

    kernel_name = staticmethod(product_kernel)
    torch_name = "Mm"
    native = True
    notation = "{} @ {}"
    kinds = "iufc"
    linear = ("a", "b")

    def name(self):
        """Return the name of the last step that PyTorch records; it copies stacks of matrices into one stack."""
        left, right = (None if edge is None else len(edge.shape) for edge in self.edges)
        result = len(self.shape)
        if result == 1 and (left == 1 or right == 2):
            return "SqueezeBackward4"           # of a row times a matrix
        stacked = result > 2 or result == 2 and (left or 2, right or 2) != (2, 2)
        return f"{'UnsafeView' if stacked else ('Dot', 'Mv', 'Mm')[result]}Backward0"

    def batch(lot, kernel, a, b):
        """Multiply matrices that all examples share in one product of tall matrices."""
        a, b = lot.batch(a), lot.batch(b)
        if not (a.ndim and b.ndim) or a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
            raise ValueError("matmul: shapes do not fit")
        if b.ndim == 2 and lot.shared(b):
            tall = a.values.reshape(prod(a.values.shape[:-1]), a.shape[-1])
            return lot.whole(kernel(tall, lot.common(b)).reshape(*a.values.shape[:-1], b.shape[1]))
        if b.ndim == 1 and a.ndim == 2 and lot.shared(a):
            return Matmul.batch(lot, kernel, b, a.T)
        row, column = a.ndim == 1, b.ndim == 1
        out = kernel(*lot.values(a[None] if row else a, b[:, None] if column else b))
        out = out[..., 0] if column else out
        return lot.whole(out[..., 0] if row and column else out[..., 0, :] if row else out)

    def forward(xp, a, b):
        return xp.matmul(a, b)

    def infer(a, b):
        return shapes("(m?,n),(n,p?)->(m?,p?)", a.shape, b.shape)[0], result_type(a.dtype, b.dtype)

    def explain(a, b=()):
        return RuntimeError(misfit(a, b))

    def grad_a(xp, g, b, a_shape):
        if len(b.shape) == 1:
            return xp.expand_dims(g, -1) * b
        return xp.matmul(b, g) if len(a_shape) == 1 and len(b.shape) == 2 else \
            to_vector(xp, xp.matmul(as_matrix(xp, g, a_shape, -2), transposed(xp, b)), a_shape, -2)

    def grad_b(xp, g, a, b_shape):
        if len(a.shape) == 1:
            return a * g if len(b_shape) == 1 else xp.expand_dims(a, -1) * xp.expand_dims(g, -2)
        if len(b_shape) == 1:
            return xp.matmul(transposed(xp, rows(xp, a)), xp.reshape(g, (prod(a.shape[:-1]),)))
        if len(b_shape) == 2:        # one product of tall matrices, not a sum of many
            return xp.matmul(transposed(xp, rows(xp, a)), rows(xp, g))
        return xp.matmul(transposed(xp, a), g)


def as_matrix(xp, g, shape, axis):
    """Reshape the gradient of a product with a vector to that of a product with a matrix of one row."""
    return xp.expand_dims(g, axis) if len(shape) == 1 else g


def to_vector(xp, g, shape, axis):
    """Reduce the gradient of a stack of one-row matrices to that of the vector that they share."""
    return xp.reshape(xp.sum(g, axis=tuple(range(len(g.shape) - 1))), shape) if len(shape) == 1 else g


def misfit(a, b):
    """Why two shapes cannot be multiplied."""
    if not (a and b):
        return f"both arguments to matmul need to be at least 1D, but they are {len(a)}D and {len(b)}D"
    if len(a) == len(b) == 1:
        return (f"inconsistent tensor size, expected tensor [{a[0]}] and src [{b[0]}] to have the same number of "
                f"elements, but got {a[0]} and {b[0]} elements respectively")
    if len(b) == 1:
        return f"size mismatch, got input ({prod(a[:-1])}), mat ({prod(a[:-1])}x{a[-1]}), vec ({b[0]})"
    if len(b) == 2:
        return f"mat1 and mat2 shapes cannot be multiplied ({prod(a[:-1])}x{a[-1]} and {b[0]}x{b[1]})"
    axes = range(-3, -1 - min(len(a), len(b)), -1)
    apart = next((i for i in axes if a[i] != b[i] and 1 not in (a[i], b[i])), None)
    if apart is not None:
        return (f"The size of tensor a ({a[apart]}) must match the size of tensor b ({b[apart]}) at non-singleton "
                f"dimension {max(len(a), len(b)) + apart}")
    count = prod(max(m, n) for m, n in zip(((1,) * len(b) + a)[-len(b):-2], b[:-2], strict=True))
    return (f"Expected size for first two dimensions of batch2 tensor to be: [{count}, {a[-1]}] but got: [{count}, "
            f"{b[-2]}].")


class Cross(Op):
    """a × b of vectors with three elements along an axis"""

    kernel_name = "cross"
    torch_name = "LinalgCross"
    casts = "promote"
    kinds = "iufc"
    batch = "defined"
    linear = ("a", "b")
    onnx = "definition"

    def forward(xp, a, b, *, axis):
        lead = (slice(None),) * axis
        (a0, a1, a2), (b0, b1, b2) = ([x[(*lead, i)] for i in range(3)] for x in (a, b))
        return xp.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis)

    def grad_a(xp, g, b, axis): return xp.cross(b, g, axis=axis)
    def grad_b(xp, g, a, axis): return xp.cross(g, a, axis=axis)


class EuclideanDistance(Op):
    """out[…, i, j] = |a[…, i] − b[…, j]|, through one matrix product; subgradient 0 where points coincide"""

    torch_name = "Cdist"
    casts = "float"
    kinds = "f"
    batch = "stacked"
    core = (2, 2)
    onnx = "definition"

    def forward(xp, a, b):
        square = xp.sum(a * a, axis=-1, keepdims=True) - 2 * xp.matmul(a, xp.swapaxes(b, -1, -2)) \
            + xp.swapaxes(xp.sum(b * b, axis=-1, keepdims=True), -1, -2)
        return xp.sqrt(xp.maximum(square, 0))

    def grad_a(xp, g, a, b, out):
        pull = pulls(xp, g, out)
        return a * xp.sum(pull, axis=-1, keepdims=True) - xp.matmul(pull, b)

    def grad_b(xp, g, a, b, out):
        pull = xp.swapaxes(pulls(xp, g, out), -1, -2)
        return b * xp.sum(pull, axis=-1, keepdims=True) - xp.matmul(pull, a)


def pulls(xp, g, distance):
    """Return g / distance per pair of points, 0 where points coincide: the factor of a − b in the gradient."""
    return xp.where(distance == 0, 0, g / xp.where(distance == 0, 1, distance))
