"""LSTM and GRU layers with the loop over time in compiled code: native/recurrent.inc.

The backward pass needs the arrays that NumPy's kernels save.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import native, register, sure, whole
from .matrix_compiled import product, times
from .recurrent_numpy import _order


def served(x: Any, *others: Any) -> bool:
    return x.dtype.char in "fd" and x.size > 0 and all(a is None or a.dtype is x.dtype and a.size for a in others)


def inputs(x: Any, w_ih: Any, bias: Any) -> Any:
    """The part of all gate sums that comes from the inputs."""
    flat = whole(x).reshape(-1, x.shape[-1])
    if (z := product(flat, w_ih.T, bias)) is NotImplemented:
        z = flat @ w_ih.T if bias is None else flat @ w_ih.T + bias
    return z


def weights(dz: Any, dhidden: Any, x: Any, before: Any, w_ih: Any, needs: Any) -> list[Any]:
    """Gradients of x, w_ih, w_hh, b_ih, b_hh, given those of all gate sums (from the inputs' side and the hidden
    state's).
    """
    flat = whole(x).reshape(-1, x.shape[-1])
    gb = dz.sum(axis=0) if needs[3] or needs[4] and dz is dhidden else None
    return [times(dz, w_ih).reshape(x.shape) if needs[0] else None, times(dz.T, flat) if needs[1] else None,
            times(dhidden.T, before) if needs[2] else None, gb if needs[3] else None,
            (gb.copy() if dz is dhidden else dhidden.sum(axis=0)) if needs[4] else None]


def twice(h: Any) -> Any:
    """Two copies: a step reads one and writes the other."""
    states = np.empty((2, *h.shape), h.dtype)
    states[:] = h
    return states


def both(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


@register("lstm_layer")
class Lstm:
    @staticmethod
    def forward(x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, w_hr: Any, *, reverse: bool = False,
                sizes: Any = None) -> Any:
        if w_hr is not None or not served(x, h, c, w_ih, w_hh, b_ih, b_hh):
            return NotImplemented
        z, (batch, width) = inputs(x, w_ih, both(b_ih, b_hh)), c.shape
        y, before, cells, tanhs = np.empty((4, len(z), width), z.dtype)
        order = _order(x, batch, reverse, sizes)
        states, c = twice(h), c.copy()
        sure(native.lstm(z, whole(w_hh), states, c, y, before, cells, tanhs, np.array(order)))
        shaped = y if sizes is not None else y.reshape(*x.shape[:2], -1)
        return (shaped, states[len(order) % 2].copy(), c), (x, w_ih, w_hh, before, cells, tanhs, y, z, order)

    @staticmethod
    def backward(g: Any, kept: Any, needs: Any) -> Any:
        x, w_ih, w_hh, before, cells, tanhs, y, z, order = kept
        dy, dh, dc, dz = whole(g[0]).reshape(len(z), -1), g[1].copy(), g[2].copy(), np.empty_like(z)
        sure(native.lstm_back(dy, whole(w_hh), z, cells, tanhs, dh, dc, dz, np.array(order)))
        dx, *others = weights(dz, dz, x, before, w_ih, (needs[0], *needs[3:7]))
        return [dx, dh, dc, *others, None]


@register("gru_layer")
class Gru:
    @staticmethod
    def forward(x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, *, reverse: bool = False,
                sizes: Any = None) -> Any:
        if not served(x, h, w_ih, w_hh, b_ih, b_hh):
            return NotImplemented
        z, (batch, width) = inputs(x, w_ih, b_ih), h.shape
        y, before, hidden = np.empty((3, len(z), width), z.dtype)
        order, states = _order(x, batch, reverse, sizes), twice(h)
        b_hh = None if b_hh is None else whole(b_hh)
        sure(native.gru(z, whole(w_hh), b_hh, states, y, before, hidden, np.array(order)))
        shaped = y if sizes is not None else y.reshape(*x.shape[:2], -1)
        return (shaped, states[len(order) % 2].copy()), (x, w_ih, w_hh, before, hidden, z, order)

    @staticmethod
    def backward(g: Any, kept: Any, needs: Any) -> Any:
        x, w_ih, w_hh, before, hidden, z, order = kept
        dy, dh, dz, dhidden = whole(g[0]).reshape(before.shape), g[1].copy(), np.empty_like(z), np.empty_like(z)
        sure(native.gru_back(dy, whole(w_hh), z, before, hidden, dh, dz, dhidden, np.array(order)))
        dx, *others = weights(dz, dhidden, x, before, w_ih, (needs[0], *needs[2:]))
        return [dx, dh, *others]
