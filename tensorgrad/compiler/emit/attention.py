"""Attention: native/attention.inc."""
from __future__ import annotations

from typing import Any

from ..memory import Value
from . import emits


def rows_of(build: Any, x: Value) -> Value:
    """Return the array, or a copy, with contiguous rows."""
    return x if x.strides[-1] == 1 else build.whole(x)


@emits("attention")
def attention(build: Any, node: Any, query: Value, key: Value, value: Value, mask: Value | None, *, causal: bool,
              scale: float) -> Any:
    if query.ndim != 4 or not (query.size and key.size and value.size):
        return NotImplemented
    (n, h, rows, width), (keys, value_width) = query.shape, value.shape[2:]
    if key.shape != (n, h, keys, width) or value.shape[:2] != (n, h):
        return NotImplemented
    if mask is not None:
        lead = 4 - mask.ndim
        steps = (0,) * lead + tuple(0 if n == 1 else s for n, s in zip(mask.shape, mask.strides, strict=True))
        mask = build.view(mask, (n, h, rows, keys), steps)
    q, k, v = (rows_of(build, x) for x in (query, key, value))
    out, (top, share) = build.new((n, rows, h, value_width), q.dtype), (build.new((n, h, rows), q.dtype)
                                                                         for _ in range(2))
    build.call("attention", q, k, v, mask, out, top, share, n, h, rows, keys, width, value_width, int(causal),
               *q.strides[:3], *k.strides[:3], *v.strides[:3], *((0,) * 4 if mask is None else mask.strides), scale)
    return build.view(out, (n, h, rows, value_width), (rows * h * value_width, value_width, h * value_width, 1))
