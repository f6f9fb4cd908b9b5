"""Pooling: sums and maxima over windows, in any number of dimensions."""
from __future__ import annotations

from math import prod

from .base import Composite, Op
from .convolution import positions


def dimensional(self):
    """The name of the step, with the number of dimensions in it; one counts as two."""
    ndim = self.params["ndim"] if "ndim" in self.params else len(self.params["kernel"])
    return type(self).__name__.replace("2D", f"{max(ndim, 2)}D")


class WindowSum(Op):
    """out[l] = scale · Σ of x over the window at l. `widths` is the zero padding (before, after) of each dimension."""

    row_major = True
    torch_name = "AvgPool2D"
    flat = True
    name = dimensional
    kernel_name = "avg_pool2d"
    batch = "trailing"
    linear = ("x",)

    def forward(xp, x, *, kernel, stride, widths, scale=1):
        out = bordered(xp, x, widths, 0)
        for axis, (k, s) in enumerate(zip(kernel, stride, strict=True), x.ndim - len(kernel)):
            parts = [out[part] for part in places_along(axis, k, s, (out.shape[axis] - k) // s + 1)]
            out = parts[0].copy()
            for part in parts[1:]:
                out += part
        return out if scale == 1 else out * scale

    def grad_x(xp, g, x_shape, kernel, stride, widths, scale=1):
        return xp.window_spread(g, size=x_shape[-len(kernel):], kernel=kernel, stride=stride, widths=widths, scale=scale)


class WindowSpread(Op):
    """scale · each value added to all of its window: the adjoint of `window_sum`."""

    torch_name = "AvgPool2DBackward"
    batch = "trailing"
    linear = ("x",)

    def forward(xp, x, *, size, kernel, stride, widths, scale=1):
        out = x if scale == 1 else x * scale
        first = x.ndim - len(kernel)
        for axis, (k, s) in enumerate(zip(kernel, stride, strict=True), first):
            values, count = out, out.shape[axis]
            length = max((count - 1) * s + k, size[axis - first] + sum(widths[axis - first]))
            out = xp.zeros((*values.shape[:axis], length, *values.shape[axis + 1:]), dtype=x.dtype)
            for part in places_along(axis, k, s, count):
                out[part] += values
        return out[(..., *(slice(a, a + d) for d, (a, _) in zip(size, widths, strict=True)))]

    def grad_x(xp, g, kernel, stride, widths, scale=1):
        return xp.window_sum(g, kernel=kernel, stride=stride, widths=widths, scale=scale)


def places_along(axis, kernel, stride, count):
    """For each place in the windows along an axis, which elements stand there."""
    return [(slice(None),) * axis + (slice(j, j + (count - 1) * stride + 1, stride),) for j in range(kernel)]


class MaxPool(Composite):
    """The largest value of each window."""

    row_major = True
    torch_name = "MaxPool2DWithIndices"
    name = dimensional
    kinds = "fiu"
    batch = "trailing"

    def forward(xp, x, *, kernel, stride, widths, dilation):
        return xp.window_max(x, kernel=kernel, stride=stride, widths=widths, dilation=dilation)[0]


class WindowMax(Op):
    """The largest value of each window, and its place in the plane that it is in (the first one of equals; NaN is largest)."""

    row_major = True
    torch_name = "MaxPool2DWithIndices"
    name = dimensional
    kinds = "fiu"
    flat = True
    outputs = ("values", "indices")
    batch = "trailing"

    def forward(xp, x, *, kernel, stride, widths, dilation):
        ndim = len(kernel)
        size, lowest = x.shape[-ndim:], float("-inf") if x.dtype.kind in "fV" else xp.iinfo(x.dtype).min
        x = bordered(xp, x, widths, lowest)
        spread = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
        length = window_count(x.shape, spread, stride)
        corner = corners(xp, size, length, stride, widths)
        best = places = None
        for place, where in positions(kernel, length, stride, dilation):
            values = x[(..., *where)]
            here = corner + sum(p * d * prod(size[i + 1:]) for i, (p, d) in enumerate(zip(place, dilation, strict=True)))
            if best is None:
                best, places = values.copy(), xp.broadcast_to(here, values.shape).copy()
                inside = valid(xp, size, length, stride, widths, place, dilation)
                started = xp.broadcast_to(inside, values.shape)
            else:
                inside = valid(xp, size, length, stride, widths, place, dilation)
                better = inside & ((values > best) | (values != values) | ~started)
                best, places, started = xp.where(better, values, best), xp.where(better, here, places), started | inside
        return best, places

    def grad_x(xp, g, indices, x_shape, kernel):
        return planes(xp, g[0], indices, x_shape, len(kernel))


class RegionMax(Op):
    """The largest value of each region of a plane, and its place there; places[…, i, :] lists, along the flattened plane, what region i covers"""

    torch_name = "AdaptiveMaxPool2D"
    name = dimensional
    kinds = "fiu"
    flat = True
    outputs = ("values", "indices")

    def forward(xp, x, places, *, ndim):
        lead, regions, cells = x.shape[:-ndim], places.shape[-ndim - 1:-1], places.shape[-1]
        places = xp.broadcast_to(places, (*lead, *regions, cells))
        values = xp.take_along_axis(x.reshape(*lead, prod(x.shape[-ndim:])), places.reshape(*lead, prod(regions) * cells), axis=-1)
        values = values.reshape(places.shape)
        nan = xp.flip(values != values, -1)      # of several, the last one, as PyTorch finds it
        best = xp.where(xp.any(nan, axis=-1), cells - 1 - xp.argmax(nan, axis=-1), xp.argmax(values, axis=-1))
        best = xp.expand_dims(best, -1)
        return tuple(xp.take_along_axis(part, best, axis=-1).reshape(*lead, *regions) for part in (values, places))

    def grad_x(xp, g, indices, x_shape, ndim):
        return planes(xp, g[0], indices, x_shape, ndim)


def planes(xp, g, indices, shape, ndim):
    """Values added at places of planes of zeros."""
    lead, cells = shape[:-ndim], prod(shape[-ndim:])
    flat = (prod(lead), prod(g.shape[-ndim:]))
    out = xp.scatter_add(xp.zeros((flat[0], cells), dtype=g.dtype), xp.reshape(g, flat), xp.reshape(indices, flat), axis=1)
    return xp.reshape(out, shape)


def bordered(xp, x, widths, value):
    if not any(a or b for a, b in widths):
        return x
    ndim = len(widths)
    shape = (*x.shape[:-ndim], *(d + a + b for d, (a, b) in zip(x.shape[-ndim:], widths, strict=True)))
    out = xp.full(shape, value, dtype=x.dtype)
    out[(..., *(slice(a, a + d) for d, (a, _) in zip(x.shape[-ndim:], widths, strict=True)))] = x
    return out


def window_count(shape, kernel, stride):
    return tuple((d - k) // s + 1 for d, k, s in zip(shape[-len(kernel):], kernel, stride, strict=True))


def axis_places(xp, i, length, stride, widths, offset=0):
    """Where, along dimension i of the unpadded input, each window has its element number `offset`; shaped to broadcast."""
    places = xp.arange(length[i]) * stride[i] - widths[i][0] + offset
    return places.reshape((1,) * i + (-1,) + (1,) * (len(length) - i - 1))


def corners(xp, size, length, stride, widths):
    """The place of each window's first element, in a plane of the unpadded input."""
    return sum(axis_places(xp, i, length, stride, widths) * prod(size[i + 1:]) for i in range(len(size)))


def valid(xp, size, length, stride, widths, place, dilation):
    """Whether a place of the windows lies in the input, and not in its border."""
    inside = True
    for i, n in enumerate(size):
        at = axis_places(xp, i, length, stride, widths, place[i] * dilation[i])
        inside = inside & (at >= 0) & (at < n)
    return inside
