"""What the compiled kernels share: where they are, and how they stand before the others.

`native/` has their source; installing the package compiles it where there is a C compiler. Each gives NotImplemented for arrays that it does not serve
(other dtypes, not in one piece), and then what was registered before runs.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from .._native import native  # noqa: F401 - for the kernels
from ..dispatch import OpDispatch

CPU = OpDispatch.backend("cpu")
REGISTERED: list[tuple[Any, Any]] = []       # the kernels of an op, and ours among them


def register(op: str) -> Callable[[Any], Any]:
    """A decorator: the function, or class with `forward` and `backward`, goes before the kernel that the op has on the CPU."""
    def decorate(kernel: Any) -> Any:
        kernels = OpDispatch.op(op).kernels
        found = kernel
        if not hasattr(kernel, "backward"):
            before = kernels[CPU]

            @wraps(kernel)
            def found(*args: Any, **params: Any) -> Any:
                out = kernel(*args, **params)
                return before(*args, **params) if out is NotImplemented else out
        OpDispatch.register(op, CPU)(found)
        REGISTERED.append((kernels, kernels.registered[CPU][-1]))
        return kernel
    return decorate


def put(op: str, kernel: Any) -> None:
    """Register a function that itself passes on what it does not serve."""
    OpDispatch.register(op, CPU)(kernel)
    REGISTERED.append((OpDispatch.op(op).kernels, kernel))


def enabled() -> bool:
    """Whether compiled kernels are in use."""
    return any(kernel in kernels.registered[CPU] for kernels, kernel in REGISTERED[:1])


def enable(on: bool) -> None:
    """Put the compiled kernels to use, or leave the work to NumPy's."""
    if on != enabled():
        for kernels, kernel in REGISTERED:
            (kernels.register if on else kernels.unregister)(CPU, kernel)


LARGE = 1 << 14         # elements from which on NumPy copies slowly what does not lie in rows: line by line, whatever the cache holds
NUMBERS = {4: np.dtype(np.float32), 8: np.dtype(np.float64)}      # moved, not computed with


def in_rows(x: Any) -> Any:
    """A copy in rows."""
    if x.size < LARGE or x.ndim > 5 or x.itemsize not in NUMBERS or x.dtype.kind not in "fiuc" or any(step % x.itemsize for step in x.strides):
        return x.copy(order="C")
    number, rest, out = NUMBERS[x.itemsize], 5 - x.ndim, np.empty(x.shape, x.dtype)
    steps = (step // x.itemsize for step in x.strides)
    refused = native.copy(x.view(number), out.view(number), 5, *(1,) * rest, *x.shape, *(0,) * rest, *steps)
    return out if refused is None else x.copy(order="C")


def whole(x: Any) -> Any:
    """The array, or a copy that lies in one piece."""
    return x if x.flags.c_contiguous else in_rows(x)


def done(refused: Any, out: Any) -> Any:
    """What a kernel that was called wrote; NotImplemented if it refused its arrays."""
    return out if refused is None else refused


def sure(refused: Any) -> None:
    """Of a call whose arrays are known to fit."""
    if refused is not None:
        raise RuntimeError("a compiled kernel refused arrays that it was made for")
