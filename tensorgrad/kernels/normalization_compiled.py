"""Normalisations by compiled code: native/norms.inc, over rows, and native/channels.inc, over the batch."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from .compiled import done, native, register, sure, whole
from .normalization_numpy import of_parameters, served


def like(x: Any, *shape: int) -> Any:
    return np.empty(shape or x.shape, x.dtype)


# ── over rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def over_rows(x: Any, w: Any, b: Any, ndim: int, eps: float, centred: bool) -> Any:
    n = prod(x.shape[x.ndim - ndim:])
    # the gradient of one number is 0: a difference that a fused multiply-add would not see as such
    if not x.size or n == 1:
        return NotImplemented
    rows, dtype = x.size // n, x.dtype
    out, mean, scale = np.empty(x.shape, dtype), np.empty(rows, dtype) if centred else None, np.empty(rows, dtype)
    if native.row_norm(x, w if w is None else whole(w), b if b is None else whole(b), out, mean, scale, rows, n,
                       eps) is not None:
        return NotImplemented
    return out, (x, mean, scale, w, ndim)


def back_over_rows(g: Any, residual: Any, needs: Any) -> list[Any]:
    x, mean, scale, w, ndim = residual
    gx, gw, gb = [like(x, *x.shape[x.ndim - n:]) if need else None
                  for n, need in zip((x.ndim, ndim, ndim), (*needs, False)[:3], strict=True)]
    sure(native.row_norm_back(whole(g), x, mean, scale, w if w is None else whole(w), gx, gw, gb, len(scale),
                              x.size // len(scale)))
    return [gx, gw, gb][:len(needs)]


@register("native_layer_norm")
class LayerNorm:
    @staticmethod
    def forward(x: Any, w: Any, b: Any, *, ndim: int, eps: float) -> Any:
        return over_rows(x, w, b, ndim, eps, True)

    backward = staticmethod(back_over_rows)


@register("rms_norm")
class RmsNorm:
    @staticmethod
    def forward(x: Any, w: Any, *, ndim: int, eps: float) -> Any:
        return over_rows(x, w, None, ndim, eps, False)

    backward = staticmethod(back_over_rows)


@register("native_group_norm")
class GroupNorm:
    @staticmethod
    def forward(x: Any, w: Any, b: Any, *, groups: int, eps: float) -> Any:
        if not served(x, w, b):
            return NotImplemented
        n, c, places = *x.shape[:2], prod(x.shape[2:])
        out, mean, scale = like(x), like(x, n * groups), like(x, n * groups)
        if native.group_norm(x, w if w is None else whole(w), b if b is None else whole(b), out, mean, scale, len(mean),
                             x.size // len(mean), c, places,
                             eps) is not None:
            return NotImplemented
        return out, (x, mean, scale, w)

    @staticmethod
    def backward(g: Any, residual: Any, needs: Any) -> Any:
        x, mean, scale, w = residual
        n, c, places = *x.shape[:2], prod(x.shape[2:])
        gx, products, sums = like(x) if needs[0] else None, like(x, n, c), like(x, n, c)
        sure(native.group_norm_back(whole(g), x, mean, scale, w if w is None else whole(w), gx, products, sums,
                                    len(mean), x.size // len(mean), c, places))
        return [gx, products.sum(axis=0) if needs[1] else None, sums.sum(axis=0) if needs[2] else None]


# ── over the batch ────────────────────────────────────────────────────────────────────────────────────────────────────


def extents(x: Any) -> tuple[int, int, int]:
    """Samples, channels and places."""
    return x.shape[0], x.shape[1], prod(x.shape[2:])


@register("native_batch_norm")
class BatchNorm:
    @staticmethod
    def forward(x: Any, w: Any, b: Any, *, eps: float) -> Any:
        if not served(x, w, b):
            return NotImplemented
        out, (mean, variance, scale) = like(x), (like(x, x.shape[1]) for _ in range(3))
        if native.batch_norm(x, w if w is None else whole(w), b if b is None else whole(b), out, mean, variance, scale,
                             *extents(x), eps) is not None:
            return NotImplemented
        return (out, mean, variance), (x, mean, scale, w)

    @staticmethod
    def backward(g: Any, residual: Any, needs: Any) -> Any:
        x, mean, scale, w = residual
        g, g_mean, g_variance = map(whole, g)
        found = [like(x) if needs[0] else None, *(like(mean) if need else None for need in needs[1:])]
        sure(native.batch_norm_back(g, x, mean, scale, w if w is None else whole(w), g_mean, g_variance, *found,
                                    *extents(x)))
        return found


@register("affine_by_channel")
class Affine:
    @staticmethod
    def forward(x: Any, w: Any, b: Any, mean: Any, variance: Any, *, eps: float) -> Any:
        if not x.size:
            return NotImplemented
        out, (scale, factor, shift) = np.empty(x.shape, x.dtype), np.empty((3, x.shape[1]), x.dtype)
        parameters = [p if p is None else whole(p) for p in (w, b, mean, variance)]
        return done(native.normalize_by_channel(x, *parameters, out, scale, factor, shift, *extents(x), eps),
                    (out, (x, mean, scale, factor)))

    @staticmethod
    def backward(g: Any, residual: Any, needs: Any) -> Any:
        x, mean, scale, factor = residual
        g, gx, slope, sums = whole(g), like(x) if needs[0] else None, None, None
        if gx is not None:
            sure(native.affine_by_channel(g, factor, None, gx, *extents(x)))
        if any(needs[1:]):
            slope, sums = like(mean), like(mean)
            sure(native.batch_norm_back(g, x, whole(mean), scale, None, None, None, None, slope, sums, *extents(x)))
        return [gx, *of_parameters(slope, sums, factor, scale, needs)]
