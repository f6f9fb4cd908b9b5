"""What the compiled kernels share: where they are, and how they stand before the others.

`native/` has their source; installing the package compiles it where there is a C compiler. Each gives NotImplemented for arrays that it does not serve
(other dtypes, not in one piece), and then what was registered before runs.
"""
from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from .._native import native
from ..core.dispatch import OpDispatch
from ..storage.base import Storage

CPU = OpDispatch.backend("cpu")
WANTED = native is not None and not os.environ.get("TENSORGRAD_KERNELS")
choices: dict[str, Any] = {"winograd": True}       # tensorgrad.backends.compiled.set_flags
REGISTERED: list[tuple[Any, Any]] = []       # the kernels of an op, and ours among them


def register(op: str) -> Callable[[Any], Any]:
    """A decorator: the function, or class with `forward` and `backward`, goes before the kernel that the op has on the CPU."""
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
    """Register a function that itself passes on what it does not serve."""
    if not WANTED:
        return
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
        write_in_place(on)


def write_in_place(on: bool) -> None:
    """Whether a kernel copies."""
    CPU.assign = staticmethod(assign if on else Storage.assign)


LARGE = 1 << 14         # elements from which on NumPy copies slowly: line by line, whatever the cache holds
HUGE = 1 << 17          # and from which on it does so even where lines are in one piece: with one thread
NUMBERS = {4: np.dtype(np.float32), 8: np.dtype(np.float64)}      # moved, not computed with


def quick_to_copy(x: Any) -> bool:
    """Whether NumPy is as quick to copy an array into one whose lines are in one piece."""
    return x.size < LARGE or x.size < HUGE and x.strides[-1] == x.itemsize  # type: ignore[no-any-return]


def copy_into(out: Any, x: Any) -> None:
    """out[...] = x, of the same shape and dtype."""
    size = x.itemsize
    if quick_to_copy(x) and (x.size < LARGE or out.strides[-1] == size) or x.ndim > 5 or size not in NUMBERS or x.dtype.kind not in "fiuc" \
            or any(step % size for step in (*x.strides, *out.strides)):
        out[...] = x
        return
    number, rest, steps, into = NUMBERS[size], 5 - x.ndim, (step // size for step in x.strides), (step // size for step in out.strides)
    if native.copy(x.view(number), out.view(number), *(1,) * rest, *x.shape, *(0,) * rest, *steps, *(0,) * rest, *into) is not None:
        out[...] = x


def assign(array: Any, values: Any) -> None:
    if type(values) is np.ndarray and values.shape == array.shape and values.dtype is array.dtype and not np.may_share_memory(array, values):
        copy_into(array, values)
    else:
        array[...] = values


def in_rows(x: Any) -> Any:
    """A copy in rows."""
    if quick_to_copy(x):
        return x.copy(order="C")
    out = np.empty(x.shape, x.dtype)
    copy_into(out, x)
    return out


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


if WANTED:
    write_in_place(True)
