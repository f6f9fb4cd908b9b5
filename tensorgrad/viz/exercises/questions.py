"""What exercises ask, as they are handed to pages and to grading."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .mistakes import Shown
from .sheet import Line

LEVELS = {"number": "The number", "rule": "The rule", "whole": "The whole backward", "wrong": "Which gradient is wrong?"}
FORMAT, VERSION = "tensorgrad exercise", 1         # of files that are handed in


class Question(NamedTuple):
    """What is asked. `answer` are the right numbers; of a rule, a formula that is right; of a wrong backward, the line's place and the sum that is right."""

    key: str
    kind: str                           # "share", "total", "rule" or "wrong"
    line: Line
    answer: Any
    through: tuple[tuple[int, ...], ...] = ()       # the steps whose shares are added up; none: all that there are
    names: tuple[str, ...] = ()                     # letters of a rule, g first
    letters: dict[str, str] = {}                    # of a rule: {the op's own name of an input: the letter}       # noqa: RUF012
    shown: Shown | None = None

    @property
    def parts(self) -> int:
        """How many answers it takes."""
        return 1 if self.kind == "rule" else 2 if self.kind == "wrong" else int(np.size(self.answer))


def check(level: Any, seed: Any) -> None:
    if level not in LEVELS:
        raise ValueError(f"level: one of {', '.join(map(repr, LEVELS))}, not {level!r:.60}")
    if type(seed) not in (int, str) or len(str(seed)) > 60:
        raise ValueError(f"seed: a whole number or a short word, not {seed!r:.80}")


__all__ = ["FORMAT", "LEVELS", "VERSION", "Question", "check"]
