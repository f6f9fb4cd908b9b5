"""Copies of arrays that do not lie in rows by compiled code: native/copies.inc."""
from __future__ import annotations

from typing import Any

from .compiled import LARGE, in_rows, put


def contiguous(x: Any) -> Any:
    return x.copy() if x.flags.c_contiguous else in_rows(x)


def reshape(x: Any, *, shape: Any) -> Any:
    if x.size < LARGE or x.flags.c_contiguous:
        return x.reshape(shape)
    try:
        return x.reshape(shape, copy=False)
    except (ValueError, TypeError):         # it takes a copy; NumPy 2.0 cannot say so
        return in_rows(x).reshape(shape)


put("contiguous", contiguous)
put("reshape", reshape)
