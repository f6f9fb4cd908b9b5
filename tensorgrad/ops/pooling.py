"""Pooling: sums and maxima over windows, in any number of dimensions."""
from __future__ import annotations

from math import prod

from .base import Composite, Op
from .windows import window_count, with_border


def dimensional(self):
    """Return the name of the step with its number of dimensions; one dimension counts as two."""
    ndim = self.params["ndim"] if "ndim" in self.params else len(self.params["kernel"])
    return type(self).__name__.replace("2D", f"{max(ndim, 2)}D")


class WindowSum(Op):
    """out[l] = scale · Σ of x over the window at l. `widths` is the zero padding (before, after) of each dimension."""

    images, volumes = "x", False
    row_major = True
    torch_name = "AvgPool2D"
    flat = True
    name = dimensional
    kernel_name = "avg_pool2d"
    batch = "trailing"
    linear = ("x",)
    former = "AVG_POOL2D"

    def forward(xp, x, *, kernel, stride, widths, scale=1):
        return xp.window_sum(x, kernel=kernel, stride=stride, widths=widths, scale=scale)

    def infer(x, *, kernel, stride, widths, scale=1):
        return windowed(x.shape, kernel, stride, widths, (1,) * len(kernel)), scaled_dtype(x.dtype, scale)

    def grad_x(xp, g, x_shape, kernel, stride, widths, scale=1):
        return xp.window_spread(g, size=x_shape[-len(kernel):], kernel=kernel, stride=stride, widths=widths,
                                scale=scale)


class WindowSpread(Op):
    """scale · each value added to all of its window: the adjoint of `window_sum`."""

    torch_name = "AvgPool2DBackward"
    batch = "trailing"
    linear = ("x",)

    def forward(xp, x, *, size, kernel, stride, widths, scale=1):
        return xp.window_spread(x, size=size, kernel=kernel, stride=stride, widths=widths, scale=scale)

    def infer(x, *, size, scale=1, **how):
        return (*x.shape[:len(x.shape) - len(size)], *size), scaled_dtype(x.dtype, scale)

    def grad_x(xp, g, kernel, stride, widths, scale=1):
        return xp.window_sum(g, kernel=kernel, stride=stride, widths=widths, scale=scale)


def scaled_dtype(dtype, scale):
    """The dtype of multiples: integers times a fraction are floating point numbers."""
    return dtype if dtype.kind in "fcV" or isinstance(scale, int) else "float64"


def windowed(shape, kernel, stride, widths, dilation):
    """The shape with windows in place of the last axes."""
    lead, size = shape[:-len(kernel)], shape[-len(kernel):]
    return (*lead, *window_count(with_border(size, widths), kernel, stride, dilation))


class MaxPool(Composite):
    """The largest value of each window."""

    images = "x"
    row_major = True
    torch_name = "MaxPool2DWithIndices"
    name = dimensional
    kinds = "fiu"
    batch = "trailing"
    former = "MAX_POOL2D"

    def forward(xp, x, *, kernel, stride, widths, dilation):
        return xp.window_max(x, kernel=kernel, stride=stride, widths=widths, dilation=dilation)[0]

    def infer(x, *, kernel, stride, widths, dilation):
        return windowed(x.shape, kernel, stride, widths, dilation), x.dtype


class WindowMax(Op):
    """The largest value of each window, and its place in the plane that it is in (the first one of equals; NaN is
    largest).
    """

    images = "x"
    row_major = True
    torch_name = "MaxPool2DWithIndices"
    name = dimensional
    kinds = "fiu"
    flat = True
    outputs = ("values", "indices")
    batch = "trailing"

    def forward(xp, x, *, kernel, stride, widths, dilation):
        return xp.window_max(x, kernel=kernel, stride=stride, widths=widths, dilation=dilation)

    def infer(x, *, kernel, stride, widths, dilation):
        shape = windowed(x.shape, kernel, stride, widths, dilation)
        return (shape, x.dtype), (shape, "int64")

    def grad_x(xp, g, indices, x_shape, kernel):
        return planes(xp, g[0], indices, x_shape, len(kernel))


class RegionMax(Op):
    """The largest value of each region of a plane, and its place there; places[…, i, :] lists, along the flattened
    plane, what region i covers
    """

    images, volumes = "x", False
    torch_name = "AdaptiveMaxPool2D"
    name = dimensional
    kinds = "fiu"
    flat = True
    outputs = ("values", "indices")

    def forward(xp, x, places, *, ndim):
        lead, regions, cells = x.shape[:-ndim], places.shape[-ndim - 1:-1], places.shape[-1]
        places = xp.broadcast_to(places, (*lead, *regions, cells))
        flat = xp.reshape(x, (*lead, prod(x.shape[-ndim:])))
        values = xp.take_along_axis(flat, xp.reshape(places, (*lead, prod(regions) * cells)), axis=-1)
        values = xp.reshape(values, (*lead, *regions, cells))
        nan = xp.flip(values != values, -1)      # of several, the last one, as PyTorch finds it
        best = xp.where(xp.any(nan, axis=-1), cells - 1 - xp.argmax(nan, axis=-1), xp.argmax(values, axis=-1))
        best = xp.expand_dims(best, -1)
        return tuple(xp.reshape(xp.take_along_axis(part, best, axis=-1), (*lead, *regions))
                     for part in (values, places))

    def grad_x(xp, g, indices, x_shape, ndim):
        return planes(xp, g[0], indices, x_shape, ndim)


def planes(xp, g, indices, shape, ndim):
    """Values added at places of planes of zeros."""
    lead, cells = shape[:-ndim], prod(shape[-ndim:])
    flat = (prod(lead), prod(g.shape[-ndim:]))
    out = xp.scatter_add(xp.zeros((flat[0], cells), dtype=g.dtype), xp.reshape(g, flat), xp.reshape(indices, flat),
                         axis=1)
    return xp.reshape(out, shape)
