"""Softmax, its logarithm and cross entropy by compiled code, native/rows.inc: each row is read, and written, once."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..ops.loss import check_classes
from .compiled import native, register, sure, whole


def sizes(x: Any, axis: int) -> tuple[int, int, int]:
    """Return the number of elements before an axis, along it, and after it."""
    axis %= x.ndim
    return prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1:])


def along(x: Any, axis: int, logs: int) -> Any:
    if not x.size or not x.ndim:
        return NotImplemented
    out = np.empty(x.shape, x.dtype)
    return NotImplemented if native.softmax(whole(x), out, *sizes(x, axis), logs) is not None else (out, (out, axis))


def back(g: Any, y: Any, axis: int, logs: int) -> list[Any]:
    out = np.empty(y.shape, y.dtype)
    sure(native.softmax_back(whole(g), y, out, *sizes(y, axis), logs))
    return [out]


@register("softmax")
class Softmax:
    @staticmethod
    def forward(x: Any, *, axis: int) -> Any:
        return along(x, axis, 0)

    @staticmethod
    def backward(g: Any, residual: Any, needs: Any) -> Any:
        return back(g, *residual, 0)


@register("log_softmax")
class LogSoftmax:
    @staticmethod
    def forward(x: Any, *, axis: int) -> Any:
        return along(x, axis, 1)

    @staticmethod
    def backward(g: Any, residual: Any, needs: Any) -> Any:
        return back(g, *residual, 1)


@register("cross_entropy")
class CrossEntropy:
    @staticmethod
    def forward(x: Any, target: Any, w: Any, *, reduction: str, ignore_index: int) -> Any:
        if x.ndim != 2 or not x.size or w is not None and w.dtype != x.dtype:
            return NotImplemented
        n, classes = x.shape
        losses, stats, weights, wrong = (np.empty(n, x.dtype), np.empty((n, 2), x.dtype), np.empty(n, x.dtype),
                                         np.array([-1]))
        if native.cross_entropy(whole(x), whole(target), w if w is None else whole(w), losses, stats, weights, wrong,
                                n, classes, ignore_index) is not None:
            return NotImplemented
        if wrong[0] >= 0:
            check_classes(np, target, classes, ignore_index)
        total = weights.sum() if reduction == "mean" else None
        out = losses if reduction == "none" else losses.sum() if total is None else losses.sum() / total
        return out, (x, target, stats, weights, total)

    @staticmethod
    def backward(g: Any, residual: Any, needs: Any) -> Any:
        x, target, stats, weights, total = residual
        share, out = g * weights, np.empty(x.shape, x.dtype)
        sure(native.cross_entropy_back(share if total is None else share / total, whole(x), whole(target), stats, out,
                                       *x.shape))
        return [out, None, None]
