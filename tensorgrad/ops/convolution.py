"""Convolution in any number of dimensions: three ops that are each other's gradients.

With y = conv(x, w), all three are the trilinear form Σ y·conv(x, w) with one argument left open:
    convolution         (x, w) → y
    convolution_input   (y, w) → x       (this is transposed convolution)
    convolution_weight  (y, x) → w
x is (N, C, *D), w is (O, C / groups, *K), y is (N, O, *L); stride, padding and dilation have one number per dimension, and
L = (D + 2 padding − dilation (K − 1) − 1) // stride + 1. Computed as matrix products over columns: all windows, side by side.
The first two add a bias to each channel of their result, unless it is None.
"""
from __future__ import annotations

from itertools import product
from math import prod

from .base import Op


class Convolution(Op):
    """y[n, o] = b[o] + Σ_c x[n, c] ⋆ w[o, c]"""

    aside = "w"
    linear = ("x b", "w")

    def forward(xp, x, w, b, *, stride, padding, dilation, groups=1):
        columns, length = columns_of(xp, x, w.shape[2:], stride, padding, dilation)
        n, o = x.shape[0], w.shape[0]
        y = matrices(w, groups) @ columns.reshape(n, groups, prod(w.shape[1:]), prod(length))
        return biased(y.reshape(n, o, *length), b)

    def grad_x(xp, g, w, x_shape, stride, padding, dilation, groups=1):
        return xp.convolution_input(g, w, None, size=x_shape[2:], stride=stride, padding=padding, dilation=dilation, groups=groups)

    def grad_w(xp, g, x, w_shape, stride, padding, dilation, groups=1):
        return xp.convolution_weight(g, x, size=w_shape[2:], stride=stride, padding=padding, dilation=dilation, groups=groups)

    def grad_b(xp, g):
        return sum_of_channels(xp, g)


