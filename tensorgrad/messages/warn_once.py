"""Warnings that come once in a process, as PyTorch gives them."""
from __future__ import annotations

import sys
import warnings


class Warned(set[str]):
    """The warnings that were given; `always` gives them again (set_warn_always)."""

    always = False


WARNED = Warned()


def warn(message: str, kind: str = "", again: bool = False, category: type[Warning] = UserWarning) -> None:
    """Warn once per process, as PyTorch does, and name the program's line, whatever frames of ours are in between.
    Messages of one `kind` count as one; `again` gives the warning each time."""
    if (kind or message) in WARNED and not WARNED.always and not again:
        return
    WARNED.add(kind or message)
    level, frame, own = 1, sys._getframe(), __name__.partition(".")[0]
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == own:
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=level)
