"""Softmax and its logarithm: native/rows.inc."""
from __future__ import annotations

from math import prod
from typing import Any

from ..memory import Value
from . import emits


def along(build: Any, x: Value, axis: int, logs: int) -> Any:
    if not x.size or not x.ndim:
        return NotImplemented
    axis, out = axis % x.ndim, build.new(x.shape, x.dtype)
    build.call("softmax", build.whole(x), out, prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1:]), logs)
    return out


@emits("softmax")
def softmax(build: Any, node: Any, x: Value, *, axis: int) -> Any:
    return along(build, x, axis, 0)


@emits("log_softmax")
def log_softmax(build: Any, node: Any, x: Value, *, axis: int) -> Any:
    return along(build, x, axis, 1)
