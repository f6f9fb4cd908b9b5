"""Attention by compiled code: native/attention.inc."""
from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import native, register, sure


def in_rows(x: Any) -> Any:
    """The array, or a copy, with rows in one piece."""
    return x if x.strides[-1] == x.itemsize else np.ascontiguousarray(x)


def steps(x: Any) -> tuple[int, ...]:
    """How many elements it is to the next image, head, row (and key)."""
    return tuple(step // x.itemsize for step in x.strides)


@register("attention")
class Attention:
    @staticmethod
    def forward(query: Any, key: Any, value: Any, mask: Any, *, causal: bool, scale: float) -> Any:
        arrays = (query, key, value) if mask is None else (query, key, value, mask)
        if query.dtype.char not in "fd" or any(a.dtype != query.dtype or not a.size for a in arrays) or not (
                query.ndim == 4 and query.shape[:2] == key.shape[:2] == value.shape[:2]
                and query.shape[3] == key.shape[3] and key.shape[2] == value.shape[2]):
            return NotImplemented
        q, k, v = map(in_rows, (query, key, value))
        (n, h, rows, width), (keys, value_width) = q.shape, v.shape[2:]
        wide = None if mask is None else np.broadcast_to(mask, (n, h, rows, keys))
        out, (top, share) = np.empty((n, rows, h, value_width), q.dtype), np.empty((2, n, h, rows), q.dtype)
        numbers = (n, h, rows, keys, width, value_width, causal, *steps(q)[:3], *steps(k)[:3], *steps(v)[:3], *((0,) * 4 if mask is None else steps(wide)))
        sure(native.attention(q, k, v, wide, out, top, share, *numbers, scale))
        shown = out.transpose(0, 2, 1, 3)
        return shown, (query, key, value, mask, shown, top, share, causal, scale)

    @staticmethod
    def backward(g: Any, residual: Any, needs: Any) -> Any:
        query, key, value, mask, shown, top, share, causal, scale = residual
        q, k, v, g = map(in_rows, (query, key, value, g))
        (n, h, rows, width), (keys, value_width) = q.shape, v.shape[2:]
        wide = None if mask is None else np.broadcast_to(mask, (n, h, rows, keys))
        gq, gk, gv = (np.empty((n, count, h, w), q.dtype) for count, w in ((rows, width), (keys, width), (keys, value_width)))
        gm = np.empty((n, h, rows, keys), q.dtype) if needs[3] else None
        numbers = (n, h, rows, keys, width, value_width, causal, *steps(q)[:3], *steps(k)[:3], *steps(v)[:3], *((0,) * 4 if mask is None else steps(wide)),
                   *steps(g)[:3])
        sure(native.attention_back(q, k, v, wide, g, shown.transpose(0, 2, 1, 3), top, share, gq, gk, gv, gm, *numbers, scale))
        return [x.transpose(0, 2, 1, 3) if needed else None for x, needed in zip((gq, gk, gv), needs, strict=False)] + [gm]
