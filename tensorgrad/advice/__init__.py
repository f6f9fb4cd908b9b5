"""Advice that errors carry as notes: the line of the program that caused it, and the command that shows it.

The message stays PyTorch's, letter by letter, so that programs which print or compare it see no difference. Tracebacks
show notes below it. Advice is computed after an error is raised, from the running frames and the program's source. Two
facts are recorded
earlier, because they cannot be found later: the line that ran backward and freed the tape (once for each backward), and
the line that wrote in place to a tensor that autograd knows.
"""
from __future__ import annotations

from typing import TypeVar

from .places import NOTED, offers, went_back, wrote

Error = TypeVar("Error", bound=BaseException)


def advised(error: Error, advice: str, *facts: object) -> Error:
    """Return the error, with the lines that the function `advice` of `texts` finds as notes."""
    try:
        from . import texts
        for line in getattr(texts, advice)(*facts):
            error.add_note(line)
    except Exception:           # a failure to advise must not hide the error itself
        pass
    return error


def noted(error: Exception) -> None:
    """Add notes to an error that came out of a hook or of a Function of the program: which, and which line led
    there.
    """
    try:
        from . import texts
        for line in texts.of_trace(error.__traceback__):
            if line not in getattr(error, "__notes__", ()):
                error.add_note(line)
    except Exception:
        pass


def misfit(message: str, kind: type[Error] = RuntimeError) -> Error:  # type: ignore[assignment]
    """The error for shapes that do not go together."""
    return advised(kind(message), "of_shapes")


__all__ = ["NOTED", "advised", "misfit", "noted", "offers", "went_back", "wrote"]
