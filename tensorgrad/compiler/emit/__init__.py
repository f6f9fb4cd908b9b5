"""Emitters: for each target, the kernel calls that compute it.

`@emits("relu")` or `@emits(Joined)` registers a function `emit(build, node, *operands, **params)`, where operands are
`Value`s (arrays of the plan: shape, dtype, strides), numbers or None. The function calls `build.call(kernel,
*arguments)` with the arguments of the kernel's row in native/kernels.rows, and returns the Value of the node, or
NotImplemented if the kernels do not serve these operands: then an emitter that was registered before is asked, at last
Python runs the node.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from ...ops.base import Op

FAMILIES = ["loops", "views", "elementwise", "matrix", "convolution", "pooling", "normalization", "reduction",
            "softmax", "attention", "recurrent", "indexing", "copying", "windows", "joined", "packed", "blocked"]
EMITTERS: dict[Any, list[Callable[..., Any]]] = {}


def emits(*targets: Any) -> Callable[[Any], Any]:
    """Register a function as the emitter of ops, by their names, of functions, and of classes of targets.

    The function is asked before those that were registered earlier.
    """
    def register(emitter: Any) -> Any:
        for target in targets:
            EMITTERS.setdefault(target, []).insert(0, emitter)
        return emitter
    return register


@cache
def load() -> None:
    """Import all emitters."""
    for family in FAMILIES:
        import_module(f"{__name__}.{family}")


def emitters_of(target: Any) -> Sequence[Callable[..., Any]]:
    """Return the emitters of a node's target, or of an op's name, in the order in which they are asked."""
    load()
    if isinstance(target, type) and issubclass(target, Op):
        target = target.opname
    found = EMITTERS.get(type(target))
    return EMITTERS.get(target, ()) if found is None else found
