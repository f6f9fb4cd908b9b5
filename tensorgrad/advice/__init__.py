"""Advice that errors add to PyTorch's message: the line of the program that caused it, and the command that shows it.

Advice is computed after an error is raised, from the running frames and the program's source. Two facts are recorded
earlier, because they cannot be found later: the line that ran backward and freed the tape (once for each backward), and
the line that wrote in place to a tensor that autograd knows.
"""
from __future__ import annotations

from typing import TypeVar

from .places import NOTED, offers, went_back, wrote

Error = TypeVar("Error", bound=BaseException)


def advised(error: Error, advice: str, *facts: object) -> Error:
    """Return the error, with the lines of the function `advice` of `texts` added to its message, if it finds any."""
    try:
        from . import texts
        lines: list[str] = getattr(texts, advice)(*facts)
    except Exception:           # a failure to advise must not hide the error itself
        return error
    if lines and len(error.args) == 1:
        error.args = ("\n".join([str(error.args[0]), *lines]),)
    return error


def noted(error: Exception) -> None:
    """Add a note to an error that came out of a hook or of a Function of the program: which, and which line led there. The message stays what it is."""
    try:
        from . import texts
        lines = [line for line in texts.of_trace(error.__traceback__) if line not in str(error) and line not in getattr(error, "__notes__", ())]
    except Exception:
        return
    for line in lines:
        error.add_note(line)


def misfit(message: str, kind: type[Error] = RuntimeError) -> Error:  # type: ignore[assignment]
    """The error for shapes that do not go together."""
    return advised(kind(message), "of_shapes")


__all__ = ["NOTED", "advised", "misfit", "noted", "offers", "went_back", "wrote"]
