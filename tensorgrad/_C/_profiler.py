"""Tracebacks and parts of the profiler, under the names of PyTorch's compiled module `torch._C._profiler`.

>>> from tensorgrad._C import _profiler
>>> [frames] = _profiler.symbolize_tracebacks([_profiler.gather_traceback()])
>>> sorted(frames[0])
['filename', 'line', 'name']
"""
from __future__ import annotations

import sys
from typing import Any

from ..autograd.profiler import _ExperimentalConfig, _RecordFunctionFast, _set_fwd_bwd_enabled_val

__all__ = ["_ExperimentalConfig", "_RecordFunctionFast", "_set_fwd_bwd_enabled_val", "gather_traceback",
           "symbolize_tracebacks"]


def gather_traceback(python: bool = True, script: bool = True, cpp: bool = True) -> Any:
    """Return the stack of the caller, for `symbolize_tracebacks`; only Python's frames are known."""
    frame, found = sys._getframe(1), []
    while python and frame is not None:
        found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(found)


def symbolize_tracebacks(tracebacks: Any) -> list[list[dict[str, Any]]]:
    """Return the frames of tracebacks, the innermost first, with their names, files and lines."""
    return [[{"name": code.co_name, "filename": code.co_filename, "line": line} for code, line in traceback]
            for traceback in tracebacks]
