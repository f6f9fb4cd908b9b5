"""Emitters: for each target, the kernel calls that compute it.

`@emits("relu")` or `@emits(Joined)` registers a function `emit(build, node, *operands, **params)`, where operands are
`Value`s (arrays of the plan: shape, dtype, strides), numbers or None. It calls `build.call(kernel, *arguments)` with
the arguments of the kernel's row in native/kernels.rows, and returns the Value of the node, or NotImplemented if the
kernels do not serve these operands: then Python runs the node.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

EMITTERS: dict[Any, Callable[..., Any]] = {}


def emits(*targets: Any) -> Callable[[Any], Any]:
    """Register a function as the emitter of ops, by their names, and of classes of targets."""
    def register(emitter: Any) -> Any:
        for target in targets:
            EMITTERS[target] = emitter
        return emitter
    return register
