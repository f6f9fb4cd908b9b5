"""Linear maps of the last axis."""
from __future__ import annotations

from math import prod

from .base import Op


class Linear(Op):
    """x·wᵀ + b along the last axis"""

    kernel_name = "addmm_impl_cpu_"
    torch_name = "Addmm"
    batch = "defined"
    linear = ("x b", "w")
    order = (2, 0, 1)

    def name(self):                   return f"{'Addmm' if len(self.shape) == 2 else 'View'}Backward0"

    def forward(xp, x, w, b):
        return xp.matmul(x, xp.t(w)) + b

    def grad_x(xp, g, w):             return xp.matmul(g, w)
    def grad_w(xp, g, x, w_shape):    return outer(xp, g, x, w_shape)
    def grad_b(xp, g, b_shape):       return xp.sum(rows(xp, g, b_shape[-1:]), axis=0)


class LinearWithoutBias(Op):
    """x·wᵀ along the last axis"""

    kernel_name = "addmm_impl_cpu_"
    torch_name = "Mm"
    batch = "defined"
    linear = ("x", "w")

    def name(self):
        return f"{('Squeeze', 'Mm', 'UnsafeView')[min(len(self.shape), 3) - 1]}Backward{4 * (len(self.shape) < 2)}"


    def forward(xp, x, w):            return xp.matmul(x, xp.t(w))
    def grad_x(xp, g, w):             return xp.matmul(g, w)
    def grad_w(xp, g, x, w_shape):    return outer(xp, g, x, w_shape)


def rows(xp, x, tail):
    """Flatten the leading axes: a stack of vectors becomes a matrix (of matrices, if `tail` has two sizes, a stack)."""
    return x if len(x.shape) == 1 + len(tail) else xp.reshape(x, (prod(x.shape[:len(x.shape) - len(tail)]), *tail))


def outer(xp, g, x, shape):
    """Σ g·xᵀ over all vectors: one product of tall matrices."""
    g = rows(xp, g, shape[:1])
    return xp.matmul(xp.t(g), rows(xp, x, shape[1:]))
