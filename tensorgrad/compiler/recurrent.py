"""LSTM and GRU layers with packed weights and without a tape: targets of nodes, in parts.

    lstm_layer(x, h, c, …)  =  lstm_steps(packed_linear(x, pack(W_ih), b_ih + b_hh), pack(W_hh), h, c)

A packed weight of the hidden state has, for each 32 units, the panel of each gate: (⌈n / 32⌉, gates, n, 32).
native/packed_recurrent.inc computes the steps; each `__call__` here is their definition.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..graph.records import Record
from .packed import WIDE, columns, panels
from .room import room


class PackedGates(Record):
    """Pack the weight of the hidden state, (gates · n, n)."""

    gates: int

    def __call__(self, w: Any) -> Any:
        out = room.empty(self.shape(w.shape), w.dtype)
        for gate, part in enumerate(w.reshape(self.gates, -1, w.shape[-1])):
            out[:, gate] = panels(part.T)
        return out

    def shape(self, w: tuple[int, ...]) -> tuple[int, int, int, int]:
        """Return the shape of the result, given that of the weight."""
        return -(-w[1] // WIDE), self.gates, w[1], WIDE

    __name__ = "packed_gates"


def gates_of(packed: Any, n: int) -> list[Any]:
    """Return the matrix (n, n) of each gate."""
    return [columns(packed[:, gate], n) for gate in range(packed.shape[1])]


def sigmoid(x: Any) -> Any:
    return (1 + np.tanh(x * 0.5)) * 0.5


def in_order(z: Any, reverse: bool) -> Iterable[int]:
    return range(len(z))[::-1] if reverse else range(len(z))


class LstmSteps(Record):
    """(y, last h, last c) of the inputs' part of the sums of gates, z (steps, batch, 4 · n), and the first states."""

    reverse: bool = False

    def __call__(self, z: Any, packed: Any, h: Any, c: Any) -> tuple[Any, Any, Any]:
        n = h.shape[-1]
        y, weights = np.empty((*z.shape[:2], n), z.dtype), gates_of(packed, n)
        for step in in_order(z, self.reverse):
            sums = [z[step][:, i * n:(i + 1) * n] + h @ w for i, w in enumerate(weights)]
            c = sigmoid(sums[1]) * c + sigmoid(sums[0]) * np.tanh(sums[2])
            y[step] = h = sigmoid(sums[3]) * np.tanh(c)
        return y, h.copy(), c.copy()

    __name__ = "lstm_steps"


class GruSteps(Record):
    """(y, last h) of the inputs' part of the sums of gates, z (steps, batch, 3 · n), and the first state."""

    reverse: bool = False

    def __call__(self, z: Any, packed: Any, bias: Any, h: Any) -> tuple[Any, Any]:
        n = h.shape[-1]
        y, weights = np.empty((*z.shape[:2], n), z.dtype), gates_of(packed, n)
        biases = np.zeros(3 * n, z.dtype) if bias is None else bias
        for step in in_order(z, self.reverse):
            reset, keep, new = [h @ w + biases[i * n:(i + 1) * n] for i, w in enumerate(weights)]
            reset, keep = sigmoid(z[step][:, :n] + reset), sigmoid(z[step][:, n:2 * n] + keep)
            new = np.tanh(z[step][:, 2 * n:] + reset * new)
            y[step] = h = new + keep * (h - new)
        return y, h.copy()

    __name__ = "gru_steps"
