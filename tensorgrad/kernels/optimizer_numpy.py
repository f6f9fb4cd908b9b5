"""Steps of optimizers on NumPy, some elements at a time: what is computed on the way stays in the cache, and threads share what is large."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..sharing import available, scratch, share, spans
from ..updates import register

BLOCK = 3 << 15      # elements at a time, twice as many for two threads, who would wait for each other between the calls of NumPy


def in_blocks(step: Callable[..., None], *arrays: Any, nanoseconds: float) -> Any:
    """`step(*blocks of the arrays, two blocks of memory to compute in)`; None in place of an array stays.

    NotImplemented if the arrays are not alike and in one piece.
    """
    first = arrays[0]
    dtype, shape, size = first.dtype, first.shape, first.size
    if dtype.kind != "f" or dtype.itemsize < 4:
        return NotImplemented
    for a in arrays:
        if a is not None and (a.dtype != dtype or a.shape != shape or not a.flags.c_contiguous):
            return NotImplemented
    flat = [None if a is None else a.reshape(-1) for a in arrays]
    if size <= BLOCK:
        step(*flat, *scratch.take("update", (2, size), dtype))
        return None

    threads = available(nanoseconds * size, short=True)
    count = max(-(-size // (BLOCK * threads)), threads)

    def task(part: slice) -> None:
        step(*(None if a is None else a[part] for a in flat), *scratch.take("update", (2, -(-size // count)), dtype)[:, :part.stop - part.start])
    share(task, spans(size, count), threads)
    return None


def decayed(grad: Any, param: Any, decay: float, out: Any) -> Any:
    """g + λ θ"""
    if not decay:
        return grad
    np.multiply(param, decay, out=out)
    out += grad
    return out


@register("sgd", "cpu")
def sgd(param: Any, buffer: Any, grad: Any, *, lr: float, momentum: float, dampening: float, weight_decay: float, nesterov: bool) -> Any:
    """g ← g + λ θ, b ← μ b + (1 − τ) g, θ ← θ − γ b, with Nesterov θ − γ (g + μ b); without b, θ ← θ − γ g."""
    def step(p: Any, b: Any, g: Any, t: Any, u: Any) -> None:
        g = decayed(g, p, weight_decay, t)
        if b is not None:
            b *= momentum
            b += np.multiply(g, 1 - dampening, out=u) if dampening else g
            g = np.add(np.multiply(b, momentum, out=u), g, out=u) if nesterov else b
        p -= np.multiply(g, lr, out=u)
    return in_blocks(step, param, buffer, grad, nanoseconds=0.5)


@register("adam", "cpu")
def adam(param: Any, mean: Any, square: Any, largest: Any, grad: Any, *, rate: float, beta1: float, beta2: float, eps: float, decay: float,
         shrink: float) -> Any:
    """m ← m + (1 − β₁)(g − m), v ← β₂ v + (1 − β₂) g², θ ← κ θ − γ m / (√v + ε): γ and ε with the corrections for the first steps in them."""
    def step(p: Any, m: Any, v: Any, top: Any, g: Any, t: Any, u: Any) -> None:
        g = decayed(g, p, decay, t)
        np.subtract(g, m, out=u)
        u *= 1 - beta1
        m += u
        np.multiply(g, g, out=u)
        u *= 1 - beta2
        v *= beta2
        v += u
        if top is not None:
            v = np.maximum(top, v, out=top)
        np.sqrt(v, out=u)
        u += eps
        np.divide(m, u, out=u)
        u *= rate
        if shrink != 1:
            p *= shrink
        p -= u
    return in_blocks(step, param, mean, square, largest, grad, nanoseconds=1.5)
