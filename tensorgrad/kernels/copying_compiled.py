"""Copies by compiled code: native/copies.inc."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..runtime.small_floats import convert
from ..storage.layout import like
from .compiled import HUGE, LARGE, copy_into, in_rows, put, quick_to_copy


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


def cast(x: Any, *, dtype: Any) -> Any:
    return convert(x, dtype) if x.flags.c_contiguous else like(x, dtype)


def channels_last(x: Any) -> Any:
    last = x.ndim - 1
    return in_rows(x.transpose(0, *range(2, last + 1), 1)).transpose(0, last, *range(1, last))


put("channels_last", channels_last)
put("cast", cast)
put("contiguous", in_rows)
put("clone", clone)
put("reshape", reshape)
put("flip", flip)
joined("concat")
joined("stack")
