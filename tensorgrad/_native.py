"""The compiled part of the package, made from native/ on install; None where there was no C compiler, or it is older than its source.

With it comes the memory of the package's large arrays, which is kept for the next ones when it is freed (native/memory.c); a program's own arrays, and all
others without the compiled part, come from the system. With `TENSORGRAD_MEMORY=system` the package's do, too. `TENSORGRAD_INSTRUCTIONS` (AVX-512, AVX2 or
baseline) names the best instructions to use where the processor has them. With `TENSORGRAD_PURE=1`, and on free-threaded Python, there is no compiled part,
installed or not.
"""
import os
import sys
from importlib import import_module
from typing import Any

native: Any = None
SOURCE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "native")


def _newest(folder: str) -> float:
    return max((entry.stat().st_mtime for entry in os.scandir(folder) if entry.name.endswith((".inc", ".c", ".h", ".rows"))), default=0.0)


def _setting(name: str, *values: str) -> str:
    """Return an environment variable's value, which must be one of `values` or empty. Raises ImportError for others."""
    if (found := os.environ.get(name, "")) not in ("", *values):
        raise ImportError(f"{name} is {found!r}: it may be {', '.join(map(repr, values))} or nothing")
    return found


_setting("TENSORGRAD_INSTRUCTIONS", "AVX-512", "AVX2", "baseline")           # read by native/module.c
try:
    if os.environ.get("TENSORGRAD_PURE", "0") not in ("", "0") or "free-threading" in sys.version:     # its objects have another memory layout
        raise ImportError
    _compiled = import_module("._compiled", __package__)
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
    """Give memory that is kept for arrays to come back to the system; how many bytes, if it is known. (On CUDA: `torch.cuda.empty_cache`.)"""
    return 0 if native is None else native.empty_memory()  # type: ignore[no-any-return]


_use_memory()
