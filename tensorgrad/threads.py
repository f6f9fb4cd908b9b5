"""How many threads BLAS may use: the only ones that run here. https://pytorch.org/docs → torch.set_num_threads"""
from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

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


_asked: list[int] = []


def set_num_threads(int: int, /) -> None:
    """Let matrix products use this many threads, where NumPy's BLAS is OpenBLAS."""
    if int <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    _asked[:] = [int]
    blas = _openblas()
    if blas is not None:
        blas[0](int)


def get_num_threads() -> int:
    """How many threads matrix products use."""
    blas = _openblas()
    if blas is not None:
        return blas[1]()  # type: ignore[no-any-return]
    return _asked[0] if _asked else os.cpu_count() or 1


def set_num_interop_threads(int: int, /) -> None:
    """Nothing here runs side by side: the number is accepted and not used."""
    if int <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")


def get_num_interop_threads() -> int:
    """One: nothing here runs side by side."""
    return 1
