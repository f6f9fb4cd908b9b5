"""Borders, and windows of images as columns, by copies."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..memory import Value, in_order
from . import emits
from .views import seen


def bordered(build: Any, x: Value, widths: Any, number: Any) -> Value:
    """Return a copy with a border of one number; negative widths crop."""
    inner = seen(x, lambda array: array[tuple(slice(max(0, -a), n - max(0, -b))
                                              for n, (a, b) in zip(x.shape, widths, strict=True))])
    shape = tuple(n + max(0, a) + max(0, b) for n, (a, b) in zip(inner.shape, widths, strict=True))
    out = build.new(shape, x.dtype)
    if shape != inner.shape:
        build.fill(out, number)
    build.copy(inner, seen(out, lambda array: array[tuple(slice(max(0, a), max(0, a) + n)
                                                          for n, (a, _) in zip(inner.shape, widths, strict=True))]))
    return out  # type: ignore[no-any-return]


@emits("pad_constant")
def pad_constant(build: Any, node: Any, x: Value, *, widths: Any, value: Any = 0) -> Any:
    if type(value) not in (int, float) or not x.size or 0 in node.meta["shape"]:
        return NotImplemented
    return bordered(build, x, widths, value)


@emits("columns")
def columns(build: Any, node: Any, x: Value, *, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    shape = tuple(node.meta["shape"])
    if 0 in shape:
        return NotImplemented
    if any(padding):
        x = bordered(build, x, ((0, 0), (0, 0), *((p, p) for p in padding)), 0)
    (image, channel), steps = x.strides[:2], x.strides[2:]
    windows = build.view(x, shape, (image, channel, *(s * d for s, d in zip(steps, dilation, strict=True)),
                                    *(s * n for s, n in zip(steps, stride, strict=True))))
    out = build.new(shape, x.dtype)
    build.copy(windows, out)
    return out


@emits("flip")
def flip(build: Any, node: Any, x: Value, *, axis: Any) -> Any:
    view, out = seen(x, lambda array: np.flip(array, axis)), build.new(x.shape, x.dtype)
    if not x.size:
        return NotImplemented
    build.copy(view, out)
    return out


@emits("roll")
def roll(build: Any, node: Any, x: Value, *, shift: Any, axis: Any) -> Any:
    if not x.size or not isinstance(axis, tuple):
        return NotImplemented
    out = build.whole(x)
    for by, along in zip(shift, axis, strict=True):
        n, source, out = x.shape[along], out, build.new(x.shape, x.dtype)
        if not (by := by % n):
            build.copy(source, out)
            continue
        steps = in_order(x.shape)
        for start, stop in ((0, n - by), (n - by, n)):
            shape = tuple(stop - start if a == along % x.ndim else m for a, m in enumerate(x.shape))
            build.copy(build.view(source, shape, steps, start * steps[along]),
                       build.view(out, shape, steps, (start + by) % n * steps[along]))
    return out
