"""The OpenBLAS that came with NumPy: the way to it, and how long its threads look out for work after their last.

That is 30 ms and more, as it comes, in which they hold a processor that other threads compute on: two threads of ours are no faster than one then. So they
are told to sleep after one or two: by OPENBLAS_THREAD_TIMEOUT, which OpenBLAS reads when NumPy loads it, so that this module is the package's first to do so;
or, if NumPy is there before the package, by a function that not all builds of OpenBLAS show (NumPy 2.5's does not). Who sets the variable decides.
"""
from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

PREFIXES, SUFFIXES = ("scipy_openblas", "openblas"), ("64_", "", "_64")
TIMEOUT = "OPENBLAS_THREAD_TIMEOUT"     # its threads look out for work for 2 to this power cycles
WATCH = "22"
SHORT = 23                              # up to this, they are no hindrance


class OpenBlas(NamedTuple):
    library: Any
    set: Callable[[int], Any]
    get: Callable[[], int]
    core: str           # the kind of processors that its kernels are for


@cache
def open_blas() -> OpenBlas | None:
    """The OpenBLAS that came with NumPy, with its functions for the number of threads; None if NumPy uses another BLAS, or there is no way to reach it."""
    try:
        import ctypes
    except ImportError:             # a Python that was built without it
        return None
    from pathlib import Path
    package = Path(sys.modules["numpy"].__path__[0])
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
    blas = open_blas()
    return "not OpenBLAS" if blas is None else f"OpenBLAS for {blas.core}"


def _load_numpy() -> bool:
    """Import NumPy; whether threads of its BLAS will look out for work for long."""
    wanted = os.environ.get(TIMEOUT)
    if wanted is None and "numpy" not in sys.modules:
        os.environ[TIMEOUT] = WATCH
        try:
            import numpy  # noqa: F401
        finally:
            del os.environ[TIMEOUT]
        return False
    import numpy  # noqa: F401
    if open_blas() is None:
        return False
    return not _shorten_watch() if wanted is None else not wanted.isdigit() or int(wanted) > SHORT


def _shorten_watch() -> bool:
    """Tell OpenBLAS that is loaded already: its threads are ended and begin anew with their next work, so only while nobody else can be using them."""
    if not hasattr(os, "fork") or threading.active_count() > 1 or (blas := open_blas()) is None:
        return False
    try:
        again, end = blas.library.openblas_read_env, blas.library.blas_thread_shutdown_
    except AttributeError:
        return False
    os.environ[TIMEOUT] = WATCH
    again()
    del os.environ[TIMEOUT]
    end()
    return True


watches_long = _load_numpy()
