"""Optimizer steps on NumPy, block by block: intermediate values stay in the cache, and threads share large
parameters.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..core.optimizer_kernels import register
from ..runtime.thread_pool import available, scratch, share, spans

BLOCK = 3 << 15      # elements of a block, up to twice as many for two threads, to make fewer, longer calls of NumPy


def in_blocks(step: Callable[..., None], *arrays: Any, nanoseconds: float) -> Any:
    """Call `step(*blocks, two scratch blocks)` for blocks of the arrays; None in place of an array is passed on.

    Returns NotImplemented unless the arrays have one shape and dtype, are contiguous, and the first is writable.
    """
    first = arrays[0]
    dtype, shape, size = first.dtype, first.shape, first.size
    if dtype.kind != "f" or dtype.itemsize < 4 or not first.flags.writeable:     # a lazy copy gets its memory elsewhere
        return NotImplemented
    for a in arrays:
        if a is not None and (a.dtype != dtype or a.shape != shape or not a.flags.c_contiguous):
            return NotImplemented
    flat = [None if a is None else a.reshape(-1) for a in arrays]
    if size <= BLOCK:
        step(*flat, *scratch.take("update", (2, size), dtype))
        return None

    threads = available(nanoseconds * size)
    count = -(-size // (BLOCK * threads * threads)) * threads

    def task(part: slice) -> None:
        step(*(None if a is None else a[part] for a in flat),
             *scratch.take("update", (2, -(-size // count)), dtype)[:, :part.stop - part.start])
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
def sgd(rows: list[Any], *, lr: float, momentum: float, dampening: float, weight_decay: float,
        nesterov: bool) -> list[int]:
    """g ← g + λ θ, b ← μ b + (1 − τ) g, θ ← θ − γ b, with Nesterov θ − γ (g + μ b); without b, θ ← θ − γ g.

    Rows of θ, b, g.
    """
    def step(p: Any, b: Any, g: Any, t: Any, u: Any) -> None:
        g = decayed(g, p, weight_decay, t)
        if b is not None:
            b *= momentum
            b += np.multiply(g, 1 - dampening, out=u) if dampening else g
            g = np.add(np.multiply(b, momentum, out=u), g, out=u) if nesterov else b
        p -= np.multiply(g, lr, out=u)
    return [place for place, row in enumerate(rows) if in_blocks(step, *row, nanoseconds=0.5) is NotImplemented]


@register("adam", "cpu")
def adam(rows: list[Any], *, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float,
         decoupled: bool) -> list[int]:
    """m ← m + (1 − β₁)(g − m), v ← β₂ v + (1 − β₂) g², θ ← κ θ − γ m̂ / (√v̂ + ε), where m̂ = m / (1 − β₁ᵗ), v̂ = v /
    (1 − β₂ᵗ), and κ = 1 − γ λ if the decay is not of g. Rows of θ, m, v, the largest v or None, t, g."""
    def step(rate: float, eps: float, p: Any, m: Any, v: Any, top: Any, g: Any, t: Any, u: Any) -> None:
        if not decoupled:
            g = decayed(g, p, weight_decay, t)
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
        if decoupled and weight_decay:
            p *= 1 - lr * weight_decay
        p -= u

    left = []
    for place, (p, m, v, top, count, g) in enumerate(rows):
        steps = count.item() + 1
        bias = (1 - beta2 ** steps) ** 0.5      # √(1 − β₂ᵗ), factored out of the fraction
        if in_blocks(partial(step, lr * bias / (1 - beta1 ** steps), eps * bias), p, m, v, top, g,
                     nanoseconds=1.5) is NotImplemented:
            left.append(place)
        else:
            count += 1
    return left
