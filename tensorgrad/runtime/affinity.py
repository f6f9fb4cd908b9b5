"""CPU affinity of helper threads, BLAS's and ours, where the native pool is not used (native/pool.c sets that of its threads).

A system may wake a thread on the processor of the thread that waits for it, and leave it there for seconds, even if
other processors are free: then two threads take up to ten times longer than one. So helpers are kept off their caller's
processor, unless there are fewer others than helpers. The affinity of the caller is not changed; when it moves, helpers
are moved, too.
"""
from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from operator import call
from typing import Any

import numpy as np

from . import threads
from .blas import open_blas
from .native import native


def _current() -> Callable[[], int] | None:
    """Return a function that returns this thread's processor.

    None where affinity cannot be set, and where the native pool moves its threads itself.
    """
    if native is not None or not hasattr(os, "sched_setaffinity"):
        return None
    try:
        import ctypes
        return ctypes.PyDLL(None).sched_getcpu
    except (ImportError, OSError, AttributeError):
        return None


current = _current()


class Helpers:
    """Helper threads.

    `count()` is their number, None if they cannot be moved now; `move(count, places)` sets their processors.
    """

    def __init__(self, count: Callable[[], int | None], move: Callable[[int, set[int]], None]) -> None:
        self.count, self.move = count, move
        self.told: Any = None           # the processor to keep off and the wanted number of threads, at the last move; None: move again

    def keep_off(self) -> None:
        """Let them run on any processor but the one that this thread is on."""
        if current is None or (now := (current(), threads.wanted)) == self.told or (count := self.count()) is None:
            return
        allowed = os.sched_getaffinity(0)
        others = allowed - {now[0]}
        self.told = now                 # set before the move: a thread that registers meanwhile resets it to None
        self.move(count, others if len(others) >= count else allowed)


numbers: list[int] = []             # native ids of our threads


def _move_ours(count: int, places: set[int]) -> None:
    for number in numbers:
        with suppress(OSError):     # the thread has ended
            os.sched_setaffinity(number, places)


def help_others() -> None:
    """Register the calling thread as a helper."""
    numbers.append(threading.get_native_id())
    ours.told = None


@cache
def _functions() -> tuple[Any, Any] | None:
    """Return OpenBLAS's functions that start its threads, if needed, and set one thread's affinity; or None."""
    if (blas := open_blas()) is None or sys.byteorder != "little":
        return None
    import ctypes
    library = ctypes.PyDLL(None, handle=blas.library._handle)
    place = getattr(library, "openblas_setaffinity", None)
    return place and (getattr(library, "blas_thread_init", _common_work), place)


def _common_work() -> None:
    """Run a product that OpenBLAS's threads share, to start them if there is no function for that."""
    square = np.ones((256, 256), np.float32)
    np.matmul(square, square)


def _blas_helpers() -> int | None:
    return None if threads.single_blas.blocks else threads.get_num_threads() - 1


def _move_blas(count: int, places: set[int]) -> None:
    if count and (functions := _functions()) is not None:
        start, place = functions
        mask = sum(1 << processor for processor in places).to_bytes(max(128, max(places) // 64 * 8 + 8), "little")
        mine = os.sched_getaffinity(0)
        # All in one call that holds the interpreter's lock: a fork in between would end these threads.
        [*map(call, [start, *(partial(place, i, len(mask), mask) for i in range(count))])]
        os.sched_setaffinity(0, mine)       # the last of BLAS's threads is the caller, which was moved, too, if there are fewer threads by now


ours, blas = Helpers(lambda: min(len(numbers), threads.wanted - 1), _move_ours), Helpers(_blas_helpers, _move_blas)


def _forked(child: bool) -> None:
    """Reset the state: a child has none of our threads, and BLAS restarts its threads in both processes."""
    ours.told = blas.told = None
    if child:
        numbers.clear()


if current is not None:
    os.register_at_fork(after_in_parent=partial(_forked, False), after_in_child=partial(_forked, True))
