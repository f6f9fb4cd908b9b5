"""Special functions on NumPy, block by block.

A formula passes over its array a dozen times or more, so a large array is cut into blocks that stay in the caches from
the first pass to the last: `erf` of a million float32 elements takes a third of the time. Passes that write into
reused memory, like those of `erf` and `gelu` here, make it a quarter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..ops import _special_functions as special
from ..ops.base import Namespace
from ..runtime.thread_pool import available, scratch, share, spans
from ..storage.cpu import NumpyStorage

BLOCK_BYTES = 1 << 20  # smaller blocks make threads wait for the interpreter's lock
NANOSECONDS = 2.5      # an element, about
LARGE = 1 << 14        # elements from which on steps in reused memory are faster
xp: Any = Namespace(NumpyStorage)      # NumPy's functions, without our threads, and the ops that it lacks
xp.clamp = np.clip


def in_blocks(formula: Callable[..., Any], *arrays: Any) -> Any:
    """Apply `formula(xp, *arrays)`, elementwise and dtype-preserving, to arrays of one dtype, block by block.

    >>> in_blocks(special.erf, np.array([-1.0, 0.0, 1.0]))
    array([-0.84270079,  0.        ,  0.84270079])
    """
    first = arrays[0]
    block = BLOCK_BYTES // first.itemsize
    if first.size <= block or any(a.shape != first.shape for a in arrays):
        return np.asarray(formula(xp, *arrays))
    return _sweep(lambda *parts: np.copyto(parts[-1], formula(xp, *parts[:-1])), *arrays)


def _sweep(step: Callable[..., None], *arrays: Any) -> Any:
    """A new array, filled by `step(*blocks of the arrays, block of the result)`."""
    first = arrays[0]
    block = BLOCK_BYTES // first.itemsize
    out = np.empty(first.shape, first.dtype)
    flat = [a.reshape(-1) for a in (*arrays, out)]

    def task(part: slice) -> None:
        for start in range(part.start, part.stop, block):
            step(*(a[start:min(start + block, part.stop)] for a in flat))
    share(task, spans(first.size, available(NANOSECONDS * first.size)))
    return out


def _large(x: Any) -> bool:
    """Return True if x is large and float32, so that the steps in reused memory apply."""
    return x.dtype == np.float32 and x.size > LARGE


def _scratch(like: Any) -> Any:
    """Return two scratch arrays, which are reused."""
    return scratch.take("special", (2, like.size), like.dtype)


def _erf(x: Any, y: Any, t: Any, r: Any, scale: float) -> None:
    """Compute y = erf(scale x) for float32, with scratch t and r, by the formula of `special.erf`."""
    unit = 1 / scale**2
    np.clip(x, -4.25 / scale, 4.25 / scale, out=y)
    np.multiply(y, y, out=t)
    np.add(t, 4.0820998 * unit, out=r)
    np.divide(37.5323798 * unit**2, r, out=r)
    r += t
    r += 4.70323977 * unit
    np.divide(-137.215349 * unit**2, r, out=r)
    r += t
    r += 64.1262663 * unit
    np.divide(t, r, out=r)
    r *= 5.57571407 * scale
    r += 1.12837917 * scale
    y *= r
    np.tanh(y, out=y)


def erf(x: Any) -> Any:
    """erf(x)."""
    if not _large(x):
        return in_blocks(special.erf, x)

    def step(x: Any, y: Any) -> None:
        t, r = _scratch(y)
        _erf(x, y, t, r, 1.0)

    return _sweep(step, x)


@np.errstate(invalid="ignore")  # -∞ · 0 is nan here as in PyTorch, without a word
def gelu(x: Any) -> Any:
    """x Φ(x) = x (1 + erf(x / √2)) / 2."""
    if not _large(x):
        return in_blocks(_gelu, x)

    def step(x: Any, y: Any) -> None:
        t, r = _scratch(y)
        _erf(x, y, t, r, math.sqrt(0.5))
        y += 1.0
        y *= x
        y *= 0.5

    return _sweep(step, x)


@np.errstate(invalid="ignore")
def gelu_gradient(g: Any, x: Any) -> Any:
    """g (Φ(x) + x φ(x)), the gradient of `gelu` at x."""
    if not _large(x):
        return in_blocks(_gelu_gradient, g, x)

    def step(g: Any, x: Any, y: Any) -> None:
        t, r = _scratch(y)
        _erf(x, y, t, r, math.sqrt(0.5))
        y += 1.0
        y *= 0.5
        np.clip(x, -15.0, 15.0, out=t)  # φ(15) is 0, and a larger square could overflow
        np.multiply(t, t, out=r)
        r *= -0.5
        np.exp(r, out=r)
        t *= math.sqrt(0.5 / math.pi)
        r *= t
        y += r
        y *= g

    return _sweep(step, g, x)


def _gelu(xp: Any, x: Any) -> Any:
    return 0.5 * x * (1.0 + special.erf(xp, math.sqrt(0.5) * x))


def _gelu_gradient(xp: Any, g: Any, x: Any) -> Any:
    t = xp.clamp(x, -40.0, 40.0)
    density = math.sqrt(0.5 / math.pi) * xp.exp(-0.5 * t * t)
    return g * (0.5 * (1.0 + special.erf(xp, math.sqrt(0.5) * x)) + t * density)
