"""The OpenBLAS that came with NumPy: access to it, and how long its idle threads busy-wait for work.

By default they do so for 30 ms and more, and keep processors busy: two threads of ours are no faster than one
meanwhile. With OPENBLAS_THREAD_TIMEOUT at 23 or less they sleep after one or two milliseconds. OpenBLAS reads the
variable when NumPy loads it: if this package is the first to import NumPy, and the program has not set the variable, we
set it to 22 during that import.
"""
from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

PREFIXES, SUFFIXES = ("scipy_openblas", "openblas"), ("64_", "", "_64")
TIMEOUT = "OPENBLAS_THREAD_TIMEOUT"     # its idle threads busy-wait for 2 to this power cycles
WATCH = "22"
SHORT = 23                              # up to this, busy-waiting costs us nothing measurable


def _load_numpy() -> bool:
    """Import NumPy, and return True if idle threads of its BLAS will busy-wait for long."""
    wanted = os.environ.get(TIMEOUT)
    if wanted is None and "numpy" not in sys.modules:
        os.environ[TIMEOUT] = WATCH
        try:
            import numpy  # noqa: F401
        finally:
            del os.environ[TIMEOUT]
        return False
    return wanted is None or not wanted.isdigit() or int(wanted) > SHORT


_watches_long = _load_numpy()


def _settle() -> None:
    """Make OpenBLAS reserve its working memory now: later, without free addresses, it would end the process."""
    from numpy.linalg import solve
    solve([[1.0]], [1.0])


_settle()


class OpenBlas(NamedTuple):
    library: Any
    set: Callable[[int], Any]
    get: Callable[[], int]
    core: str           # the kind of processors that its kernels are for


@cache
def open_blas() -> OpenBlas | None:
    """The OpenBLAS that came with NumPy, with its functions for the number of threads; None if NumPy uses another BLAS,
    or it cannot be loaded.
    """
    try:
        import ctypes
    except ImportError:             # a Python that was built without it
        return None
    from pathlib import Path

    import numpy
    package = Path(numpy.__path__[0])
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
                    return OpenBlas(library,
                                    *(getattr(library, f"{prefix}_{verb}_num_threads{suffix}")
                                      for verb in ("set", "get")), core)
    return None


def blas_name() -> str:
    """The BLAS that NumPy computes with."""
    blas = open_blas()
    return "not OpenBLAS" if blas is None else f"OpenBLAS for {blas.core}"


def addresses() -> tuple[int, int]:
    """Return the addresses of OpenBLAS's functions that set and get its number of threads; (0, 0) without it."""
    if (blas := open_blas()) is None:
        return 0, 0
    import ctypes
    set_, get = (ctypes.cast(function, ctypes.c_void_p).value or 0 for function in (blas.set, blas.get))
    return set_, get


def watches_long() -> bool:
    """Return True if OpenBLAS's threads busy-wait for long after their last work."""
    return _watches_long and open_blas() is not None
