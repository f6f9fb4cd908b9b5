"""The compiled part of the package, built from native/ on install; None if there was no C compiler, or if it is older
than its source.

The module also caches the memory of the package's large arrays (native/memory.c); arrays of the program itself, and all
arrays without the compiled part, come from the system. So do the package's arrays with `TENSORGRAD_MEMORY=system`.
`TENSORGRAD_INSTRUCTIONS` (AVX-512, AVX2 or baseline) names the best instructions to use if the processor has them.
`TENSORGRAD_PURE=1`, or free-threaded Python, turns the compiled part off.
"""
import os
import sys
from importlib import import_module
from typing import Any

native: Any = None
SOURCE = os.path.join(os.path.dirname(__file__), "..", "..", "native")


def _newest(folder: str) -> float:
    return max((entry.stat().st_mtime for entry in os.scandir(folder)
                if entry.name.endswith((".inc", ".c", ".h", ".rows"))), default=0.0)


def _setting(name: str, *values: str) -> str:
    """Return an environment variable's value, which must be one of `values` or empty. Raises ImportError for others."""
    if (found := os.environ.get(name, "")) not in ("", *values):
        raise ImportError(f"{name} is {found!r}: it may be {', '.join(map(repr, values))} or nothing")
    return found


_setting("TENSORGRAD_INSTRUCTIONS", "AVX-512", "AVX2", "baseline")           # read by native/module.c
try:
    # its objects have another memory layout
    if os.environ.get("TENSORGRAD_PURE", "0") not in ("", "0") or "free-threading" in sys.version:
        raise ImportError
    _compiled = import_module("tensorgrad._compiled")
    if not os.path.isdir(SOURCE) or os.stat(_compiled.__file__).st_mtime >= _newest(SOURCE):
        native = _compiled
except ImportError:
    pass


def _use_memory() -> None:
    if native is not None:
        native.use_arrays()
    if not _setting("TENSORGRAD_MEMORY", "system") and native is not None:
        native.use_memory()


def empty_memory() -> int:
    """Return cached memory of freed arrays to the system; return its bytes, if known.

    (On CUDA: `torch.cuda.empty_cache`.)
    """
    return 0 if native is None else native.empty_memory()  # type: ignore[no-any-return]


_use_memory()
