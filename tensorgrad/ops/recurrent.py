"""Recurrent layers over whole sequences, in one direction.

x is (T, N, I), h₀ (N, H), and the weights are PyTorch's: w_ih (G·H, I), w_hh (G·H, H), with G gates stacked. A packed
sequence is given by `sizes`, the number of sequences that are still going on at each step; x is then (Σ sizes, I). The
definitions below are loops of table ops; kernels/recurrent_numpy.py has them with a way back of their own.
"""
from __future__ import annotations

from .base import Composite


class Recurrent(Composite):
    """Steps (inputs, state) → state, along a sequence."""

    __slots__ = ()
    kinds = "f"
    batch = "defined"

    def name(self):
        """PyTorch makes a layer out of cells: return the name of its last step, which puts their outputs together."""
        return f"{'Stack' if self.params.get('sizes') is None else 'Cat'}Backward0"


class RnnLayer(Recurrent):
    """h[t] = f(W_ih x[t] + b_ih + W_hh h[t−1] + b_hh), with f tanh or relu. J. L. Elman (1990)"""

    outputs = ("y", "h")
    torch_name = "Rnn"

    def infer(x, h, *rest, **params):
        return layer_of(x, h)

    def forward(xp, x, h, w_ih, w_hh, b_ih, b_hh, *, relu=False, reverse=False, sizes=None):
        def step(inputs, state):
            (h,) = state
            z = inputs + xp.matmul(h, xp.t(w_hh))
            h = xp.maximum(z, xp.zeros_like(z)) if relu else xp.tanh(z)
            return h, (h,)
        return run(xp, step, gates(xp, x, w_ih, b_ih, b_hh), (h,), reverse, sizes)


class LstmLayer(Recurrent):
    """i, f, o = σ(…), g = tanh(…), each of W_ih x[t] + b_ih + W_hh h[t−1] + b_hh;  c = f c + i g,  h = W_hr (o tanh c).

    S. Hochreiter, J. Schmidhuber (1997); with projection: H. Sak, A. Senior, F. Beaufays (2014)
    """

    outputs = ("y", "h", "c")
    torch_name = "Lstm"

    def infer(x, h, c, *rest, **params):
        return layer_of(x, h, c)

    def forward(xp, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, *, reverse=False, sizes=None):
        def step(inputs, state):
            h, c = state
            z = inputs + xp.matmul(h, xp.t(w_hh))
            i, f, candidate, o = quarters(xp, z, 4)
            i, f, candidate, o = xp.sigmoid(i), xp.sigmoid(f), xp.tanh(candidate), xp.sigmoid(o)
            c = f * c + i * candidate
            h = o * xp.tanh(c)
            h = h if w_hr is None else xp.matmul(h, xp.t(w_hr))
            return h, (h, c)
        return run(xp, step, gates(xp, x, w_ih, b_ih, b_hh), (h, c), reverse, sizes)


class GruLayer(Recurrent):
    """r, z = σ(…) as in the LSTM, n = tanh(W_in x[t] + b_in + r (W_hn h[t−1] + b_hn)),  h = (1 − z) n + z h.

    K. Cho et al. (2014)
    """

    outputs = ("y", "h")
    torch_name = "Gru"

    def infer(x, h, *rest, **params):
        return layer_of(x, h)

    def forward(xp, x, h, w_ih, w_hh, b_ih, b_hh, *, reverse=False, sizes=None):
        def step(inputs, state):
            (h,) = state
            hidden = xp.matmul(h, xp.t(w_hh))
            hidden = hidden if b_hh is None else hidden + b_hh
            (xr, xz, xn), (hr, hz, hn) = quarters(xp, inputs, 3), quarters(xp, hidden, 3)
            r, z = xp.sigmoid(xr + hr), xp.sigmoid(xz + hz)
            n = xp.tanh(xn + r * hn)
            h = n + z * (h - n)
            return h, (h,)
        return run(xp, step, gates(xp, x, w_ih, b_ih, None), (h,), reverse, sizes)


def layer_of(x, *states):
    """Return the shape and dtype of the results of a layer: the outputs of all steps, and the final states."""
    return ((*x.shape[:-1], states[0].shape[-1]), x.dtype), *((state.shape, x.dtype) for state in states)


def gates(xp, x, w_ih, b_ih, b_hh):
    """Return the input's part of the gate sums, for all steps at once."""
    out = xp.matmul(x, xp.t(w_ih))
    out = out if b_ih is None else out + b_ih
    return out if b_hh is None else out + b_hh


def quarters(xp, z, n):
    """Split z along the last axis into n gates."""
    width = z.shape[-1] // n
    return [part(xp, z, k * width, (k + 1) * width) for k in range(n)]


def part(xp, z, start, end):
    return xp.get_slice(z, index=(slice(None), slice(start, end)))


def spans(steps, batch, sizes):
    """(first row, rows) of each step."""
    if sizes is None:
        return [(t * batch, batch) for t in range(steps)]
    starts = [0]
    for n in sizes:
        starts.append(starts[-1] + n)
    return list(zip(starts, sizes, strict=False))


def run(xp, step, inputs, state, reverse, sizes):
    """Run all steps; a sequence that has ended keeps its state."""
    batch = state[0].shape[0]
    packed = sizes is not None
    rows = spans(len(sizes) if packed else inputs.shape[0], batch, sizes)
    outputs = [None] * len(rows)
    for t in reversed(range(len(rows))) if reverse else range(len(rows)):
        start, n = rows[t]
        now = xp.get_slice(inputs, index=(slice(start, start + n),)) if packed else xp.get_item(inputs, index=(t,))
        going = state if n == batch else tuple(xp.get_slice(s, index=(slice(0, n),)) for s in state)
        outputs[t], new = step(now, going)
        state = new if n == batch else tuple(
            xp.concat([a, xp.get_slice(s, index=(slice(n, batch),))], axis=0) for a, s in zip(new, state, strict=True))
    return (xp.concat(outputs, axis=0) if packed else xp.stack(outputs, axis=0), *state)