class ConvolutionInput(Op):
    """x[n, c] = b[c] + Σ_o y[n, o] spread by w[o, c]: each y adds w to its window of x. `size` is that of x."""

    torch_name = "Convolution"
    aside = "w"
    linear = ("y b", "w")

    def forward(xp, y, w, b, *, size, stride, padding, dilation, groups=1):
        n, c = y.shape[0], w.shape[1] * groups
        columns = matrices(w, groups).swapaxes(-1, -2) @ y.reshape(n, groups, y.shape[1] // groups, prod(y.shape[2:]))
        columns = columns.reshape(n, c, *w.shape[2:], *y.shape[2:])
        return biased(windows_added(xp, columns, (n, c, *size), stride, padding, dilation), b)

    def grad_y(xp, g, w, y_shape, stride, padding, dilation, groups=1):
        y = xp.convolution(g, w, None, stride=stride, padding=padding, dilation=dilation, groups=groups)
        return y if y.shape == y_shape else xp.get_slice(y, index=tuple(map(slice, y_shape)))    # x may be longer than y can reach

    def grad_w(xp, g, y, w_shape, stride, padding, dilation, groups=1):
        length = output_length(g.shape[2:], w_shape[2:], stride, padding, dilation)
        if length != tuple(y.shape[2:]):
            y = xp.pad_constant(y, widths=((0, 0), (0, 0), *((0, a - b) for a, b in zip(length, y.shape[2:], strict=True))))
        return xp.convolution_weight(y, g, size=w_shape[2:], stride=stride, padding=padding, dilation=dilation, groups=groups)

    def grad_b(xp, g):
        return sum_of_channels(xp, g)


class ConvolutionWeight(Op):
    """w[o, c] = Σ_n y[n, o] ⋆ x[n, c]. `size` is that of the kernel."""

    torch_name = "ConvolutionBackward"
    linear = ("y", "x")

    def forward(xp, y, x, *, size, stride, padding, dilation, groups=1):
        columns, length = columns_of(xp, x, size, stride, padding, dilation)
        n, o, c = y.shape[0], y.shape[1], x.shape[1]
        rows = y.reshape(n, groups, o // groups, prod(length))
        columns = columns.reshape(n, groups, c // groups * prod(size), prod(length))
        return (rows @ columns.swapaxes(-1, -2)).sum(axis=0).reshape(o, c // groups, *size)

    def grad_y(xp, g, x, stride, padding, dilation, groups=1):
        return xp.convolution(x, g, None, stride=stride, padding=padding, dilation=dilation, groups=groups)

    def grad_x(xp, g, y, x_shape, stride, padding, dilation, groups=1):
        return xp.convolution_input(y, g, None, size=x_shape[2:], stride=stride, padding=padding, dilation=dilation, groups=groups)


def biased(y, b):
    """A number added to each channel."""
    return y if b is None else y + b.reshape(-1, *(1,) * (y.ndim - 2))


def sum_of_channels(xp, g):
    """The sum of each channel, over the batch and all places."""
    return xp.sum(xp.sum(xp.reshape(g, (*g.shape[:2], prod(g.shape[2:]))), axis=2), axis=0)


def matrices(w, groups):
    """The kernels as one matrix for each group, (groups, O / groups, C / groups · K)."""
    return w.reshape(groups, w.shape[0] // groups, prod(w.shape[1:]))


def output_length(size, kernel, stride, padding, dilation):
    return tuple((d + 2 * p - e * (k - 1) - 1) // s + 1
                 for d, k, s, p, e in zip(size, kernel, stride, padding, dilation, strict=True))


def positions(kernel, length, stride, dilation):
    """For each place in the window, which elements of the padded input stand there: (place, slices)."""
    for place in product(*map(range, kernel)):
        yield place, tuple(slice(k * e, k * e + (n - 1) * s + 1, s)
                           for k, e, n, s in zip(place, dilation, length, stride, strict=True))


def padded(xp, x, padding):
    """x with zeros around it; x itself if there are none."""
    if not any(padding):
        return x
    out = xp.zeros((*x.shape[:2], *(d + 2 * p for d, p in zip(x.shape[2:], padding, strict=True))), dtype=x.dtype)
    out[(..., *(slice(p, p + d) for d, p in zip(x.shape[2:], padding, strict=True)))] = x
    return out


def columns_of(xp, x, kernel, stride, padding, dilation):
    """All windows of x, (N, C, *K, *L), and L."""
    length = output_length(x.shape[2:], kernel, stride, padding, dilation)
    if prod(kernel) == 1 and not any(padding) and prod(stride) == 1:
        return x.reshape(*x.shape[:2], *kernel, *length), length
    x = padded(xp, x, padding)
    columns = xp.empty((*x.shape[:2], *kernel, *length), dtype=x.dtype)
    for place, where in positions(kernel, length, stride, dilation):
        columns[(slice(None), slice(None), *place)] = x[(..., *where)]
    return columns, length


def windows_added(xp, columns, shape, stride, padding, dilation):
    """Windows added up where they came from: the adjoint of `columns_of`."""
    ndim = len(stride)
    kernel, length = columns.shape[2:2 + ndim], columns.shape[2 + ndim:]
    out = xp.zeros((*shape[:2], *(d + 2 * p for d, p in zip(shape[2:], padding, strict=True))), dtype=columns.dtype)
    for place, where in positions(kernel, length, stride, dilation):
        out[(..., *where)] += columns[(slice(None), slice(None), *place)]
    return out[(..., *(slice(p, p + d) for d, p in zip(shape[2:], padding, strict=True)))]


class Columns(Op):
    """All windows of x, (N, C, *K, *L)."""

    torch_name = "Im2Col"
    kinds = "biufcV"
    linear = ("x",)

    def forward(xp, x, *, kernel, stride, padding, dilation):
        columns, _ = columns_of(xp, x, kernel, stride, padding, dilation)
        return columns if columns.base is None else columns.copy()

    def grad_x(xp, g, x_shape, stride, padding, dilation):
        return xp.columns_added(g, size=x_shape[2:], stride=stride, padding=padding, dilation=dilation)


class ColumnsAdded(Op):
    """Windows added up where they came from: the adjoint of `columns`."""

    torch_name = "Col2Im"
    linear = ("x",)

    def forward(xp, x, *, size, stride, padding, dilation):
        return windows_added(xp, x, (*x.shape[:2], *size), stride, padding, dilation)

    def grad_x(xp, g, x_shape, stride, padding, dilation):
        return xp.columns(g, kernel=x_shape[2:2 + len(stride)], stride=stride, padding=padding, dilation=dilation)
