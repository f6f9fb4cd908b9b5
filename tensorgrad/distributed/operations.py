"""Reductions of collectives: how values of several ranks become one. https://pytorch.org/docs → torch.distributed.ReduceOp"""
from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

__all__ = ["ReduceOp", "combine"]


class ReduceOp(Enum):
    """The name of a reduction. https://pytorch.org/docs → torch.distributed.ReduceOp"""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = range(8)

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"


ReduceOp.RedOpType = ReduceOp           # type: ignore[attr-defined]  annotations name it

UFUNCS = {ReduceOp.SUM: np.add, ReduceOp.AVG: np.add, ReduceOp.PRODUCT: np.multiply, ReduceOp.MIN: np.minimum, ReduceOp.MAX: np.maximum,
          ReduceOp.BAND: np.bitwise_and, ReduceOp.BOR: np.bitwise_or, ReduceOp.BXOR: np.bitwise_xor}


def combine(op: ReduceOp) -> Callable[..., Any]:
    """The function `(a, b, out)` that joins two arrays. AVG adds: whoever has the whole sum divides it by the number of ranks.

    Arrays of booleans add up as `or`, multiply as `and`, as NumPy and PyTorch have it.
    """
    return UFUNCS[op]
