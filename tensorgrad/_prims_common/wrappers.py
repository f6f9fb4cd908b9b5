"""torch._prims_common.wrappers: decorators of definitions of operators in Python.

Functions of this package take `out=` by themselves.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _maybe_remove_out_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that `out_wrapper` wraps in PyTorch; nothing wraps the functions of this package."""
    return fn
