"""Targets of the nodes that passes make: an op of the table joined with what follows it.

Calling a target with arrays returns its result, by definition; emitters and kernels must agree with that.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..graph.records import Record
from ..ops.base import OPS
from .over import OVER
from .values import computed, kernel_of


class Activation(Record):
    """An elementwise op of one operand and its parameters: ("hardtanh", (("low", 0.0), ("high", 6.0)))."""

    opname: str
    params: tuple[tuple[str, Any], ...] = ()

    def __call__(self, x: Any) -> Any:
        return computed(OPS[self.opname], (x,), dict(self.params))

    def over(self, x: Any) -> Any:
        """Compute in the memory of x, if that is possible, and return the result."""
        write = OVER.get(self.opname)
        return self(x) if write is None or not x.ndim or x.dtype.char not in "fd" else write(x, **dict(self.params))

    def __str__(self) -> str:
        return self.opname


class Joined(Record):
    """activation(op(operands) + residual), in one node. The op is one whose result is in new memory.

    The operands are those of `op`; with `residual`, one more follows, of the result's shape. Parameters are those of
    `op`.
    """

    opname: str
    activation: Activation | None = None
    residual: bool = False

    def __call__(self, *operands: Any, **params: Any) -> Any:
        return self.prepared()(*operands, **params)

    def prepared(self) -> Callable[..., Any]:
        """Return this as a function whose kernel is looked up."""
        kernel, activation = kernel_of(OPS[self.opname]), self.activation

        def run(*operands: Any, **params: Any) -> Any:
            own, rest = (operands[:-1], operands[-1:]) if self.residual else (operands, ())
            y = kernel(*own, **params)
            for other in rest:
                y = np.add(y, other, out=y) if y.ndim and y.dtype == other.dtype else y + other
            return y if activation is None else activation.over(y)
        return run

    @property
    def __name__(self) -> str:
        return "_".join([self.opname, *["residual"] * self.residual,
                         *[str(self.activation)] * (self.activation is not None)])
