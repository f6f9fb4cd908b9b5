"""Windows of arrays: copied side by side, added up where they came from, their sums and their maxima."""
from __future__ import annotations

from math import prod
from typing import Any

from ..ops.windows import output_length, places_along, positions, window_count, window_count_along, with_border
from .arrays import in_arrays

# ── windows side by side ──────────────────────────────────────────────────────────────────────────────────────────────


@in_arrays("columns")
def columns(xp: Any, x: Any, *, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    length = output_length(x.shape[2:], kernel, stride, padding, dilation)
    x = padded(xp, x, padding)
    out = xp.empty((*x.shape[:2], *kernel, *length), dtype=x.dtype)
    for place, where in positions(kernel, length, stride, dilation):
        out[(slice(None), slice(None), *place)] = x[(..., *where)]
    return out


def padded(xp: Any, x: Any, padding: Any) -> Any:
    """x with zeros around it; x itself if there are none."""
    return bordered(xp, x, [(p, p) for p in padding], 0)


@in_arrays("columns_added")
def columns_added(xp: Any, x: Any, *, size: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    ndim = len(stride)
    kernel, length = x.shape[2:2 + ndim], x.shape[2 + ndim:]
    out = xp.zeros((*x.shape[:2], *(d + 2 * p for d, p in zip(size, padding, strict=True))), dtype=x.dtype)
    for place, where in positions(kernel, length, stride, dilation):
        out[(..., *where)] += x[(slice(None), slice(None), *place)]
    return out[(..., *(slice(p, p + d) for d, p in zip(size, padding, strict=True)))]


def bordered(xp: Any, x: Any, widths: Any, value: Any) -> Any:
    """x with a value around it; x itself if there is no border."""
    if not any(a or b for a, b in widths):
        return x
    size = x.shape[-len(widths):]
    out = xp.full((*x.shape[:-len(widths)], *with_border(size, widths)), value, dtype=x.dtype)
    out[(..., *(slice(a, a + d) for d, (a, _) in zip(size, widths, strict=True)))] = x
    return out


# ── sums ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@in_arrays("window_sum")
def window_sum(xp: Any, x: Any, *, kernel: Any, stride: Any, widths: Any, scale: Any = 1) -> Any:
    out = bordered(xp, x, widths, 0)
    for axis, (k, s) in enumerate(zip(kernel, stride, strict=True), x.ndim - len(kernel)):
        parts = [out[part] for part in places_along(axis, k, s, window_count_along(out.shape[axis], k, s))]
        out = parts[0].copy()
        for part in parts[1:]:
            out += part
    return out if scale == 1 else out * scale


@in_arrays("window_spread")
def window_spread(xp: Any, x: Any, *, size: Any, kernel: Any, stride: Any, widths: Any, scale: Any = 1) -> Any:
    out = x if scale == 1 else x * scale
    first = x.ndim - len(kernel)
    for axis, (k, s) in enumerate(zip(kernel, stride, strict=True), first):
        values, count = out, out.shape[axis]
        length = max((count - 1) * s + k, size[axis - first] + sum(widths[axis - first]))
        out = xp.zeros((*values.shape[:axis], length, *values.shape[axis + 1:]), dtype=x.dtype)
        for part in places_along(axis, k, s, count):
            out[part] += values
    return out[(..., *(slice(a, a + d) for d, (a, _) in zip(size, widths, strict=True)))]


# ── maxima ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@in_arrays("window_max")
def window_max(xp: Any, x: Any, *, kernel: Any, stride: Any, widths: Any, dilation: Any) -> Any:
    size, lowest = x.shape[-len(kernel):], float("-inf") if x.dtype.kind in "fV" else xp.iinfo(x.dtype).min
    x = bordered(xp, x, widths, lowest)
    length = window_count(x.shape[-len(kernel):], kernel, stride, dilation)
    corner = corners(xp, size, length, stride, widths)
    best = places = started = None
    for place, where in positions(kernel, length, stride, dilation):
        values = x[(..., *where)]
        here = corner + sum(p * d * prod(size[i + 1:]) for i, (p, d) in enumerate(zip(place, dilation, strict=True)))
        inside = valid(xp, size, length, stride, widths, place, dilation)
        if best is None:
            best, places = values.copy(), xp.broadcast_to(here, values.shape).copy()
            started = xp.broadcast_to(inside, values.shape)
        else:
            better = inside & ((values > best) | (values != values) | ~started)
            best, places, started = xp.where(better, values, best), xp.where(better, here, places), started | inside
    return best, places


def axis_places(xp: Any, i: int, length: Any, stride: Any, widths: Any, offset: int = 0) -> Any:
    """Return the index along dimension i of the unpadded input of each window's element `offset`."""
    places = xp.arange(length[i]) * stride[i] - widths[i][0] + offset
    return places.reshape((1,) * i + (-1,) + (1,) * (len(length) - i - 1))


def corners(xp: Any, size: Any, length: Any, stride: Any, widths: Any) -> Any:
    """The place of each window's first element, in a plane of the unpadded input."""
    return sum(axis_places(xp, i, length, stride, widths) * prod(size[i + 1:]) for i in range(len(size)))


def valid(xp: Any, size: Any, length: Any, stride: Any, widths: Any, place: Any, dilation: Any) -> Any:
    """Return a mask of the windows whose element at `place` is in the input, not in its border."""
    inside = True
    for i, n in enumerate(size):
        at = axis_places(xp, i, length, stride, widths, place[i] * dilation[i])
        inside = inside & (at >= 0) & (at < n)
    return inside
