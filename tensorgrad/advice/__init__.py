"""What an error says after PyTorch's message: the line of the program that caused it, and the command that shows it.

All of it is found once an error is raised, from the frames that are running and from the program's source. Two things are noted before, since nothing else
tells of them later: which line went back along the tape and freed it (once for each backward), and which line wrote in place to a tensor that autograd knows.
"""
from __future__ import annotations

from typing import TypeVar

from .places import NOTED, offers, went_back, wrote

Error = TypeVar("Error", bound=BaseException)


def advised(error: Error, advice: str, *facts: object) -> Error:
    """The error, with lines that help after its message: those that the function `advice` of `texts` finds. Nothing goes wrong if it finds none."""
    try:
        from . import texts
        lines: list[str] = getattr(texts, advice)(*facts)
    except Exception:           # whatever a program's source, classes and variables are like: the error itself comes first
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
