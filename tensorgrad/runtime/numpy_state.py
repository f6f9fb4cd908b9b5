"""NumPy's state while the package computes, and only then: other code in the process keeps its own state.

Floating point errors are silent, as in PyTorch: they give infinities and NaN. NumPy's buffer is short. With the
compiled kernels, large arrays come from memory that is kept (native/memory.c), and NumPy's BLAS computes with one
thread, since the kernels' pool has the others and two pools would wait for each other's processors: calls of NumPy in
other threads have one thread of BLAS meanwhile, too.

All of that is set for a region: one kernel that calls NumPy (`compute`), or a whole backward (`Region`). Kernels that
    do
not call NumPy need none, so the compiled fast path sets nothing (native/numpy_state.c has the same in C). Code of the
program's own that is called from a region, such as a hook, runs in the program's own state (`outside`), and its changes
there last.
"""
from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from numpy._core import umath

from .blas import addresses
from .native import native

# NumPy copies an operand that is broadcast along rows (a number per channel) once per element, if its buffer holds two
# rows or more. With rows of 600 to 4,096 elements that takes two to three times longer (NumPy 2.0 to 2.5). A short
# buffer prevents it; shorter rows then take up to a fifth longer.
BUFFER = 1024                       # elements, not 8,192

variable = umath._extobj_contextvar             # NumPy 2's error handling and size of buffer
STATE = umath._make_extobj(all="ignore", bufsize=BUFFER)
begin, end = variable.set, variable.reset


if native is not None:
    native.use_state(variable, STATE, *addresses())
    compute, outside, enter, leave = native.compute, native.outside, native.enter_region, native.leave_region
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=native.regions_forked)
else:
    class Here(threading.local):
        token: Any = None               # set while this thread is in a region

    here = Here()

    def enter() -> bool:
        """Begin a region, unless there is one; the result says if it began, and goes to `leave`."""
        if here.token is not None:
            return False
        here.token = begin(STATE)
        return True

    def leave(began: bool) -> None:
        if began:
            token, here.token = here.token, None
            end(token)

    def compute(function: Callable[..., Any], *args: Any, **params: Any) -> Any:
        """Call the function in a region."""
        token = begin(STATE)
        try:
            return function(*args, **params)
        finally:
            end(token)

    def outside(function: Callable[..., Any], *args: Any, **params: Any) -> Any:
        """Call the program's own function in the program's state, and keep the state that it leaves."""
        if here.token is None:
            return function(*args, **params)
        leave(True)
        try:
            return function(*args, **params)
        finally:
            enter()


class Region:
    """The state that the package computes in, for the length of a `with` block.

    A region inside another changes nothing.
    """

    __slots__ = ("began",)

    began: bool

    def __enter__(self) -> None:
        self.began = enter()

    def __exit__(self, *error: object) -> None:
        leave(self.began)


def computing(function: Any) -> Any:
    """Decorate a function that runs in a region, and calls no code of the program."""
    @wraps(function)
    def computed(*args: Any, **params: Any) -> Any:
        return compute(function, *args, **params)
    return computed
