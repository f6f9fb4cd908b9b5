"""Linear layers with transposed weights (in, out), by which BLAS multiplies one row, or many, faster."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..graph.records import Record
from .targets import Joined


class Turned(Record):
    """`joined`, a linear layer, of x, weights (in, out), the bias if it has one, and the residual if it has one."""

    joined: Joined
    new_memory = True

    def __call__(self, x: Any, w: Any, *rest: Any) -> Any:
        y = np.matmul(x.reshape(prod(x.shape[:-1]), len(w)), w)
        if self.joined.opname == "linear":
            y += rest[0]
        y = y.reshape(*x.shape[:-1], w.shape[1])
        if self.joined.residual:
            y += rest[-1]
        return y if self.joined.activation is None else self.joined.activation.over(y)

    @property
    def __name__(self) -> str:
        return f"turned_{self.joined.__name__}"
