"""Ctrl-C: the first one lets a training finish its step and save, the second one ends it at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["interruptible"]


@contextmanager
def interruptible(trainer: Any) -> Iterator[None]:
    """Let the first interrupt set `trainer.interrupted`, and the next raise KeyboardInterrupt.

    Signals reach the main thread only; a program's own handler, or one that ignores interrupts, is kept.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return

    def interrupted(number: int, frame: Any) -> None:
        if trainer.interrupted:
            raise KeyboardInterrupt
        trainer.interrupted = True

    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
