"""The number of threads: of the native pool, or, without compiled kernels, of BLAS.

https://pytorch.org/docs → torch.set_num_threads
"""
from __future__ import annotations

import os
import threading

from .blas import open_blas
from .native import native


def _default() -> int:
    """Return the number of processors that this process may use, or the number in BLAS's variables."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        if (number := os.environ.get(name, "")).isdigit() and int(number):
            return int(number)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Single:
    """A `with` block in which BLAS uses one thread, since several threads of ours call it. Blocks may overlap."""

    def __init__(self) -> None:
        # before: the number of BLAS's threads to restore
        self.lock, self.blocks, self.before = threading.Lock(), 0, 0

    def __enter__(self) -> None:
        with self.lock:
            if not self.blocks and (blas := open_blas()) is not None and (before := blas.get()) > 1:
                blas.set(1)
                self.before = before
            self.blocks += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.blocks -= 1
            if not self.blocks and self.before and (blas := open_blas()) is not None:
                blas.set(self.before)
                self.before = 0

    def forget(self) -> None:
        """In a child process: forget the blocks of threads that do not exist there."""
        self.lock = threading.Lock()
        if self.blocks:
            self.blocks = 1
            self.__exit__()


single_blas = Single()


wanted = _default()
if native is not None:
    native.set_threads(wanted)


def set_num_threads(int: int, /) -> None:
    """Let all loops of the compiled kernels, products among them, use this many threads; without these, NumPy's BLAS.

    With compiled kernels, NumPy's own functions are not affected: BLAS has one thread while this package computes, and
    as many as before right after. (Calls of NumPy in other threads meanwhile have one, too.) Results may differ in
    their last bits from one number of threads to another, and do not depend on what other threads do.
    https://pytorch.org/docs → torch.set_num_threads
    """
    global wanted
    if not hasattr(int, "__index__"):
        raise RuntimeError(f"set_num_threads expects an int, but got {type(int).__name__}")
    _check_size(int)
    if int <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    wanted = int
    if native is not None:
        native.set_threads(int)
    elif single_blas.before:
        single_blas.before = int
    elif (blas := open_blas()) is not None:
        blas.set(int)


def get_num_threads() -> int:
    """Return how many threads matrix products use."""
    if native is None and (blas := open_blas()) is not None:
        return single_blas.before or blas.get()
    return wanted


def _check_size(count: int) -> None:
    """Raise ValueError unless the number fits C's int."""
    if not -1 << 31 <= count < 1 << 31:
        raise ValueError(f"Overflow when unpacking long{'' if -1 << 63 <= count < 1 << 63 else ' long'}")


def set_num_interop_threads(int: int, /) -> None:
    """Accept a number of threads between ops and ignore it: ops run one at a time."""
    _check_size(int)
    if int <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")


def get_num_interop_threads() -> int:
    """Return 1: ops run one at a time."""
    return 1
