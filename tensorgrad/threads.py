"""How many threads compute: those of the compiled kernels' pool, or, without these, BLAS's. https://pytorch.org/docs → torch.set_num_threads"""
from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ._native import native

PREFIXES, SUFFIXES = ("scipy_openblas", "openblas"), ("64_", "", "_64")
WATCH = 22                              # BLAS's threads look out for work for 2 to this power cycles after their last


class OpenBlas(NamedTuple):
    library: Any
    set: Callable[[int], Any]
    get: Callable[[], int]
    core: str           # the kind of processors that its kernels are for


@cache
def _openblas() -> OpenBlas | None:
    """The OpenBLAS that came with NumPy, with its functions for the number of threads; None if NumPy uses another BLAS, or there is no way to reach it."""
    try:
        import ctypes
    except ImportError:             # a Python that was built without it
        return None
    from pathlib import Path
    package = Path(np.__file__).parent
    for path in [*(package.parent / "numpy.libs").glob("*openblas*"), *(package / ".dylibs").glob("*openblas*")]:
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        for prefix in PREFIXES:
            for suffix in SUFFIXES:
                if hasattr(library, f"{prefix}_set_num_threads{suffix}"):
                    core = "an unknown processor"
                    if (name := getattr(library, f"{prefix}_get_corename{suffix}", None)) is not None:
                        name.restype = ctypes.c_char_p
                        core = name().decode()
                    return OpenBlas(library, *(getattr(library, f"{prefix}_{verb}_num_threads{suffix}") for verb in ("set", "get")), core)
    return None


def blas_name() -> str:
    """The BLAS that NumPy computes with."""
    blas = _openblas()
    return "not OpenBLAS" if blas is None else f"OpenBLAS for {blas.core}"


def _shorten_watch() -> None:
    """Let threads of BLAS sleep one or two milliseconds after their last work, not a hundred: until then they hold a processor that other threads compute on.

    OpenBLAS reads how long when it loads, so its threads are ended and begin anew with their next work: only done while nobody else can be using them.
    """
    name = "OPENBLAS_THREAD_TIMEOUT"
    if name in os.environ or not hasattr(os, "fork") or threading.active_count() > 1 or (blas := _openblas()) is None:
        return
    try:
        again, end = blas.library.openblas_read_env, blas.library.blas_thread_shutdown_
    except AttributeError:
        return
    os.environ[name] = str(WATCH)
    again()
    del os.environ[name]
    end()


def _default() -> int:
    """As many as this process may use, unless the variables that BLAS heeds say otherwise."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        if (number := os.environ.get(name, "")).isdigit() and int(number):
            return int(number)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _alone() -> None:
    """One thread for BLAS, now that the pool of the compiled kernels has started: two pools would wait for each other's cores."""
    if (blas := _openblas()) is not None:
        blas.set(1)


class Single:
    """One thread for BLAS, for the length of a `with` block: several threads of ours call it. Blocks may overlap."""

    def __init__(self) -> None:
        self.lock, self.blocks, self.before = threading.Lock(), 0, 0         # before: how many threads BLAS will have again

    def __enter__(self) -> None:
        with self.lock:
            if not self.blocks and (blas := _openblas()) is not None and (before := blas.get()) > 1:
                blas.set(1)
                self.before = before
            self.blocks += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.blocks -= 1
            if not self.blocks and self.before and (blas := _openblas()) is not None:
                blas.set(self.before)
                self.before = 0

    def forget(self) -> None:
        """In a child process: the threads whose blocks these were are not there."""
        self.lock = threading.Lock()
        if self.blocks:
            self.blocks = 1
            self.__exit__()


single_blas = Single()


_shorten_watch()
_count = _default()
if native is not None:
    native.set_threads(_count)
    native.when_started(_alone)


def set_num_threads(int: int, /) -> None:
    """Let matrix products, and all loops of the compiled kernels, use this many threads."""
    global _count
    if not hasattr(int, "__index__"):
        raise RuntimeError(f"set_num_threads expects an int, but got {type(int).__name__}")
    if int <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    _count = int
    if native is not None:
        native.set_threads(int)
    if single_blas.before:
        single_blas.before = int
    elif (native is None or not native.started()) and (blas := _openblas()) is not None:
        blas.set(int)


def get_num_threads() -> int:
    """How many threads matrix products use."""
    if native is None and (blas := _openblas()) is not None:
        return single_blas.before or blas.get()
    return _count


def set_num_interop_threads(int: int, /) -> None:
    """Nothing here runs side by side: the number is accepted and not used."""
    if int <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")


def get_num_interop_threads() -> int:
    """One: nothing here runs side by side."""
    return 1
