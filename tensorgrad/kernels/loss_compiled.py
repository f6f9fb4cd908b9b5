"""Losses by compiled code, native/losses.inc and native/rows.inc: one pass over memory there, and one back."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..core.dispatch import OpDispatch
from ..ops.loss import check_classes
from .compiled import CPU, native, register, sure, whole

SMALL = 1 << 8          # elements: below, NumPy is as fast


def loss(op: str, parameter: str = "", symmetric: bool = True) -> None:
    """Register a loss of two arrays of one shape; a symmetric one falls along y as it rises along x."""
    there, way_back, definition = getattr(native, op), getattr(native, f"{op}_back"), OpDispatch.op(op)

    @register(op)
    class Loss:
        @staticmethod
        def forward(x: Any, y: Any, *weights: Any, reduction: str, **params: Any) -> Any:
            if (x.size < SMALL or x.shape != y.shape or x.dtype is not y.dtype or x.dtype.char not in "fd"
                    or any(w is not None for w in weights)):
                return NotImplemented
            x, y, p, odd, each = (whole(x), whole(y), params.get(parameter, 0.0), np.empty(1, np.int64),
                                  reduction == "none")
            out, share = np.empty(x.shape if each else (), x.dtype), float(x.size if reduction == "mean" else 1)
            if there(x, y, out, odd, x.size, each, p, share) is not None or odd[0]:
                return NotImplemented
            return out, (x, y, p, share, each, reduction, params)

        @staticmethod
        def backward(g: Any, residual: Any, needs: Any) -> Any:
            x, y, p, share, each, reduction, params = residual
            found = [None] * len(needs)
            if needs[0] or symmetric:
                out = np.empty(x.shape, x.dtype)
                sure(way_back(whole(g), x, y, out, x.size, each, p, share))
                found[0] = out if needs[0] else None
            if needs[1]:
                found[1] = (-out if symmetric else definition.grad_y(CPU.xp, g, x, *[None] * (len(needs) - 2),
                                                                     reduction, **params))
            return found


for _op, _parameter in {"mse_loss": "", "smooth_l1_loss": "beta", "huber_loss": "delta"}.items():
    loss(_op, _parameter)
loss("binary_cross_entropy", symmetric=False)
loss("binary_cross_entropy_with_logits", symmetric=False)


@register("nll_loss")
class Nll:
    @staticmethod
    def forward(x: Any, target: Any, w: Any, *, reduction: str, ignore_index: int) -> Any:
        if x.ndim != 2 or not x.size or x.dtype.char not in "fd" or w is not None and w.dtype != x.dtype:
            return NotImplemented
        n, classes = x.shape
        losses, weights, wrong = np.empty(n, x.dtype), np.empty(n, x.dtype), np.array([-1])
        if native.cross_entropy(whole(x), whole(target), w if w is None else whole(w), losses, None, weights, wrong, n,
                                classes, ignore_index) is not None:
            return NotImplemented
        if wrong[0] >= 0:
            check_classes(np, target, classes, ignore_index)
        total = weights.sum() if reduction == "mean" else None
        out = losses if reduction == "none" else losses.sum() if total is None else losses.sum() / total
        return out, (x.shape, target, weights, total)

    @staticmethod
    def backward(g: Any, residual: Any, needs: Any) -> Any:
        shape, target, weights, total = residual
        share, out = g * weights, np.empty(shape, weights.dtype)
        sure(native.cross_entropy_back(share if total is None else share / total, None, whole(target), None, out,
                                       *shape))
        return [out, None, None]
