"""Steps of optimizers by compiled code, one call for all parameters: native/optim.inc."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core import optimizer_kernels
from .compiled import WANTED, native


def register(name: str) -> Callable[[Any], Any]:
    return optimizer_kernels.register(name, "cpu") if WANTED else lambda kernel: kernel


@register("sgd")
def sgd(rows: list[Any], *, lr: float, momentum: float, dampening: float, weight_decay: float, nesterov: bool) -> Any:
    return native.sgd(rows, nesterov, weight_decay, lr, momentum, 1 - dampening)


@register("adam")
def adam(rows: list[Any], *, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float,
         decoupled: bool) -> Any:
    return native.adam(rows, decoupled, weight_decay, lr, beta1, beta2, eps)
