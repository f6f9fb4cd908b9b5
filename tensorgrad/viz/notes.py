"""Notes on the making of steps, while somebody watches: the line of the program, and the module that was running."""
from __future__ import annotations

import linecache
import sys
from functools import lru_cache
from itertools import islice
from os.path import dirname
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ..advice import NOTED

PACKAGE = dirname(dirname(__file__))
INSIDE = ("<frozen", PACKAGE)


class Note(NamedTuple):
    """A note on the making of one step."""

    watch: int
    file: str
    line: int
    group: tuple[str, ...] | None         # None: as modules were called
    calls: tuple[int, ...]
    code: Any
    instruction: int

    def source(self) -> tuple[str, int, str]:
        """File and line of the program, and the expression there."""
        return self.file, self.line, expression(self.code, self.instruction, self.file, self.line)


NOTES: WeakKeyDictionary[Any, Note] = WeakKeyDictionary()
# of the parameters of a module that is watched, by their places on the tape
NAMES: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
# of modules that ran while somebody watched: for parameters that have no other name
OTHERS: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
# for the messages of errors
NOTED.append(lambda step: note.source() if (note := NOTES.get(step)) is not None else None)


def place() -> Any:
    """The frame of the program, outside of this package, that is running."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(INSIDE):
        frame = frame.f_back
    return frame


@lru_cache(maxsize=4096)
def expression(code: Any, instruction: int, file: str, line: int) -> str:
    """The expression that an instruction of the program computes, as it is written."""
    first, last, start, end = next(islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    if None in (first, last, start, end):
        return linecache.getline(file, line).strip()
    lines = [linecache.getline(file, n).encode() for n in range(first, last + 1)] or [b""]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    return b" ".join(part.strip() for part in lines).decode(errors="replace")
