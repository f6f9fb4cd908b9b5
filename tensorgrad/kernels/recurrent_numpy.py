"""Recurrent layers on NumPy: one tape node a layer, with backpropagation through time written out.

All products with the input weights are one matrix product, forward and backward; only the product with the hidden state
is left in the loop.

Without a tape, LSTM and GRU compute in scratch memory with the batch innermost: each gate is contiguous, and BLAS needs
no copy of the state.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.dispatch import OpDispatch
from ..core.mode import mode
from ..ops.recurrent import spans
from ..runtime.thread_pool import available, share
from .matrix_numpy import of_few, product

BLOCK = 128             # rows of gates that stay in a cache
SLOPE = 1.2             # nanoseconds for the slope of a gate
MANY = 16               # steps that are worth a copy of the weights


def _sigmoid(x: Any) -> Any:
    """Overwrite x with σ(x) = (1 + tanh(x / 2)) / 2, without overflow."""
    x *= 0.5
    np.tanh(x, out=x)
    x *= 0.5
    x += 0.5
    return x


def _inputs(x: Any, w_ih: Any, *biases: Any) -> Any:
    z = product(x.reshape(-1, x.shape[-1]), w_ih.T)
    given = [b for b in biases if b is not None]
    if given:
        z += given[0] if len(given) == 1 else given[0] + given[1]
    return z


def _pulling(w: Any, steps: int) -> Any:
    """Return w in the memory order that is best for products d · w: column-major if there are many steps."""
    return np.ascontiguousarray(w.T).T if steps >= MANY else w


def _order(x: Any, batch: int, reverse: bool, sizes: Any) -> list[tuple[int, int]]:
    rows = spans(len(x) if sizes is None else len(sizes), batch, sizes)
    return rows[::-1] if reverse else rows


def _weights(dz: Any, dh_z: Any, x: Any, before: Any, needs: Any, shapes: Any) -> list[Any]:
    """Gradients of x, w_ih, w_hh, b_ih, b_hh, given those of all gate sums (from the inputs' side and the hidden
    state's).
    """
    flat = x.reshape(-1, x.shape[-1])
    w_ih, = shapes
    bias, hidden_bias = (dz.sum(axis=0) if n else None for n in needs[3:5]) if dz is dh_z else (
        dz.sum(axis=0) if needs[3] else None, dh_z.sum(axis=0) if needs[4] else None)
    return [(dz @ w_ih).reshape(x.shape) if needs[0] else None, dz.T @ flat if needs[1] else None,
            dh_z.T @ before if needs[2] else None, bias, hidden_bias]


# ── without a tape ────────────────────────────────────────────────────────────────────────────────────────────────────


def _untaped(sizes: Any) -> bool:
    """Return True if there is no backward pass, and all sequences have equal length."""
    return mode.record is None and sizes is None


def _steps(x: Any, y: Any, w_ih: Any, reverse: bool, *biases: Any) -> Iterator[tuple[Any, Any]]:
    """Yield for each step the input's part of the gate sums (G·H, N), and the target of the output (N, H)."""
    steps, n, width = x.shape
    if n == 1:
        z = _inputs(x, w_ih, *biases)[:, :, None]
    else:
        z = np.matmul(w_ih, x.reshape(-1, width).T)
        for b in biases:
            if b is not None:
                z += b[:, None]
        z = z.reshape(len(w_ih), steps, n).transpose(1, 0, 2)
    return zip(z[::-1], y[::-1]) if reverse else zip(z, y)


def _memory(like: Any, *, gates: int) -> Any:
    """Memory for a step's sums (G·H, N), of states (N, H)."""
    n, width = like.shape
    return np.empty((gates * width, n), like.dtype)


def _lstm(steps: Any, h: Any, c: Any, w_hh: Any, w_hr: Any) -> tuple[Any, ...]:
    s, h, c = _memory(c, gates=4), h.T.copy("C"), c.T.copy("C")
    inward, forget, gate, outward = s.reshape(4, *c.shape)
    # σ(x) = (1 + tanh(x / 2)) / 2: gates as one tanh, of halves where it is σ
    factor, shift = np.full((2, *s.shape), 0.5, s.dtype)
    factor[2 * len(c):3 * len(c)], shift[2 * len(c):3 * len(c)] = 1, 0
    some = np.empty_like(c)
    for z, out in steps:
        np.matmul(w_hh, h, out=s)
        s += z
        s *= factor
        np.tanh(s, out=s)
        s *= factor
        s += shift
        c *= forget
        c += np.multiply(inward, gate, out=some)
        np.tanh(c, out=some)
        some *= outward
        h = some if w_hr is None else np.matmul(w_hr, some)
        out[...] = h.T
    return np.ascontiguousarray(h.T), np.ascontiguousarray(c.T)


def _gru(steps: Any, h: Any, w_hh: Any, b_hh: Any) -> tuple[Any, ...]:
    s, h = _memory(h, gates=3), h.T.copy("C")
    both, (reset, update, new) = s[:2 * len(h)], s.reshape(3, *h.shape)
    for z, out in steps:
        np.matmul(w_hh, h, out=s)
        if b_hh is not None:
            s += b_hh[:, None]
        both += z[:len(both)]
        _sigmoid(both)
        new *= reset
        new += z[len(both):]
        np.tanh(new, out=new)
        h -= new
        h *= update
        h += new
        out[...] = h.T
    return np.ascontiguousarray(h.T),


# ── layers ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@OpDispatch.register("rnn_layer", "cpu")
class rnn:
    @staticmethod
    def forward(x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, *, relu: bool = False,
                reverse: bool = False, sizes: Any = None) -> Any:
        z = _inputs(x, w_ih, b_ih, b_hh)
        y = np.empty((len(z), h.shape[1]), z.dtype)
        before = np.empty_like(y)
        order, h = _order(x, len(h), reverse, sizes), h.copy()
        for start, n in order:
            before[start:start + n] = h[:n]
            s = z[start:start + n]
            s += of_few(h[:n], w_hh.T)
            h[:n] = np.maximum(s, 0, out=s) if relu else np.tanh(s, out=s)
            y[start:start + n] = s
        out = y if sizes is not None else y.reshape(*x.shape[:2], h.shape[1])
        return (out, h), (x, w_ih, w_hh, before, y, order, relu)

    @staticmethod
    def backward(g: Any, kept: Any, needs: Any) -> Any:
        x, w_ih, w_hh, before, y, order, relu = kept
        dy, dh = g[0].reshape(y.shape), g[1].copy()
        dz, pulled = np.empty_like(y), _pulling(w_hh, len(order))
        for start, n in reversed(order):
            rows = slice(start, start + n)
            d = dh[:n] + dy[rows]
            d *= ~(y[rows] <= 0) if relu else 1 - y[rows] * y[rows]
            dz[rows] = d
            dh[:n] = of_few(d, pulled)
        dx, *weights = _weights(dz, dz, x, before, (needs[0], *needs[2:]), (w_ih,))
        return [dx, dh, *weights]


def _slopes(z: Any, cells: Any, tanhs: Any) -> tuple[Any, Any]:
    """Return the factors from dL/dc to the gradients of i, f and g before activation, from dL/dh to that of o, and from
    dL/dh to dL/dc.

    They are computed for all steps at once; the loop only multiplies them by the gradients from later steps: less than
    a third of the calls.
    """
    width = cells.shape[1]
    out, into_cell = np.empty_like(z), np.empty_like(cells)

    def task(part: slice) -> None:
        (i, _, gate, o), (di, df, dgate, do) = ([a[part, k * width:(k + 1) * width] for k in range(4)]
                                                for a in (z, out))
        t, cell = tanhs[part], into_cell[part]
        np.subtract(1, z[part], out=out[part])              # σ' = σ (1 − σ)
        out[part] *= z[part]
        np.multiply(gate, gate, out=dgate)                  # tanh' = 1 − tanh²
        np.subtract(1, dgate, out=dgate)
        np.multiply(t, t, out=cell)
        np.subtract(1, cell, out=cell)
        for slope, by in ((di, gate), (df, cells[part]), (dgate, i), (do, t), (cell, o)):
            slope *= by
    share(task, [slice(start, start + BLOCK) for start in range(0, len(z), BLOCK)], available(SLOPE * z.size))
    return out, into_cell


@OpDispatch.register("lstm_layer", "cpu")
class lstm:
    @staticmethod
    def forward(x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, w_hr: Any, *, reverse: bool = False,
                sizes: Any = None) -> Any:
        if _untaped(sizes):
            y = np.empty((*x.shape[:2], h.shape[1]), x.dtype)
            return (y, *_lstm(_steps(x, y, w_ih, reverse, b_ih, b_hh), h, c, w_hh, w_hr)), None
        z, width = _inputs(x, w_ih, b_ih, b_hh), c.shape[1]
        y = np.empty((len(z), h.shape[1]), z.dtype)
        before, cells, tanhs = (np.empty((len(z), n), z.dtype) for n in (h.shape[1], width, width))
        raw = y if w_hr is None else np.empty((len(z), width), z.dtype)
        order, c, some = _order(x, len(h), reverse, sizes), c.copy(), np.empty_like(c)
        # σ(x) = (1 + tanh(x / 2)) / 2: gates as one tanh, of halves where it is σ
        factor, shift = np.full(4 * width, 0.5, z.dtype), np.full(4 * width, 0.5, z.dtype)
        factor[2 * width:3 * width], shift[2 * width:3 * width] = 1, 0
        z *= factor
        w = w_hh * factor[:, None]
        inward, forget, gate, outward = (slice(i * width, (i + 1) * width) for i in range(4))
        for start, n in order:
            rows = slice(start, start + n)
            s, last, now = z[rows], h[:n], c[:n]
            before[rows], cells[rows] = last, now
            s += of_few(last, w.T)
            np.tanh(s, out=s)
            s *= factor
            s += shift
            now *= s[:, forget]
            now += np.multiply(s[:, inward], s[:, gate], out=some[:n])
            t = np.tanh(now, out=tanhs[rows])
            out = np.multiply(s[:, outward], t, out=raw[rows])
            if w_hr is not None:
                y[rows] = out @ w_hr.T
            if n < len(h):
                h = h.copy()
                h[:n] = y[rows]
            else:
                h = y[rows]
        h = h.copy()
        shaped = y if sizes is not None else y.reshape(*x.shape[:2], h.shape[1])
        return (shaped, h, c), (x, w_ih, w_hh, w_hr, before, cells, tanhs, raw, z, order)

    @staticmethod
    def backward(g: Any, kept: Any, needs: Any) -> Any:
        x, w_ih, w_hh, w_hr, before, cells, tanhs, raw, z, order = kept
        width = cells.shape[1]
        dy, dh, dc = g[0].reshape(before.shape), g[1].copy(), g[2].copy()
        dz, into_cell = _slopes(z, cells, tanhs)
        pulled = _pulling(w_hh, len(order))
        projected = None if w_hr is None else np.empty((len(z), w_hr.shape[0]), z.dtype)
        for start, n in reversed(order):
            rows = slice(start, start + n)
            d, dcell = dz[rows], dc[:n]
            dout = dh[:n] + dy[rows]
            if projected is not None:
                projected[rows] = dout
                dout = dout @ w_hr
            dcell += np.multiply(dout, into_cell[rows], out=into_cell[rows])
            gates = d.reshape(n, 4, width)
            gates[:, :3] *= dcell[:, None]
            gates[:, 3] *= dout
            dcell *= z[rows, width:2 * width]
            dh[:n] = of_few(d, pulled)
        dx, *weights = _weights(dz, dz, x, before, (needs[0], *needs[3:7]), (w_ih,))
        return [dx, dh, dc, *weights, projected.T @ raw if projected is not None and needs[7] else None]


@OpDispatch.register("gru_layer", "cpu")
class gru:
    @staticmethod
    def forward(x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, *, reverse: bool = False,
                sizes: Any = None) -> Any:
        if _untaped(sizes):
            y = np.empty((*x.shape[:2], h.shape[1]), x.dtype)
            return (y, *_gru(_steps(x, y, w_ih, reverse, b_ih), h, w_hh, b_hh)), None
        z = _inputs(x, w_ih, b_ih)
        width = h.shape[1]
        y = np.empty((len(z), width), z.dtype)
        before, hidden_new = np.empty_like(y), np.empty_like(y)
        order, h = _order(x, len(h), reverse, sizes), h.copy()
        for start, n in order:
            rows = slice(start, start + n)
            before[rows] = h[:n]
            s, hidden = z[rows], product(h[:n], w_hh.T)
            if b_hh is not None:
                hidden += b_hh
            s[:, :2 * width] += hidden[:, :2 * width]
            _sigmoid(s[:, :2 * width])
            hidden_new[rows] = hidden[:, 2 * width:]
            new = s[:, 2 * width:]
            new += s[:, :width] * hidden[:, 2 * width:]
            np.tanh(new, out=new)
            h[:n] = new + s[:, width:2 * width] * (h[:n] - new)
            y[rows] = h[:n]
        out = y if sizes is not None else y.reshape(*x.shape[:2], h.shape[1])
        return (out, h), (x, w_ih, w_hh, before, hidden_new, z, order)

    @staticmethod
    def backward(g: Any, kept: Any, needs: Any) -> Any:
        x, w_ih, w_hh, before, hidden_new, z, order = kept
        width = before.shape[1]
        dy, dh = g[0].reshape(before.shape), g[1].copy()
        dz, dhidden, pulled = np.empty_like(z), np.empty_like(z), _pulling(w_hh, len(order))
        for start, n in reversed(order):
            rows = slice(start, start + n)
            s, h = z[rows], before[rows]
            r, u, new = s[:, :width], s[:, width:2 * width], s[:, 2 * width:]
            d = dh[:n] + dy[rows]
            dnew = d * (1 - u) * (1 - new * new)
            dz[rows, 2 * width:] = dnew
            dz[rows, width:2 * width] = d * (h - new) * u * (1 - u)
            dz[rows, :width] = dnew * hidden_new[rows] * r * (1 - r)
            dhidden[rows, :2 * width] = dz[rows, :2 * width]
            dhidden[rows, 2 * width:] = dnew * r
            dh[:n] = d * u + of_few(dhidden[rows], pulled)
        dx, *weights = _weights(dz, dhidden, x, before, (needs[0], *needs[2:]), (w_ih,))
        return [dx, dh, *weights]
