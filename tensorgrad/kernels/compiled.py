"""Registration of the compiled kernels in front of others, and helpers that they share.

`native/` has their source; installing the package compiles it if there is a C compiler. A kernel returns NotImplemented
for arrays that it does not support (other dtypes, not contiguous), and the kernel that was registered before runs
instead.
"""
from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ..core.dispatch import OpDispatch
from ..runtime.native import native
from ..runtime.small_floats import fill

CPU = OpDispatch.backend("cpu")
WANTED = native is not None and not os.environ.get("TENSORGRAD_KERNELS")
choices: dict[str, Any] = {"winograd": True}       # tensorgrad.backends.compiled.set_flags
REGISTERED: list[tuple[Any, Any]] = []       # pairs (kernels of an op, our kernel)


def register(op: str) -> Callable[[Any], Any]:
    """Decorate a function, or class with `forward` and `backward`, that is tried before the op's present CPU kernel."""
    def decorate(kernel: Any) -> Any:
        if not WANTED:
            return kernel
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
    """Register a function that handles unsupported arrays itself."""
    if not WANTED:
        return
    OpDispatch.register(op, CPU)(kernel)
    REGISTERED.append((OpDispatch.op(op).kernels, kernel))


def enabled() -> bool:
    """Return True if compiled kernels are in use."""
    return any(kernel in kernels.registered[CPU] for kernels, kernel in REGISTERED[:1])


def enable(on: bool) -> None:
    """Put the compiled kernels to use, or leave the work to NumPy's."""
    if on != enabled():
        for kernels, kernel in REGISTERED:
            (kernels.register if on else kernels.unregister)(CPU, kernel)
        write_in_place(on)


def write_in_place(on: bool) -> None:
    """Make storages on the CPU copy by the compiled kernel, or by NumPy."""
    CPU.assign = staticmethod(assign if on else fill)


LARGE = 1 << 14         # elements from which on NumPy copies slowly: line by line, without regard for the cache
HUGE = 1 << 17          # elements from which on NumPy is slow with contiguous lines, too: it uses one thread
NUMBERS = {4: np.dtype(np.float32), 8: np.dtype(np.float64)}      # moved, not computed with


def quick_to_copy(x: Any) -> bool:
    """Return True if NumPy copies x to an array with contiguous rows as fast as the compiled kernel."""
    return x.size < LARGE or x.size < HUGE and x.strides[-1] == x.itemsize  # type: ignore[no-any-return]


def copy_into(out: Any, x: Any) -> None:
    """Run out[...] = x, for arrays of equal shape and dtype."""
    size = x.itemsize
    if (quick_to_copy(x) and (x.size < LARGE or out.strides[-1] == size) or x.ndim > 5 or size not in NUMBERS
            or x.dtype.kind not in "fiuc" or any(step % size for step in (*x.strides, *out.strides))):
        out[...] = x
        return
    number, rest, steps, into = (NUMBERS[size], 5 - x.ndim, (step // size for step in x.strides),
                                 (step // size for step in out.strides))
    if native.copy(x.view(number), out.view(number), *(1,) * rest, *x.shape, *(0,) * rest, *steps, *(0,) * rest,
                   *into) is not None:
        out[...] = x


def assign(array: Any, values: Any) -> None:
    if (type(values) is np.ndarray and values.shape == array.shape and values.dtype is array.dtype
            and not np.may_share_memory(array, values)):
        copy_into(array, values)
    else:
        fill(array, values)


def in_rows(x: Any) -> Any:
    """Copy to a contiguous array."""
    if quick_to_copy(x):
        return x.copy(order="C")
    out = np.empty(x.shape, x.dtype)
    copy_into(out, x)
    return out


def whole(x: Any) -> Any:
    """Return the array, or a contiguous copy."""
    return x if x.flags.c_contiguous else in_rows(x)


def done(refused: Any, out: Any) -> Any:
    """Return `out`, or NotImplemented if the kernel that fills it refused its arrays."""
    return out if refused is None else refused


def sure(refused: Any) -> None:
    """Raise RuntimeError if a kernel refused arrays that are known to fit."""
    if refused is not None:
        raise RuntimeError("a compiled kernel refused arrays that it was made for")


if WANTED:
    write_in_place(True)
