"""Activations on NumPy: fewer passes over memory, and softmax without looking for the largest element.

Found on one core, float32, a million elements: `relu` as the maximum with a number takes 0.56 ms, with an array of
    zeros 0.24, `clip` 0.19; softmax of rows of
64, with `max` along the rows, takes twice as long as all the rest of it.
"""
from __future__ import annotations

from functools import partial
from math import pi, sqrt
from typing import Any

import numpy as np

from ..core.dispatch import OpDispatch
from ..core.mode import mode
from ..ops.activation import Hardtanh
from ..runtime.thread_pool import elementwise
from ..storage.cpu import NumpyStorage
from .buffer_reuse import place
from .elementwise_numpy import HUGE, sigmoid
from .reduction_numpy import dots, ones
from .special_numpy import gelu, gelu_gradient

SLOPE = sqrt(2 / pi)             # of tanh's argument in gelu, at 0


def served(x: Any) -> bool:
    """Return True if the kernels below, which write into results, take x: float32 or float64, with an axis."""
    return x.dtype.kind == "f" and x.dtype.itemsize > 2 and x.ndim > 0


# ── element by element ────────────────────────────────────────────────────────────────────────────────────────────────


@OpDispatch.register("relu", "cpu")
def relu(x: Any) -> Any:
    if served(x) and (x.size >= HUGE or mode.landing is x):
        return kept_within(x, 0, np.inf)
    # which takes a microsecond more
    out = np.zeros(x.shape, x.dtype) if x.flags.c_contiguous else np.zeros_like(x)
    return np.maximum(x, out, out=out)


def kept_within(x: Any, low: float, high: float) -> Any:
    return elementwise(partial(np.clip, a_min=low, a_max=high), x, out=place(x), nanoseconds=0.25)


@OpDispatch.register("hardtanh", "cpu")
def hardtanh(x: Any, *, low: float, high: float) -> Any:
    return kept_within(x, low, high) if served(x) else Hardtanh.forward(NumpyStorage.xp, x, low=low, high=high)


@OpDispatch.register("gelu", "cpu")
class Gelu:
    @staticmethod
    def forward(x: Any) -> Any:
        return (gelu(x), (x,)) if served(x) else NotImplemented

    @staticmethod
    def backward(g: Any, residual: Any, needs: Any) -> Any:
        return [gelu_gradient(g, *residual)]


@OpDispatch.register("gelu_tanh", "cpu")
class GeluTanh:
    @staticmethod
    def forward(x: Any) -> Any:
        if not served(x):
            return NotImplemented
        t = x * x
        t *= 0.044715
        t += 1
        t *= x
        t *= SLOPE
        t = np.tanh(t, out=t)
        y = t + 1
        y *= x
        y *= 0.5
        return y, (x, t)

    @staticmethod
    def backward(g: Any, residual: Any, needs: Any) -> Any:
        x, t = residual
        out = x * x                       # x φ, the slope of tanh's argument times x
        out *= 3 * 0.044715 * SLOPE
        out += SLOPE
        out *= x
        bend = t * t
        np.subtract(1, bend, out=bend)
        out *= bend
        out += t
        out += 1
        out *= 0.5
        out *= g
        return [out]


@OpDispatch.register("silu", "cpu")
class Silu:
    @staticmethod
    def forward(x: Any) -> Any:
        if not served(x):
            return NotImplemented
        s = sigmoid(x)
        return x * s, (x, s, [x])

    @staticmethod
    def backward(g: Any, residual: Any, needs: Any) -> Any:
        x, s, (before,) = residual
        s = s if x is before else sigmoid(x)        # the tensor was given other memory since
        out = 1 - s
        out *= x
        out += 1
        out *= s
        out *= g
        return [out]


