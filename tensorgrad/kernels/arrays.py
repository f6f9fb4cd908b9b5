"""Definitions in terms of arrays: their methods, and writes in place.

A formula in ops/ calls ops only. Some would make an array for each part that way where one array, written part by part, serves: `in_arrays` registers
that form of an op's `forward`, for all backends whose arrays are memory: NumPy, CUDA, meta, a program's own. It takes `xp` and the same arguments.
Symbols, batches and recorded values keep to the formula or their own rule.

A formula that names its own op, as `xp.cast(x, dtype=dtype)` does in `Cast`, says that arrays know how: `in_arrays` registers the method of theirs that
computes it, which every backend without a rule of its own calls.
"""
from __future__ import annotations

from typing import Any

from ..ops.base import OPS


def in_arrays(name: str) -> Any:
    """A decorator: the function, `f(xp, *inputs, **params)`, computes the op on arrays that may be written to."""
    def register(function: Any) -> Any:
        OPS[name].kernels.in_arrays = function
        OPS[name].kernels.forget()
        return function
    return register
