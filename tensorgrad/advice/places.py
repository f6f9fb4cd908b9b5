"""Notes on places in the program, for errors that come later: which line went back along the tape, and which line wrote
in place.

A note is a code object and the place in it: no frame is kept, and no variable lives longer.
"""
from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from os.path import dirname, sep
from typing import Any, NamedTuple

PACKAGE = dirname(dirname(__file__)) + sep
INSIDE = (PACKAGE, "<frozen")
RECALLED = 256      # how many backwards, and how many writes, are recalled

# functions (step) → its file, line and expression, where somebody noted them
NOTED: list[Callable[[Any], tuple[str, int, str] | None]] = []


class Way(NamedTuple):
    """A backward that freed what it went through: steps that were made from `oldest` to `newest`, and nothing that was
    made after `date`.
    """

    date: int
    oldest: int
    newest: int
    code: Any
    instruction: int


class Write(NamedTuple):
    """Writes in place that were dated from `first` to `last`."""

    first: int
    last: int
    code: Any
    instruction: int


# the fields of a Way, of a Write: tuples are made in a tenth of the time
WAYS: deque[tuple[Any, ...]] = deque(maxlen=RECALLED)
WRITES: deque[tuple[Any, ...]] = deque(maxlen=RECALLED)


def went_back(order: Any, date: int, depth: int = 4) -> None:
    """Note that a backward freed the steps of `order`, the latest of which comes first.

    The program is `depth` frames up, or more.
    """
    # frames are dear: those of `sweep` and of `engine.backward` are left out
    frame: Any = sys._getframe(depth)
    while (code := frame.f_code).co_filename.startswith(PACKAGE) and frame.f_back is not None:
        frame = frame.f_back
    WAYS.append((date, order[-1].time, order[0].time, code, frame.f_lasti))


def wrote(first: int, last: int) -> None:
    """Note the writes in place that were dated from `first` to `last`."""
    frame: Any = sys._getframe(3)
    while (code := frame.f_code).co_filename.startswith(PACKAGE) and frame.f_back is not None:
        frame = frame.f_back
    WRITES.append((first, last, code, frame.f_lasti))


class Offers:
    """Switches of advice. `command` is off while `python -m tensorgrad.viz` runs, which draws the error anyway."""

    command = True


offers = Offers()
