"""Pooling in one and two dimensions: native/pooling.inc."""
from __future__ import annotations

from typing import Any

from ...kernels.pooling_compiled import covered, summed
from ..memory import Value
from . import emits


@emits("max_pool")
def max_pool(build: Any, node: Any, x: Value, *, kernel: Any, stride: Any, widths: Any, dilation: Any) -> Any:
    if (found := covered(x.shape, kernel, stride, widths, dilation)) is None:
        return NotImplemented
    shape, numbers = found
    y = build.new(shape, x.dtype)
    build.call("max_pool", build.whole(x), y, None, None, *numbers)
    return y


@emits("window_max")
def window_max(build: Any, node: Any, x: Value, *, kernel: Any, stride: Any, widths: Any, dilation: Any) -> Any:
    if (found := covered(x.shape, kernel, stride, widths, dilation)) is None:
        return NotImplemented
    shape, numbers = found
    y, index = build.new(shape, x.dtype), build.new(shape, "int64")
    build.call("max_pool", build.whole(x), y, None, index, *numbers)
    return y, index


@emits("window_sum")
def window_sum(build: Any, node: Any, x: Value, *, kernel: Any, stride: Any, widths: Any, scale: float = 1) -> Any:
    if (found := summed(x.shape, kernel, stride, widths)) is None:
        return NotImplemented
    shape, numbers = found
    y = build.new(shape, x.dtype)
    build.call("window_sum", build.whole(x), y, *numbers, float(scale))
    return y
