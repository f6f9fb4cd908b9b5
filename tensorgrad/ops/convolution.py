"""Convolution in any number of dimensions: three ops that are each other's gradients.

With y = conv(x, w), all three are the trilinear form Σ y·conv(x, w) with one argument left open:
    convolution         (x, w) → y
    convolution_input   (y, w) → x       (this is transposed convolution)
    convolution_weight  (y, x) → w
x is (N, C, *D), w is (O, C / groups, *K), y is (N, O, *L); stride, padding and dilation have one number per dimension,
and L = (D + 2 padding − dilation (K − 1) − 1) // stride + 1. Computed as matrix products over columns: all windows,
side by side. The first two add a bias to each channel of their result, unless it is None.
"""
from __future__ import annotations

from math import prod

from .base import Op
from .windows import output_length

# ── batches: of inputs, a longer batch; of kernels, more groups ───────────────────────────────────────────────────────


def flat(lot, x, hidden):
    """The values with all hidden axes in one."""
    return lot.full(x, hidden).reshape(prod(hidden), *x.shape)


def into_channels(values):
    """(B, N, C, …) → (N, B·C, …)"""
    return values.swapaxes(0, 1).reshape(values.shape[1], values.shape[0] * values.shape[2], *values.shape[3:])


def from_channels(lot, values, hidden):
    """The inverse of `into_channels`: (N, B·C, …) → (*hidden, N, C, …)"""
    count = prod(hidden)
    values = values.reshape(values.shape[0], count, values.shape[1] // max(count, 1), *values.shape[2:]).swapaxes(0, 1)
    return lot.whole(values.reshape(*hidden, *values.shape[1:]))


def convolved(lot, kernel, x, w, b, *, groups=1, **how):
    """Batches of `convolution` and `convolution_input`."""
    hidden = lot.hidden(x, w)
    if lot.shared(w):
        bias, rest = (lot.common(b), None) if lot.shared(b) else (None, b)
        out = lot.folded(lambda values: kernel(values, lot.common(w), bias, groups=groups, **how), x)
    else:
        kernels = flat(lot, w, hidden)
        kernels = kernels.reshape(kernels.shape[0] * kernels.shape[1], *kernels.shape[2:])
        values = kernel(into_channels(flat(lot, x, hidden)), kernels, None, groups=groups * prod(hidden), **how)
        out, rest = from_channels(lot, values, hidden), b
    return biased(lot.xp, out, rest)


def windows_of_samples(lot, compute, x, **how):
    """Batches of windows: of a longer batch."""
    return lot.folded(lambda values: compute(values, **how), x)


# ── the ops ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Convolution(Op):
    """y[n, o] = b[o] + Σ_c x[n, c] ⋆ w[o, c]"""

    complex32 = True
    images = "x w"
    linear = ("x b", "w")
    former = "CONV2D"
    batch = convolved

    def forward(xp, x, w, b, *, stride, padding, dilation, groups=1):
        columns = columns_of(xp, x, w.shape[2:], stride, padding, dilation)
        length = output_length(x.shape[2:], w.shape[2:], stride, padding, dilation)
        n, o = x.shape[0], w.shape[0]
        y = matrices(xp, w, groups) @ xp.reshape(columns, (n, groups, prod(w.shape[1:]), prod(length)))
        return biased(xp, xp.reshape(y, (n, o, *length)), b)

    def infer(x, w, b, *, stride, padding, dilation, groups=1):
        fit((x.shape[1], w.shape[1] * groups))
        return (x.shape[0], w.shape[0], *output_length(x.shape[2:], w.shape[2:], stride, padding, dilation)), x.dtype

    def grad_x(xp, g, w, x_shape, stride, padding, dilation, groups=1):
        return xp.convolution_input(g, w, None, size=x_shape[2:], stride=stride, padding=padding, dilation=dilation,
                                    groups=groups)

    def grad_w(xp, g, x, w_shape, stride, padding, dilation, groups=1):
        return xp.convolution_weight(g, x, size=w_shape[2:], stride=stride, padding=padding, dilation=dilation,
                                     groups=groups)

    def grad_b(xp, g):
        return sum_of_channels(xp, g)


class ConvolutionInput(Op):
    """x[n, c] = b[c] + Σ_o y[n, o] spread by w[o, c]: each y adds w to its window of x. `size` is that of x."""

    complex32 = True
    images = "y w"
    torch_name = "Convolution"
    linear = ("y b", "w")
    batch = convolved

    def forward(xp, y, w, b, *, size, stride, padding, dilation, groups=1):
        n, c = y.shape[0], w.shape[1] * groups
        rows = xp.reshape(y, (n, groups, y.shape[1] // groups, prod(y.shape[2:])))
        columns = xp.reshape(xp.swapaxes(matrices(xp, w, groups), -1, -2) @ rows, (n, c, *w.shape[2:], *y.shape[2:]))
        return biased(xp, xp.columns_added(columns, size=size, stride=stride, padding=padding, dilation=dilation), b)

    def infer(y, w, b, *, size, groups=1, **how):
        fit((y.shape[1], w.shape[0]))
        return (y.shape[0], w.shape[1] * groups, *size), y.dtype

    def grad_y(xp, g, w, y_shape, stride, padding, dilation, groups=1):
        y = xp.convolution(g, w, None, stride=stride, padding=padding, dilation=dilation, groups=groups)
        # x may be longer than y can reach
        return y if y.shape == y_shape else xp.get_slice(y, index=tuple(map(slice, y_shape)))

    def grad_w(xp, g, y, w_shape, stride, padding, dilation, groups=1):
        length = output_length(g.shape[2:], w_shape[2:], stride, padding, dilation)
        if length != tuple(y.shape[2:]):
            missing = ((0, a - b) for a, b in zip(length, y.shape[2:], strict=True))
            y = xp.pad_constant(y, widths=((0, 0), (0, 0), *missing))
        return xp.convolution_weight(y, g, size=w_shape[2:], stride=stride, padding=padding, dilation=dilation,
                                     groups=groups)

    def grad_b(xp, g):
        return sum_of_channels(xp, g)


class ConvolutionWeight(Op):
    """w[o, c] = Σ_n y[n, o] ⋆ x[n, c]. `size` is that of the kernel."""

    complex32 = True
    torch_name = "ConvolutionBackward"
    linear = ("y", "x")

    def batch(lot, kernel, y, x, *, groups=1, **how):
        hidden = lot.hidden(y, x)
        out = kernel(into_channels(flat(lot, y, hidden)), into_channels(flat(lot, x, hidden)),
                     groups=groups * prod(hidden), **how)
        return lot.whole(out.reshape(*hidden, y.shape[1], *out.shape[1:]))

    def forward(xp, y, x, *, size, stride, padding, dilation, groups=1):
        columns = columns_of(xp, x, size, stride, padding, dilation)
        n, o, c, places = (y.shape[0], y.shape[1], x.shape[1],
                           prod(output_length(x.shape[2:], size, stride, padding, dilation)))
        rows = xp.reshape(y, (n, groups, o // groups, places))
        columns = xp.reshape(columns, (n, groups, c // groups * prod(size), places))
        return xp.reshape(xp.sum(rows @ xp.swapaxes(columns, -1, -2), axis=0), (o, c // groups, *size))

    def infer(y, x, *, size, groups=1, **how):
        return (y.shape[1], x.shape[1] // groups, *size), y.dtype

    def grad_y(xp, g, x, stride, padding, dilation, groups=1):
        return xp.convolution(x, g, None, stride=stride, padding=padding, dilation=dilation, groups=groups)

    def grad_x(xp, g, y, x_shape, stride, padding, dilation, groups=1):
        return xp.convolution_input(y, g, None, size=x_shape[2:], stride=stride, padding=padding, dilation=dilation,
                                    groups=groups)


def fit(*pairs):
    """Refuse numbers of channels that differ."""
    for n, m in pairs:
        if n != m:
            raise ValueError(f"convolution: sizes do not fit: {n} and {m}")


def biased(xp, y, b):
    """A number added to each channel."""
    return y if b is None else y + xp.reshape(b, (b.shape[0], *(1,) * (len(y.shape) - 2)))


def sum_of_channels(xp, g):
    """The sum of each channel, over the batch and all places."""
    return xp.sum(xp.sum(xp.reshape(g, (*g.shape[:2], prod(g.shape[2:]))), axis=2), axis=0)


def matrices(xp, w, groups):
    """The kernels as one matrix for each group, (groups, O / groups, C / groups · K)."""
    return xp.reshape(w, (groups, w.shape[0] // groups, prod(w.shape[1:])))


def columns_of(xp, x, kernel, stride, padding, dilation):
    """All windows of x, (N, C, *K, *L): x itself, in another shape, where windows are single elements."""
    if prod(kernel) == 1 and not any(padding) and prod(stride) == 1:
        return xp.reshape(x, (*x.shape[:2], *kernel, *x.shape[2:]))
    return xp.columns(x, kernel=kernel, stride=stride, padding=padding, dilation=dilation)


class Columns(Op):
    """All windows of x, (N, C, *K, *L)."""

    complex32 = False
    kernel_name = "im2col_out_cpu"
    torch_name = "Im2Col"
    kinds = "biufcV"
    linear = ("x",)
    batch = windows_of_samples

    def forward(xp, x, *, kernel, stride, padding, dilation):
        return xp.columns(x, kernel=kernel, stride=stride, padding=padding, dilation=dilation)

    def infer(x, *, kernel, stride, padding, dilation):
        return (*x.shape[:2], *kernel, *output_length(x.shape[2:], kernel, stride, padding, dilation)), x.dtype

    def grad_x(xp, g, x_shape, stride, padding, dilation):
        return xp.columns_added(g, size=x_shape[2:], stride=stride, padding=padding, dilation=dilation)


class ColumnsAdded(Op):
    """Windows added up where they came from: the adjoint of `columns`."""

    kernel_name = "col2im_out_cpu"
    torch_name = "Col2Im"
    linear = ("x",)
    batch = windows_of_samples

    def forward(xp, x, *, size, stride, padding, dilation):
        return xp.columns_added(x, size=size, stride=stride, padding=padding, dilation=dilation)

    def infer(x, *, size, **how):
        return (*x.shape[:2], *size), x.dtype

    def grad_x(xp, g, x_shape, stride, padding, dilation):
        return xp.columns(g, kernel=x_shape[2:2 + len(stride)], stride=stride, padding=padding, dilation=dilation)