@OpDispatch.register("leaky_relu", "cpu")
class LeakyRelu:
    @staticmethod
    def forward(x: Any, *, slope: float) -> Any:
        if not 0 <= slope <= 1 or not served(x):
            return NotImplemented
        def above(x: Any, out: Any) -> Any:
            return np.maximum(x, np.multiply(x, slope, out=out), out=out)
        return elementwise(above, x, out=np.empty_like(x), nanoseconds=0.25), (x, slope)

    @staticmethod
    def backward(g: Any, residual: Any, needs: Any) -> Any:
        x, slope = residual
        low = x.dtype.type(slope)
        rise = 1 - low
        if rise + low != 1:               # rounding took the 1 away: the number beside it gives it back
            rise = np.nextafter(rise, rise + np.sign(1 - (rise + low)))

        def times_slope(g: Any, x: Any, out: Any) -> Any:
            np.copyto(out, x > 0)
            out *= rise
            out += low
            out *= g
            return out
        return [elementwise(times_slope, g, x, out=np.empty_like(x), nanoseconds=0.5)]


# ── softmax ───────────────────────────────────────────────────────────────────────────────────────────────────────────

LIMITS = {np.dtype("float32"): np.float32(1e-20), np.dtype("float64"): np.float64(1e-200)}


def exponentials(x: Any) -> tuple[Any, Any, Any]:
    """exp(x − c) of the rows of a matrix, their sums, and c.

    c is 0 if no sum overflows or comes near to nothing, which is known once they are there; only then is the largest
    element of each row looked for.
    """
    e = np.exp(x)
    sums = row_sums(e)
    if sums.size and LIMITS[x.dtype] < sums.min() and sums.max() < np.inf:
        return e, sums, None
    top = x.max(axis=1)
    np.subtract(x, top[:, None], out=e)
    np.exp(e, out=e)
    return e, row_sums(e), top


def log_sums(sums: Any, top: Any) -> Any:
    """Return log Σ exp(x) of the rows in double precision, since it may be subtracted from a number nearly equal."""
    logs = np.log(sums, dtype=np.float64)
    return logs if top is None else logs + top


def row_sums(x: Any) -> Any:
    return x @ ones(x.shape[1], x)


def rows_of(x: Any, axis: int) -> Any:
    """The array as a matrix with `axis` as its rows, or None if that would be no view, or there is nothing to
    compute.
    """
    if axis != x.ndim - 1 or x.dtype not in LIMITS or not x.flags.c_contiguous or not x.size:
        return None
    return x.reshape(-1, x.shape[-1])


@OpDispatch.register("softmax", "cpu")
class Softmax:
    @staticmethod
    def forward(x: Any, *, axis: int) -> Any:
        rows = rows_of(x, axis)
        if rows is None:
            return NotImplemented
        e, sums, _ = exponentials(rows)
        e *= (1 / sums)[:, None]
        y = e.reshape(x.shape)
        return y, (y,)

    @staticmethod
    def backward(g: Any, residual: Any, needs: Any) -> Any:
        (y,) = residual
        rows, g_rows = y.reshape(-1, y.shape[-1]), g.reshape(-1, y.shape[-1])
        out = g_rows - dots(g_rows, rows)[:, None]
        out *= rows
        return [out.reshape(y.shape)]


@OpDispatch.register("log_softmax", "cpu")
class LogSoftmax:
    @staticmethod
    def forward(x: Any, *, axis: int) -> Any:
        rows = rows_of(x, axis)
        if rows is None:
            return NotImplemented
        e, sums, top = exponentials(rows)
        logs = log_sums(sums, top)
        rounded = logs.astype(x.dtype)
        y = rows - rounded[:, None]
        if np.abs(rounded).max() > 2:         # the exact remainder matters beside the rounding of y
            y -= (logs - rounded).astype(x.dtype)[:, None]
        return y.reshape(x.shape), (e, 1 / sums)

    @staticmethod
    def backward(g: Any, residual: Any, needs: Any) -> Any:
        e, share = residual
        rows = g.reshape(e.shape)
        out = e * (row_sums(rows) * share)[:, None]
        np.subtract(rows, out, out=out)
        return [out.reshape(g.shape)]
