"""Tracebacks as values (PyTorch: ``torch.utils._traceback``).

>>> from tensorgrad.utils._traceback import CapturedTraceback
>>> def here():
...     return CapturedTraceback.extract()
>>> "in here" in here().format()[-1]
True
"""
from __future__ import annotations

import contextlib
import linecache
import os
import sys
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import Any

__all__ = ["CapturedTraceback", "format_frame", "format_traceback_short", "report_compile_source_on_error",
           "shorten_filename"]


def shorten_filename(fn: str, *, base: str | None = None) -> str:
    """Return a file's name without the folders that it shares with this package, or with `base`."""
    base = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) if base is None else base
    try:
        common = os.path.commonpath([base, fn])
    except ValueError:          # names that are relative, or of another drive
        return fn
    return fn[len(common) + 1:] if common else fn


def format_frame(frame: Any, *, base: str | None = None, line: bool = False) -> str:
    """Return `file:line in function` for a frame's summary, after its text if `line` is set."""
    text = f"{frame.line}  # " if line else ""
    return f"{text}{shorten_filename(frame.filename, base=base)}:{frame.lineno} in {frame.name}"


def format_traceback_short(tb: TracebackType | None) -> str:
    """Return the innermost frame of a traceback in a line."""
    return format_frame(traceback.extract_tb(tb)[-1])


class CapturedTraceback:
    """The stack of a call of `extract`; source lines are read on first use."""

    __slots__ = ("_frames", "_skip")

    def __init__(self, frames: Any, skip: int = 0) -> None:
        self._frames, self._skip = frames, skip

    @staticmethod
    def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """Return the calls, without the innermost `skip`. script, cpp: accepted; all frames are Python's."""
        frames = traceback.walk_stack(sys._getframe(1))
        return CapturedTraceback(traceback.StackSummary.extract(frames, lookup_lines=False), skip)

    def summary(self) -> traceback.StackSummary:
        """Return the calls, the outermost first."""
        return traceback.StackSummary.from_list(list(reversed(self._frames[self._skip:])))

    def format(self) -> list[str]:
        """Return the lines of a printed traceback."""
        return traceback.format_list(self.summary())

    @staticmethod
    def format_all(tbs: list[CapturedTraceback | None]) -> list[list[str]]:
        """Return the lines of several; an empty list for None."""
        return [[] if captured is None else captured.format() for captured in tbs]

    def cleanup(self) -> None:
        """Forget the calls."""
        self._frames = []


@contextlib.contextmanager
def report_compile_source_on_error() -> Iterator[None]:
    """Let tracebacks of errors show the source of functions that were made by `exec`: a text `__compile_source__` among
    their globals."""
    try:
        yield
    except Exception as error:
        tb = error.__traceback__
        while tb is not None:
            source = tb.tb_frame.f_globals.get("__compile_source__")
            name = tb.tb_frame.f_code.co_filename
            if isinstance(source, str) and not os.path.exists(name):
                linecache.cache[name] = len(source), None, source.splitlines(True), name
            tb = tb.tb_next
        raise
