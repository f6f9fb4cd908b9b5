"""Copies by compiled code: native/copies.inc."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..storage.layout import like
from .compiled import HUGE, LARGE, copy_into, done, in_rows, native, put, quick_to_copy, register


def reshape(x: Any, *, shape: Any) -> Any:
    if x.size < LARGE or x.flags.c_contiguous:
        return x.reshape(shape)
    try:
        return x.reshape(shape, copy=False)
    except ValueError:          # it takes a copy
        return in_rows(x).reshape(shape)
    except TypeError:           # NumPy 2.0 has no `copy` argument for this check
        return x.reshape(shape)


def joined(op: str) -> None:
    """Register the copy of several arrays into one: along an axis, or a new one."""
    before, new = (np.stack, True) if op == "stack" else (np.concatenate, False)

    def call(xs: Any, *, axis: int = 0) -> Any:
        first = xs[0]
        if (sum(x.size for x in xs) < HUGE and all(map(quick_to_copy, xs))
                or any(x.dtype is not first.dtype for x in xs)):
            return before(xs, axis=axis)
        if new:
            axis %= first.ndim + 1
            xs = [x[(slice(None),) * axis + (None,)] for x in xs]
        if not xs[0].ndim or any(x.ndim != xs[0].ndim for x in xs):
            return before(xs, axis=axis)
        axis %= xs[0].ndim
        lead, tail, lengths = xs[0].shape[:axis], xs[0].shape[axis + 1:], [x.shape[axis] for x in xs]
        if any(x.shape[:axis] != lead or x.shape[axis + 1:] != tail for x in xs):
            return before(xs, axis=axis)
        out, start = np.empty((*lead, sum(lengths), *tail), first.dtype), 0
        for x, length in zip(xs, lengths, strict=True):
            copy_into(out[(slice(None),) * axis + (slice(start, start := start + length),)], x)
        return out
    put(op, call)


def flip(x: Any, *, axis: Any) -> Any:
    return in_rows(np.flip(x, axis)) if x.flags.c_contiguous else np.flip(x, axis).copy("K")


def clone(x: Any) -> Any:
    return in_rows(x) if x.flags.c_contiguous else like(x, x.dtype)


# ── to half as many bits, and back ────────────────────────────────────────────────────────────────────────────────────

SMALL = 1 << 9
SINGLE, HALVES = np.dtype(np.float32), {"float16": 0, "bfloat16": 1}


@register("cast")
def cast(x: Any, *, dtype: Any) -> Any:
    if not x.flags.c_contiguous:
        return like(x, dtype)
    if x.size < SMALL:
        return x.astype(dtype)
    if x.dtype is SINGLE and (upper := HALVES.get((dtype := np.dtype(dtype)).name)) is not None:
        out = np.empty(x.shape, dtype)
        return done(native.narrow(x, out.view(np.uint8), upper), out)
    if dtype == SINGLE and (upper := HALVES.get(x.dtype.name)) is not None:
        out = np.empty(x.shape, SINGLE)
        return done(native.widen(x.view(np.uint8), out, upper), out)
    return NotImplemented


put("contiguous", in_rows)
put("clone", clone)
put("reshape", reshape)
put("flip", flip)
joined("concat")
joined("stack")
