"""Definitions with writes in place, for all backends whose arrays are memory: NumPy, CUDA, meta, a program's own.

A formula in ops/ calls ops only. Some would make an array for each part that way where one array, written part by part, serves: `in_arrays` registers
that form of an op's `forward`. It takes `xp` and the same arguments. Symbols, batches and recorded values keep to the formula or their own rule.
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
