"""Convolution in one and two dimensions by compiled code: native/conv.inc; by 3×3 with stride 1: native/winograd.inc."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..ops.convolution import output_length
from .compiled import choices, done, native, register, whole
from .convolution_numpy import is_depthwise, served

Sizes = tuple[int, ...]
WINOGRAD = {False: 0, True: 1, "always": 2}      # as native/winograd.inc calls them


def flat(n: Sizes) -> Sizes:
    """(height, width), given one or both of them."""
    return n if len(n) == 2 else (1, *n)


def sizes(n: int, c: int, x: Sizes, o: int, w: Sizes, y: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Sizes:
    one = (1,) * (2 - len(stride))
    none = (0,) * (2 - len(stride))
    return (n, c, *flat(x), o, *flat(w), *flat(y), *one, *stride, *none, *padding, *one, *dilation, groups, WINOGRAD[choices["winograd"]])


def fits(x: Any, w: Any, groups: int) -> bool:
    return x.ndim in (3, 4) and served(x, w) and not is_depthwise(w, groups)


@register("convolution")
def convolution(x: Any, w: Any, b: Any, *, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    length = output_length(x.shape[2:], w.shape[2:], stride, padding, dilation)
    if not fits(x, w, groups) or not prod(length):
        return NotImplemented
    (n, c, *size), o = x.shape, len(w)
    y = np.empty((n, o, *length), x.dtype)
    return done(native.convolution(whole(x), whole(w), b, y, *sizes(n, c, size, o, w.shape[2:], length, stride, padding, dilation, groups)), y)


@register("convolution_input")
def convolution_input(y: Any, w: Any, b: Any, *, size: Any, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    if not fits(y, w, groups) or not prod(size):
        return NotImplemented
    (n, o, *length), c = y.shape, w.shape[1] * groups
    x = np.empty((n, c, *size), y.dtype)
    return done(native.convolution_input(whole(y), whole(w), b, x, *sizes(n, c, size, o, w.shape[2:], length, stride, padding, dilation, groups)), x)


@register("convolution_weight")
def convolution_weight(y: Any, x: Any, *, size: Any, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    w = np.empty((y.shape[1], x.shape[1] // groups, *size), y.dtype)
    if not fits(y, w, groups) or not fits(x, w, groups) or not w.size:
        return NotImplemented
    (n, o, *length), (_, c, *extent) = y.shape, x.shape
    return done(native.convolution_weight(whole(y), whole(x), w, *sizes(n, c, extent, o, size, length, stride, padding, dilation, groups)), w)
