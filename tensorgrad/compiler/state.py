"""The trace that a thread runs, and reasons for eager calls. Imports little, for `torch.compiler.is_compiling()`."""
from __future__ import annotations

import threading
from typing import Any


class State(threading.local):
    """The state of one thread."""

    trace: Any = None           # the trace that runs
    exporting = False           # True while torch.export records a program
    eager = 0                   # the number of compiled functions that run eagerly in this thread, one in another


class Reason:
    """Why a call runs eagerly: a text, the line of the program, and True if a graph cannot hold the program (PyTorch
    breaks it there).
    """

    __slots__ = ("text", "source", "breaks")

    def __init__(self, text: str, source: str = "", breaks: bool = False) -> None:
        self.text, self.source, self.breaks = text, source, breaks

    def __str__(self) -> str:
        return f"{self.text}, at {self.source}" if self.source else self.text


class Stopped(BaseException):
    """Ends a trace at something that graphs cannot do, before the program does it; programs do not catch it."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


state = State()
