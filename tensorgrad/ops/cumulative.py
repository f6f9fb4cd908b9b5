"""Running results along an axis: sums, products, extrema.

Every one is a scan: log₂ n steps, each over the whole array.
"""
from __future__ import annotations

from math import prod

from numpy import dtype as of

from .base import AlongAxis
from .reduction import Choice, counted, products_before, shift
from .shape import as_first
from .transcendental import complex_logaddexp


def scan(xp, join, parts, axis):
    """Running results of an associative `join(earlier, later)` of tuples of arrays, along an axis."""
    step, lead = 1, (slice(None),) * axis
    while step < parts[0].shape[axis]:
        joined = join([part[(*lead, slice(None, -step))] for part in parts],
                      [part[(*lead, slice(step, None))] for part in parts])
        parts = [xp.concat([part[(*lead, slice(None, step))], j], axis=axis)
                 for part, j in zip(parts, joined, strict=True)]
        step *= 2
    return parts


class Cumsum(AlongAxis):
    """out[i] = Σ x[j] for j ≤ i"""

    kernel_name = "cumsum_out_cpu"
    row_major = True
    linear = ("x",)

    def forward(xp, x, *, axis):
        return xp.cumsum(x, axis=axis)

    def infer(x, *, axis):
        return x.shape, counted(x.dtype)

    def grad_x(xp, g, axis):
        return xp.flip(xp.cumsum(xp.flip(g, (axis,)), axis=axis), (axis,))


class Cumprod(AlongAxis):
    """out[i] = Π x[j] for j ≤ i"""

    kernel_name = "cumprod_out_cpu"
    row_major = True

    def forward(xp, x, *, axis):
        return xp.cumprod(x, axis=axis)

    def infer(x, *, axis):
        return x.shape, counted(x.dtype)

    def grad_x(xp, g, x, axis):
        if prod(x.shape) < 2:
            return g
        following = xp.pad_constant(x, widths=shift(len(x.shape), axis, -1))
        return products_before(xp, x, axis) * xp.recurrence(g, following, axis=axis, reverse=True)


class Recurrence(AlongAxis):
    """y[i] = x[i] + a[i]·y[i − 1], or, in reverse, x[i] + a[i]·y[i + 1]: what gradients of running results are made
    of
    """

    kinds = "fc"
    infer = as_first
    onnx = "definition"

    def forward(xp, x, a, *, axis, reverse=False):
        parts = [xp.flip(part, axis) for part in (x, a)] if reverse else [x, a]
        y, _ = scan(xp, lambda earlier, later: (later[0] + later[1] * earlier[0], later[1] * earlier[1]), parts, axis)
        return xp.contiguous(xp.flip(y, axis)) if reverse else y

    def grad_x(xp, g, a, axis, reverse=False):
        return adjoint(xp, g, a, axis, reverse)

    def grad_a(xp, g, a, out, axis, reverse=False):
        before = xp.pad_constant(out, widths=shift(len(out.shape), axis, -1 if reverse else 1))
        return adjoint(xp, g, a, axis, reverse) * before


def adjoint(xp, g, a, axis, reverse):
    """Return the gradient of a recurrence: the recurrence in the opposite direction."""
    following = xp.pad_constant(a, widths=shift(len(a.shape), axis, 1 if reverse else -1))
    return xp.recurrence(g, following, axis=axis, reverse=not reverse)


class Logcumsumexp(AlongAxis):
    """out[i] = ln Σ exp x[j] for j ≤ i"""

    kernel_name = "logcumsumexp_out_cpu"
    row_major = True
    kinds = "fc"
    infer = as_first

    def forward(xp, x, *, axis):
        if x.dtype.kind == "f":
            return scan(xp, lambda earlier, later: (xp.logaddexp(earlier[0], later[0]),), [x], axis)[0]
        # the branch of a complex logarithm depends on the order
        lines = [xp.swapaxes(x, 0, axis)[i] for i in range(x.shape[axis])]
        for i in range(1, len(lines)):
            lines[i] = complex_logaddexp(xp, lines[i - 1], lines[i])
        return xp.swapaxes(xp.stack(lines), 0, axis) if lines else xp.contiguous(x)

    def grad_x(xp, g, x, out, axis):
        if prod(x.shape) < 2:
            return g
        head, tail = (xp.get_slice(out, index=(slice(None),) * axis + (part,))
                      for part in (slice(None, -1), slice(1, None)))
        empty = xp.isinf(head) & (head == tail)
        decay = xp.where(empty, 0, xp.exp(xp.where(empty, 0, head - tail)))
        decay = xp.pad_constant(decay, widths=tuple((0, int(i == axis)) for i in range(len(x.shape))))
        return xp.recurrence(g, decay, axis=axis, reverse=True) * xp.exp(x - out)


class Running(Choice):
    """Running extrema, and where they are: the last of equal ones."""

    __slots__ = ()
    row_major = True

    def infer(x, *, axis):
        return [(x.shape, x.dtype), (x.shape, of("int64"))]


def running(xp, x, axis, ahead):
    """Return the running extreme by `ahead(later, earlier)`, and its index; NaN precedes all."""
    index = xp.reshape(xp.arange(x.shape[axis]), tuple(n if d == axis else 1 for d, n in enumerate(x.shape)))

    def join(earlier, later):
        newer = ahead(later[0], earlier[0]) & (earlier[0] == earlier[0]) | (later[0] != later[0])
        return [xp.where(newer, b, a) for a, b in zip(earlier, later, strict=True)]
    values, indices = scan(xp, join, [x, xp.broadcast_to(index, x.shape)], axis)
    return values, xp.contiguous(indices)


def to_running(xp, g, indices, x_shape, axis):
    """Add the gradients to the elements that were running extrema."""
    return xp.scatter_add(xp.zeros(x_shape, dtype=g[0].dtype), g[0], indices, axis=axis)


class Cummax(Running):
    """out[i] = max x[j] for j ≤ i, and the last such j"""

    def forward(xp, x, *, axis): return running(xp, x, axis, lambda later, earlier: later >= earlier)
    grad_x = to_running


class Cummin(Running):
    """out[i] = min x[j] for j ≤ i, and the last such j"""

    def forward(xp, x, *, axis): return running(xp, x, axis, lambda later, earlier: later <= earlier)
    grad_x = to_running
