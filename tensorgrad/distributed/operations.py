"""Reductions of collectives: how values of several ranks become one.

https://pytorch.org/docs → torch.distributed.ReduceOp
"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import Any

import numpy as np

from ..runtime import small_floats

__all__ = ["ReduceOp", "combine", "reduce_op", "supports_complex"]


class ReduceOp(IntEnum):
    """The name of a reduction. https://pytorch.org/docs → torch.distributed.ReduceOp

    >>> from tensorgrad.distributed import ReduceOp
    >>> print(ReduceOp.SUM, ReduceOp["MAX"])
    RedOpType.SUM RedOpType.MAX
    """

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = range(8)

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"


ReduceOp.RedOpType = ReduceOp           # type: ignore[attr-defined]  annotations name it

UFUNCS = {ReduceOp.SUM: np.add, ReduceOp.AVG: np.add, ReduceOp.PRODUCT: np.multiply, ReduceOp.MIN: np.minimum,
          ReduceOp.MAX: np.maximum, ReduceOp.BAND: np.bitwise_and, ReduceOp.BOR: np.bitwise_or,
          ReduceOp.BXOR: np.bitwise_xor}


def combine(op: ReduceOp) -> Callable[..., Any]:
    """Return the function `(a, b, out)` that joins two arrays.

    AVG adds: whoever has the whole sum divides it by the number of ranks.

    Arrays of booleans add up as `or`, multiply as `and`, as NumPy and PyTorch have it; those of 16 bits add up in
    float32, and are rounded each time.
    """
    return partial(small_floats.combine, UFUNCS[op])


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Return True if complex numbers can be reduced so: SUM and AVG. https://pytorch.org/docs → torch.distributed"""
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG)


class _OldNames:
    """The reductions under their old name. https://pytorch.org/docs → torch.distributed.reduce_op"""

    @property
    def __members__(self) -> dict[str, ReduceOp]:
        return dict(ReduceOp.__members__)

    def __getattr__(self, name: str) -> ReduceOp:
        if name.startswith("__"):
            raise AttributeError(f"'_reduce_op' object has no attribute {name!r}")
        warnings.warn("`torch.distributed.reduce_op` is deprecated, please use `torch.distributed.ReduceOp` instead",
                      FutureWarning, stacklevel=2)
        if name not in ReduceOp.__members__:
            raise AttributeError(f"'_reduce_op' object has no attribute {name!r}")
        return ReduceOp[name]


reduce_op = _OldNames()
