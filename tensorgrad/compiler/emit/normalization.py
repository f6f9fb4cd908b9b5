"""Normalisations: native/norms.inc, over rows, and native/channels.inc, by channels."""
from __future__ import annotations

from math import prod
from typing import Any

from ..memory import Value
from . import emits


def wholes(build: Any, *values: Any) -> list[Any]:
    return [value if value is None else build.whole(value) for value in values]


def over_rows(build: Any, x: Value, w: Value | None, b: Value | None, ndim: int, eps: float, centred: bool) -> Any:
    n = prod(x.shape[x.ndim - ndim:])
    if not x.size or n == 1:            # as in kernels/normalization_compiled.py
        return NotImplemented
    rows, (x, w, b) = x.size // n, wholes(build, x, w, b)
    out, mean, scale = (build.new(x.shape, x.dtype), build.new((rows,), x.dtype) if centred else None,
                        build.new((rows,), x.dtype))
    build.call("row_norm", x, w, b, out, mean, scale, rows, n, eps)
    return out


@emits("native_layer_norm")
def layer_norm(build: Any, node: Any, x: Value, w: Any, b: Any, *, ndim: int, eps: float) -> Any:
    return over_rows(build, x, w, b, ndim, eps, True)


@emits("rms_norm")
def rms_norm(build: Any, node: Any, x: Value, w: Any, *, ndim: int, eps: float) -> Any:
    return over_rows(build, x, w, None, ndim, eps, False)


@emits("native_group_norm")
def group_norm(build: Any, node: Any, x: Value, w: Any, b: Any, *, groups: int, eps: float) -> Any:
    if not x.size:
        return NotImplemented
    n, c, places = *x.shape[:2], prod(x.shape[2:])
    x, w, b = wholes(build, x, w, b)
    out, mean, scale = (build.new(shape, x.dtype) for shape in (x.shape, (n * groups,), (n * groups,)))
    build.call("group_norm", x, w, b, out, mean, scale, n * groups, x.size // (n * groups), c, places, eps)
    return out


@emits("affine_by_channel")
def affine_by_channel(build: Any, node: Any, x: Value, w: Any, b: Any, mean: Any, variance: Any, *, eps: float) -> Any:
    if not x.size or x.ndim < 2:
        return NotImplemented
    x, *parameters = wholes(build, x, w, b, mean, variance)
    channels = x.shape[1]
    out, *scratch = (build.new(shape, x.dtype) for shape in (x.shape, *[(channels,)] * 3))
    build.call("normalize_by_channel", x, *parameters, out, *scratch, x.shape[0], channels, prod(x.shape[2:]), eps)
    return out


@emits("native_batch_norm")
def batch_norm(build: Any, node: Any, x: Value, w: Any, b: Any, *, eps: float) -> Any:
    if not x.size or x.ndim < 2:
        return NotImplemented
    x, w, b = wholes(build, x, w, b)
    channels = x.shape[1]
    out, mean, spread, scale = (build.new(shape, x.dtype) for shape in (x.shape, *[(channels,)] * 3))
    build.call("batch_norm", x, w, b, out, mean, spread, scale, x.shape[0], channels, prod(x.shape[2:]), eps)
    return out, mean, spread
