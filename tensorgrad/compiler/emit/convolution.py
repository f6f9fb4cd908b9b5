"""Convolution in one and two dimensions: native/conv.inc, native/winograd.inc, native/depthwise.inc."""
from __future__ import annotations

from typing import Any

from ...kernels.compiled import choices
from ...kernels.convolution_compiled import sizes
from ...kernels.windows_compiled import geometry
from ..memory import Value
from . import emits


def is_depthwise(w: Value, groups: int) -> bool:
    return groups > 1 and w.shape[1] == 1 and w.shape[0] == groups


def of_planes(planes: int, channels: int, size: Any, w: Value, length: Any, stride: Any, padding: Any,
              dilation: Any) -> tuple[int, ...]:
    return (*geometry(planes, size, w.shape[2:], length, stride, [(p, p) for p in padding], dilation), channels)


@emits("convolution")
def convolution(build: Any, node: Any, x: Value, w: Value, b: Value | None, *, stride: Any, padding: Any, dilation: Any,
                groups: int = 1) -> Any:
    shape = tuple(node.meta["shape"])
    if x.dtype != w.dtype or x.ndim not in (3, 4):
        return NotImplemented
    x, w, b = build.whole(x), build.whole(w), b if b is None else build.whole(b)
    y = build.new(shape, x.dtype)
    if is_depthwise(w, groups):
        build.call("depthwise", x, w, b, y, *of_planes(x.shape[0] * x.shape[1], x.shape[1], x.shape[2:], w, shape[2:],
                                                       stride, padding, dilation))
        return y
    numbers = sizes(x.shape, w.shape, shape, stride, padding, dilation, groups, choices["winograd"])
    if numbers is None:
        return NotImplemented
    build.call("convolution", x, w, b, y, *numbers)
    return y


@emits("convolution_input")
def convolution_input(build: Any, node: Any, y: Value, w: Value, b: Value | None, *, size: Any, stride: Any,
                      padding: Any, dilation: Any, groups: int = 1) -> Any:
    shape = tuple(node.meta["shape"])
    if y.dtype != w.dtype or y.ndim not in (3, 4):
        return NotImplemented
    y, w, b = build.whole(y), build.whole(w), b if b is None else build.whole(b)
    x = build.new(shape, y.dtype)
    if is_depthwise(w, groups):
        build.call("depthwise_input", y, w, b, x, *of_planes(y.shape[0] * y.shape[1], y.shape[1], shape[2:], w,
                                                             y.shape[2:], stride, padding, dilation))
        return x
    numbers = sizes(shape, w.shape, y.shape, stride, padding, dilation, groups, choices["winograd"])
    if numbers is None:
        return NotImplemented
    build.call("convolution_input", y, w, b, x, *numbers)
    return x
