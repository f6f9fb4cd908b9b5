"""The compiled part of the package, made from native/ on install; None where there was no C compiler, or it is older than its source.

With it comes the memory of large NumPy arrays, which is kept for the next ones when it is freed (native/memory.c): of the arrays that this thread makes
once the package is imported. `TENSORGRAD_MEMORY=system` leaves them with NumPy's own.
"""
import os
from importlib import import_module
from typing import Any

native: Any = None
SOURCE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "native")


def _newest(folder: str) -> float:
    return max((entry.stat().st_mtime for entry in os.scandir(folder) if entry.name.endswith((".inc", ".c", ".h"))), default=0.0)


try:
    _compiled = import_module("._compiled", __package__)
    if not os.path.isdir(SOURCE) or os.stat(_compiled.__file__).st_mtime >= _newest(SOURCE):
        native = _compiled
except ImportError:
    pass


def _use_memory() -> None:
    wanted = os.environ.get("TENSORGRAD_MEMORY", "")
    if wanted not in ("", "system"):
        raise ImportError(f"TENSORGRAD_MEMORY is {wanted!r}: it may be 'system' or nothing")
    if native is not None and not wanted:
        from numpy._core import _multiarray_umath
        native.use_memory(_multiarray_umath._ARRAY_API)


def empty_memory() -> int:
    """Give memory that is kept for arrays to come back to the system; how many bytes. (On CUDA: `torch.cuda.empty_cache`.)"""
    return native.empty_memory() if native is not None else 0  # type: ignore[no-any-return]


_use_memory()
