"""Definitions of ops by methods of arrays and in-place writes.

A formula in ops/ calls ops only. Some would allocate an array per part, where one array, written part by part, is
enough: `in_arrays` registers such a form of an op's `forward`, with the arguments of `forward`, for all backends whose
arrays are memory: NumPy, CUDA, meta, a program's own. Symbols, batches and recorded values use the formula or their
rule.

A formula that calls its own op, like `xp.cast(x, dtype=dtype)` in `Cast`, leaves it to the arrays: `in_arrays`
registers the code that computes it by methods of arrays, for every backend without a rule of its own.
"""
from __future__ import annotations

from typing import Any

from ..ops.base import OPS


def in_arrays(name: str) -> Any:
    """Decorate a function `f(xp, *inputs, **params)` that computes the op on arrays that may be written to."""
    def register(function: Any) -> Any:
        OPS[name].kernels.in_arrays = function
        OPS[name].kernels.forget()
        return function
    return register
