"""How many threads compute: those of the compiled kernels' pool, or, without these, BLAS's. https://pytorch.org/docs → torch.set_num_threads"""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from ._native import native

PREFIXES, SUFFIXES = ("scipy_openblas", "openblas"), ("64_", "", "_64")


@cache
def _openblas() -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    """(set, get) of the OpenBLAS that came with NumPy; None if NumPy uses another BLAS."""
    import ctypes
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
                    return (getattr(library, f"{prefix}_set_num_threads{suffix}"), getattr(library, f"{prefix}_get_num_threads{suffix}"))
    return None


def _default() -> int:
    """As many as this process may use, unless the variables that BLAS heeds say otherwise."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        if (number := os.environ.get(name, "")).isdigit() and int(number):
            return int(number)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _alone() -> None:
    """One thread for BLAS, now that the pool of the compiled kernels has started: two pools would wait for each other's cores."""
    if (blas := _openblas()) is not None:
        blas[0](1)


@contextmanager
def single_blas() -> Iterator[None]:
    """One thread for BLAS, for the length of a `with` block: several threads of ours call it."""
    blas = _openblas()
    before = blas[1]() if blas is not None else 1
    if before > 1:
        blas[0](1)          # type: ignore[index]
    try:
        yield
    finally:
        if before > 1:
            blas[0](before) # type: ignore[index]


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
    if (native is None or not native.started()) and (blas := _openblas()) is not None:
        blas[0](int)


def get_num_threads() -> int:
    """How many threads matrix products use."""
    if native is None and (blas := _openblas()) is not None:
        return blas[1]()  # type: ignore[no-any-return]
    return _count


def set_num_interop_threads(int: int, /) -> None:
    """Nothing here runs side by side: the number is accepted and not used."""
    if int <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")


def get_num_interop_threads() -> int:
    """One: nothing here runs side by side."""
    return 1
