"""Products with packed weights: targets of nodes that read a weight in the order in which the compiled kernels do.

A packed weight has panels of 32 columns, (⌈n / 32⌉, k, 32): for each of k steps, the numbers of 32 columns. Columns
after the last are 0. native/packed.inc computes these nodes; each `__call__` here is their definition.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..graph.records import Record
from ..runtime.native import native
from .room import room
from .targets import Activation
from .values import computed

WIDE = 32               # columns of a panel

# The activations that a product's kernel computes, by number: native/following.h.
FOLLOWING: tuple[str, ...] = tuple(getattr(native, "following", "").split())


def panels(w: Any, empty: Callable[..., Any] = np.empty) -> Any:
    """Return the panels of a matrix (k, n), in memory that `empty` makes."""
    k, n = w.shape
    out = empty((-(-n // WIDE), k, WIDE), w.dtype)
    step, along = (s // w.itemsize for s in w.strides)
    if native is None or not w.size or native.pack_weight(w.T, out, n, k, along, step) is not None:
        out[...] = 0
        for first in range(0, n, WIDE):
            part = w[:, first:first + WIDE]
            out[first // WIDE, :, :part.shape[1]] = part
    return out


def columns(packed: Any, n: int) -> Any:
    """Return the matrix (k, n) of such panels."""
    return packed.transpose(1, 0, 2).reshape(packed.shape[1], -1)[:, :n]


class PackedWeight(Record):
    """Pack matrices (k, n), side by side; with `transposed`, matrices (n, k), one below another."""

    transposed: bool = False

    def __call__(self, *weights: Any) -> Any:
        w = weights[0] if len(weights) == 1 else np.concatenate(weights, axis=0 if self.transposed else 1)
        return panels(w.T if self.transposed else w, room.empty)

    def shape(self, *weights: tuple[int, ...]) -> tuple[int, int, int]:
        """Return the shape of the result, given those of the weights."""
        axis = 0 if self.transposed else 1
        return -(-sum(w[axis] for w in weights) // WIDE), weights[0][1 - axis], WIDE

    def stays(self, shape: tuple[int, ...]) -> bool:
        """Return True if each panel of a matrix is where its rows are."""
        return self.transposed and shape[0] % WIDE == 0

    def over(self, w: Any) -> Any:
        """Pack a contiguous matrix that stays, in its own memory."""
        packed, rows = w.reshape(-1, w.shape[1], WIDE), np.empty((WIDE, w.shape[1]), w.dtype)
        for panel, part in zip(packed, w.reshape(-1, *rows.shape), strict=True):
            rows[...] = part
            if native is None or native.pack_weight(rows, panel[None], *rows.shape, w.shape[1], 1) is not None:
                panel[...] = rows.T
        return packed

    __name__ = "packed_weight"


class PackedRows(Record):
    """Rows of a matrix (n, k) at given places, from its panels; `op` reads them from the matrix itself."""

    op: Any
    n: int

    def __call__(self, packed: Any, index: Any, **params: Any) -> Any:
        return computed(self.op, (columns(packed, self.n).T, index), params)

    __name__ = "packed_rows"


class PackedLinear(Record):
    """activation(x · W + bias + residual) of n columns; operands: x, packed W, and bias and residual as flagged."""

    n: int
    bias: bool = False
    residual: bool = False
    activation: Activation | None = None

    def __call__(self, x: Any, packed: Any, *rest: Any) -> Any:
        y = x @ columns(packed, self.n)
        for other in rest:
            y = y + other
        return y if self.activation is None else self.activation(y)

    @property
    def __name__(self) -> str:
        return "_".join(["packed_linear", *["residual"] * self.residual,
                         *[str(self.activation)] * (self.activation is not None)])


NUMBERS: dict[str, tuple[str, Callable[..., tuple[float, ...]]]] = {
    "leaky_relu": ("leaky_relu", lambda slope: (slope,)),
    "hardtanh": ("hardtanh", lambda low, high: (low, high)),
    "elu": ("elu", lambda alpha, scale=1.0: (alpha * scale, scale, 1.0)),
    "celu": ("elu", lambda alpha: (alpha, 1.0, 1 / alpha)),
    "softplus": ("softplus", lambda beta, threshold: (beta, threshold, 1 / beta if beta else float("inf"))),
}


def following(activation: Activation | None) -> tuple[float, ...] | None:
    """Return an activation as the kernels take it, (code, p, q, r), or None if they do not compute it."""
    if activation is None:
        return 0, 0.0, 0.0, 0.0
    name, params = activation.opname, dict(activation.params)
    kernel, numbers = NUMBERS.get(name, (name, lambda: ()))
    if kernel not in FOLLOWING[1:] or (name not in NUMBERS and params):
        return None
    p, q, r = (*numbers(**params), 0.0, 0.0, 0.0)[:3]
    return FOLLOWING.index(kernel), float(p), float(q), float(r)
