"""LSTM and GRU layers: native/recurrent.inc."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...kernels.recurrent_numpy import _order
from ..memory import Value, in_order
from . import emits
from .matrix import product


def inputs(build: Any, x: Value, w_ih: Value, bias: Any) -> Any:
    """Return the inputs' part of the sums of all gates."""
    x = build.whole(x)
    flat = build.view(x, (x.size // x.shape[-1], x.shape[-1]), (x.shape[-1], 1))
    return product(build, flat, build.view(w_ih, w_ih.shape[::-1], w_ih.strides[::-1]), bias)


def both(build: Any, a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    out, n = build.new(a.shape, a.dtype), a.size
    build.call("two_add", build.whole(a), build.whole(b), out, 1, n, n, 1, n, 1)
    return out


def states(build: Any, h: Value) -> Value:
    """Return two copies of the first state: a step reads one and writes the other."""
    out = build.new((2, *h.shape), h.dtype)
    build.copy(build.view(h, out.shape, (0, *h.strides)), out)
    return out  # type: ignore[no-any-return]


def served(*values: Any) -> bool:
    return all(value is None or value.dtype == values[0].dtype and value.size for value in values)


def last(build: Any, both: Value, steps: int) -> Value:
    """Return the state after the last step."""
    shape = both.shape[1:]
    return build.view(both, shape, in_order(shape), steps % 2 * both.size // 2)  # type: ignore[no-any-return]


def order_of(x: Value, batch: int, reverse: bool, sizes: Any) -> Any:
    return np.array(_order(range(x.shape[0]), batch, reverse, sizes))


def shaped(build: Any, y: Value, x: Value, sizes: Any) -> Value:
    """Return the outputs in the form of the inputs: steps and samples, or rows."""
    shape = y.shape if sizes is not None else (*x.shape[:2], y.shape[-1])
    return build.view(y, shape, in_order(shape))  # type: ignore[no-any-return]


@emits("lstm_layer")
def lstm_layer(build: Any, node: Any, x: Value, h: Value, c: Value, w_ih: Value, w_hh: Value, b_ih: Any, b_hh: Any,
               w_hr: Any, *, reverse: bool = False, sizes: Any = None) -> Any:
    if w_hr is not None or not served(x, h, c, w_ih, w_hh, b_ih, b_hh):
        return NotImplemented
    z, (batch, width) = inputs(build, x, w_ih, both(build, b_ih, b_hh)), c.shape
    if z is NotImplemented:
        return z
    y, before, cells, tanhs = (build.new((z.shape[0], width), z.dtype) for _ in range(4))
    order, two, cell = order_of(x, batch, reverse, sizes), states(build, h), build.new(c.shape, c.dtype)
    build.copy(c, cell)
    build.call("lstm", z, build.whole(w_hh), two, cell, y, before, cells, tanhs, order)
    return shaped(build, y, x, sizes), last(build, two, len(order)), cell


@emits("gru_layer")
def gru_layer(build: Any, node: Any, x: Value, h: Value, w_ih: Value, w_hh: Value, b_ih: Any, b_hh: Any, *,
              reverse: bool = False, sizes: Any = None) -> Any:
    if not served(x, h, w_ih, w_hh, b_ih, b_hh):
        return NotImplemented
    z, (batch, width) = inputs(build, x, w_ih, b_ih), h.shape
    if z is NotImplemented:
        return z
    y, before, hidden = (build.new((z.shape[0], width), z.dtype) for _ in range(3))
    order, two = order_of(x, batch, reverse, sizes), states(build, h)
    build.call("gru", z, build.whole(w_hh), b_hh if b_hh is None else build.whole(b_hh), two, y, before, hidden, order)
    return shaped(build, y, x, sizes), last(build, two, len(order))
