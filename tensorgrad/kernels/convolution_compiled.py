"""Convolution in one and two dimensions by compiled code: native/conv.inc; with fewer products: native/winograd.inc."""
from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ..ops.windows import output_length
from .compiled import choices, done, native, register, whole
from .convolution_numpy import is_depthwise
from .windows_compiled import Sizes, needed

WIDEST = 4096               # product of both strides: the kernels keep a list for each place between results
WINOGRAD = {False: 0, True: 1, "always": 2}      # as native/winograd.inc calls them


def flat(n: Sizes) -> Sizes:
    """(height, width), given one or both of them."""
    return n if len(n) == 2 else (1, *n)


@lru_cache(1024)
def sizes(x: Sizes, w: Sizes, y: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int,
          winograd: Any) -> Any:
    """Return the kernels' size arguments for shapes of input, weight and result; None for unsupported shapes."""
    stride = needed(stride, y[2:])
    if len(x) not in (3, 4) or not prod(x) * prod(w) * prod(y) or prod(stride) > WIDEST:
        return None
    one = (1,) * (2 - len(stride))
    none = (0,) * (2 - len(stride))
    return (*x[:2], *flat(x[2:]), w[0], *flat(w[2:]), *flat(y[2:]), *one, *stride, *none, *padding, *one, *dilation,
            groups, WINOGRAD[winograd])


@lru_cache(1024)
def result(x: Sizes, w: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Sizes:
    return (x[0], w[0], *output_length(x[2:], w[2:], stride, padding, dilation))


@register("convolution")
def convolution(x: Any, w: Any, b: Any, *, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    if groups > 1 and is_depthwise(w, groups):
        return NotImplemented
    shape = result(x.shape, w.shape, stride, padding, dilation)
    numbers = sizes(x.shape, w.shape, shape, stride, padding, dilation, groups, choices["winograd"])
    if numbers is None:
        return NotImplemented
    y = np.empty(shape, x.dtype)
    return done(native.convolution(whole(x), whole(w), b if b is None else whole(b), y, *numbers), y)


@register("convolution_input")
def convolution_input(y: Any, w: Any, b: Any, *, size: Any, stride: Any, padding: Any, dilation: Any,
                      groups: int = 1) -> Any:
    shape = (len(y), w.shape[1] * groups, *size)
    numbers = sizes(shape, w.shape, y.shape, stride, padding, dilation, groups, choices["winograd"])
    if numbers is None or is_depthwise(w, groups):
        return NotImplemented
    x = np.empty(shape, y.dtype)
    return done(native.convolution_input(whole(y), whole(w), b if b is None else whole(b), x, *numbers), x)


@register("convolution_weight")
def convolution_weight(y: Any, x: Any, *, size: Any, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    shape = (y.shape[1], x.shape[1] // groups, *size)
    numbers = sizes(x.shape, shape, y.shape, stride, padding, dilation, groups, choices["winograd"])
    if numbers is None:
        return NotImplemented
    w = np.empty(shape, y.dtype)
    return (NotImplemented if is_depthwise(w, groups)
            else done(native.convolution_weight(whole(y), whole(x), w, *numbers), w))
