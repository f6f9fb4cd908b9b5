"""The current line of the program, for errors and for the steps of a graph."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from ..storage.base import NoValues

# paths of code that is not the user's
OWN = (str(Path(__file__).parents[1]), str(Path(np.__file__).parent), "<frozen")


ours: dict[str, bool] = {}              # file → True if it belongs to OWN


def user_line() -> str:
    """Return the innermost file and line outside of this package: 'model.py:12'."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        own = ours.get(file)
        if own is None:
            own = ours[file] = file.startswith(OWN)
        if not own:
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


class ReadsValues(NoValues):
    """A program reads values that depend on its inputs, while only their shapes are known.

    `source` is the line that reads them.

    >>> import tensorgrad as torch
    >>> from tensorgrad.graph import ReadsValues, lower
    >>> try:
    ...     lower(lambda x: x + 1 if x.sum() > 0 else x, torch.ones(3))
    ... except ReadsValues as error:
    ...     print(error.what)
    a tensor that depends on the inputs is read
    """

    def __init__(self, what: str, source: str) -> None:
        RuntimeError.__init__(self, f"{source}: {what}: that needs values, and there are only shapes here")
        self.what, self.source = what, source


class CannotLower(RuntimeError):
    """A program does something that a graph of functions cannot express: `what`, at the line `source`."""

    def __init__(self, what: str, source: str) -> None:
        super().__init__(f"{source}: {what} cannot be part of a graph")
        self.what, self.source = what, source
