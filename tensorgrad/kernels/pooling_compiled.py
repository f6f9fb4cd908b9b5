"""Pooling in one and two dimensions by compiled code: native/pooling.inc."""
from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ..ops.windows import window_count, with_border
from .compiled import done, native, register, sure, whole
from .windows_compiled import geometry

MOST = 256           # elements of a window: places in it are bytes


def served(shape: Any, kernel: Any, widths: Any) -> bool:
    return len(kernel) < 3 and 0 not in shape and min(map(min, widths)) >= 0


def wide(size: Any, kernel: Any, widths: Any) -> bool:
    """Return True if a window is wider than a plane with its border on both sides."""
    return any(k > n + 2 * before for n, k, (before, _) in zip(size, kernel, widths, strict=True))


def lengths(size: Any, kernel: Any, stride: Any, widths: Any, dilation: Any) -> tuple[int, ...]:
    return window_count(with_border(size, widths), kernel, stride, dilation)


def maxima(x: Any, kernel: Any, stride: Any, widths: Any, dilation: Any, place: Any = None, index: Any = None) -> Any:
    """Return (maxima, indices in the window (`place`) or in the plane (`index`)), or NotImplemented.

    Each is an index dtype.
    """
    if (found := covered(x.shape, kernel, stride, widths, dilation)) is None:
        return NotImplemented
    shape, numbers = found
    y, places = np.empty(shape, x.dtype), np.empty(shape, place or index)
    return done(native.max_pool(whole(x), y, places if place else None, places if index else None, *numbers),
                (y, places))


@lru_cache
def covered(shape: Any, kernel: Any, stride: Any, widths: Any, dilation: Any) -> Any:
    """The shape of the result, and the geometry, of windows that all reach the plane; None for others."""
    if not served(shape, kernel, widths) or prod(kernel) > MOST:
        return None
    lead, size = shape[:-len(kernel)], shape[-len(kernel):]
    length = lengths(size, kernel, stride, widths, dilation)
    if not all(length) or any((n - 1) * s - a >= d
                              for n, s, (a, _), d in zip(length, stride, widths, size, strict=True)):
        return None
    return (*lead, *length), geometry(prod(lead), size, kernel, length, stride, widths, dilation)


@register("max_pool")
class MaxPool:
    @staticmethod
    def forward(x: Any, *, kernel: Any, stride: Any, widths: Any, dilation: Any) -> Any:
        found = maxima(x, kernel, stride, widths, dilation, place=np.uint8)
        return found if found is NotImplemented else (found[0], (x.shape, found[1], (kernel, stride, widths, dilation)))

    @staticmethod
    def backward(g: Any, residual: Any, needs: Any) -> Any:
        shape, places, (kernel, stride, widths, dilation) = residual
        n, gx = len(kernel), np.empty(shape, g.dtype)
        sure(native.max_pool_back(whole(g), gx, places,
                                  *geometry(prod(shape[:-n]), shape[-n:], kernel, g.shape[-n:], stride, widths,
                                            dilation)))
        return [gx]


@register("window_max")
def window_max(x: Any, *, kernel: Any, stride: Any, widths: Any, dilation: Any) -> Any:
    return maxima(x, kernel, stride, widths, dilation, index=np.int64)


@register("window_sum")
def window_sum(x: Any, *, kernel: Any, stride: Any, widths: Any, scale: float = 1) -> Any:
    if (found := summed(x.shape, kernel, stride, widths)) is None:
        return NotImplemented
    shape, numbers = found
    y = np.empty(shape, x.dtype)
    return done(native.window_sum(whole(x), y, *numbers, scale), y)


@lru_cache
def summed(shape: Any, kernel: Any, stride: Any, widths: Any) -> Any:
    """The shape of the sums, and the geometry; None for planes and windows that are not served."""
    if not served(shape, kernel, widths):
        return None
    lead, size = shape[:-len(kernel)], shape[-len(kernel):]
    length = lengths(size, kernel, stride, widths, (1, 1)[:len(kernel)])
    if 0 in length or wide(size, kernel, widths):
        return None
    return (*lead, *length), geometry(prod(lead), size, kernel, length, stride, widths)


@register("window_spread")
def window_spread(x: Any, *, size: Any, kernel: Any, stride: Any, widths: Any, scale: float = 1) -> Any:
    n = len(kernel)
    out = np.empty((*x.shape[:-n], *size), x.dtype)
    if not served(x.shape, kernel, widths) or not out.size or wide(size, kernel, widths):
        return NotImplemented
    return done(native.window_spread(whole(x), out,
                                     *geometry(prod(x.shape[:-n]), size, kernel, x.shape[-n:], stride, widths), scale),
                out)


@register("region_max")
def region_max(x: Any, places: Any, *, ndim: int) -> Any:
    regions, covered = places.shape[-ndim - 1:-1], places.shape[-1]
    if places.ndim != ndim + 1 or x.dtype.char not in "fd" or not x.size or not places.size:
        return NotImplemented
    out = np.empty((*x.shape[:-ndim], *regions), x.dtype)
    at, cells = np.empty(out.shape, np.int64), prod(x.shape[-ndim:])
    return done(native.region_max(whole(x), whole(places), out, at, x.size // cells, cells, prod(regions), covered),
                (out, at))
