"""Depthwise convolution, where each channel has a separate kernel, in one and two dimensions by compiled code:
native/depthwise.inc.
"""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..ops.windows import output_length
from .compiled import done, native, register, whole
from .convolution_numpy import is_depthwise, served
from .windows_compiled import geometry


def fits(x: Any, w: Any, groups: int) -> bool:
    return x.ndim in (3, 4) and is_depthwise(w, groups) and served(x, w)


def numbers(n: int, c: int, x: Any, w: Any, y: Any, stride: Any, padding: Any, dilation: Any) -> tuple[int, ...]:
    return (*geometry(n * c, x, w, y, stride, [(p, p) for p in padding], dilation), c)


@register("convolution")
def convolution(x: Any, w: Any, b: Any, *, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    if not fits(x, w, groups) or not prod(length := output_length(x.shape[2:], w.shape[2:], stride, padding, dilation)):
        return NotImplemented
    (n, c, *size), y = x.shape, np.empty((*x.shape[:2], *length), x.dtype)
    return done(native.depthwise(whole(x), whole(w), b, y,
                                 *numbers(n, c, size, w.shape[2:], length, stride, padding, dilation)), y)


@register("convolution_input")
def convolution_input(y: Any, w: Any, b: Any, *, size: Any, stride: Any, padding: Any, dilation: Any,
                      groups: int = 1) -> Any:
    if not fits(y, w, groups) or not prod(size):
        return NotImplemented
    (n, c, *length), x = y.shape, np.empty((*y.shape[:2], *size), y.dtype)
    return done(native.depthwise_input(whole(y), whole(w), b, x,
                                       *numbers(n, c, size, w.shape[2:], length, stride, padding, dilation)), x)


@register("convolution_weight")
def convolution_weight(y: Any, x: Any, *, size: Any, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    w = np.empty((y.shape[1], x.shape[1] // groups, *size), y.dtype)
    if not fits(y, w, groups) or not served(x, w):
        return NotImplemented
    (n, c, *length), extent = y.shape, x.shape[2:]
    return done(native.depthwise_weight(whole(y), whole(x), w,
                                        *numbers(n, c, extent, size, length, stride, padding, dilation)), w)
