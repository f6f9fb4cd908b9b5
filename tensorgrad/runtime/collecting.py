"""Pauses of Python's garbage collector."""
from __future__ import annotations

import gc
from typing import Any


class Paused:
    """Let no garbage be collected until the block ends: for blocks that make many objects which stay.

    Collections would look through them all, several times. None of the program's finalizers and callbacks runs
    meanwhile.
    """

    def __enter__(self) -> None:
        self.before = gc.isenabled()
        gc.disable()

    def __exit__(self, *error: Any) -> None:
        if self.before:
            gc.enable()
