"""Attention by compiled code: native/attention.inc."""
from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import native, register, sure


def in_rows(x: Any) -> Any:
    """Return the array, or a copy, with contiguous rows."""
    return x if x.strides[-1] == x.itemsize else np.ascontiguousarray(x)


def steps(*arrays: Any) -> list[int]:
    """Return the strides, in elements, to the next image, head and row."""
    size = arrays[0].itemsize
    return [step // size for x in arrays for step in x.strides[:3]]


def steps_of_mask(x: Any) -> list[int]:
    """Return the strides, in elements, to the next image, head, row and key."""
    return [step // x.itemsize for step in x.strides]


@register("attention")
class Attention:
    @staticmethod
    def forward(query: Any, key: Any, value: Any, mask: Any, *, causal: bool, scale: float) -> Any:
        if query.ndim != 4 or not (query.size and key.size and value.size) or mask is not None and not mask.size:
            return NotImplemented
        (n, h, rows, width), (keys, value_width) = query.shape, value.shape[2:]
        if key.shape != (n, h, keys, width) or value.shape[:2] != (n, h):
            return NotImplemented
        q, k, v = in_rows(query), in_rows(key), in_rows(value)
        wide = None if mask is None else np.broadcast_to(mask, (n, h, rows, keys))
        out, (top, share) = np.empty((n, rows, h, value_width), q.dtype), np.empty((2, n, h, rows), q.dtype)
        numbers = (n, h, rows, keys, width, value_width, causal, *steps(q, k, v),
                   *((0,) * 4 if mask is None else steps_of_mask(wide)))
        if native.attention(q, k, v, wide, out, top, share, *numbers, scale) is not None:
            return NotImplemented
        shown = out.transpose(0, 2, 1, 3)
        return shown, (query, key, value, mask, shown, top, share, causal, scale)

    @staticmethod
    def backward(g: Any, residual: Any, needs: Any) -> Any:
        query, key, value, mask, shown, top, share, causal, scale = residual
        q, k, v, g = map(in_rows, (query, key, value, g))
        (n, h, rows, width), (keys, value_width) = q.shape, v.shape[2:]
        wide = None if mask is None else np.broadcast_to(mask, (n, h, rows, keys))
        gq, gk, gv = (np.empty((n, count, h, w), q.dtype)
                      for count, w in ((rows, width), (keys, width), (keys, value_width)))
        gm = np.empty((n, h, rows, keys), q.dtype) if needs[3] else None
        numbers = (n, h, rows, keys, width, value_width, causal, *steps(q, k, v),
                   *((0,) * 4 if mask is None else steps_of_mask(wide)), *steps(g))
        sure(native.attention_back(q, k, v, wide, g, shown.transpose(0, 2, 1, 3), top, share, gq, gk, gv, gm, *numbers,
                                   scale))
        return ([x.transpose(0, 2, 1, 3) if needed else None for x, needed in zip((gq, gk, gv), needs, strict=False)]
                + [gm])
