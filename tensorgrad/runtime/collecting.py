"""Pauses of Python's garbage collector."""
from __future__ import annotations

import gc
from typing import Any


class Paused:
    """Pause the garbage collector until the block ends: for blocks that make many objects which stay alive.

    Collections would visit all of them several times. The program's finalizers and callbacks do not run in the block.
    """

    def __enter__(self) -> None:
        self.before = gc.isenabled()
        gc.disable()

    def __exit__(self, *error: Any) -> None:
        if self.before:
            gc.enable()
