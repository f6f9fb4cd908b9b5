"""Steps of optimizers by compiled code: native/optim.inc."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import updates
from .compiled import WANTED, native


def register(name: str) -> Callable[[Any], Any]:
    return updates.register(name, "cpu") if WANTED else lambda kernel: kernel


@register("sgd")
def sgd(param: Any, buffer: Any, grad: Any, *, lr: float, momentum: float, dampening: float, weight_decay: float, nesterov: bool) -> Any:
    if not fits(param, grad):
        return NotImplemented
    return native.sgd(param, grad, buffer, param.size, nesterov, weight_decay, lr, momentum, 1 - dampening)


@register("adam")
def adam(param: Any, mean: Any, square: Any, largest: Any, grad: Any, *, rate: float, beta1: float, beta2: float, eps: float, decay: float,
         shrink: float) -> Any:
    if not fits(param, grad):
        return NotImplemented
    return native.adam(param, grad, mean, square, largest, param.size, decay, shrink, rate, beta1, beta2, eps)


def fits(param: Any, grad: Any) -> bool:
    return param.shape == grad.shape
