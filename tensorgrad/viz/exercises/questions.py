"""Questions of exercises, as pages and grading receive them."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .mistakes import Shown
from .sheet import Line

LEVELS = {"number": "The number", "rule": "The rule", "whole": "The whole backward",
          "wrong": "Which gradient is wrong?"}
FORMAT, VERSION = "tensorgrad exercise", 1         # of files that are handed in


class Question(NamedTuple):
    """A question. `answer` holds the right numbers.

    For a rule, `answer` is a right formula; for a wrong backward, the index of the wrong line and the right sum.
    """

    key: str
    kind: str                           # "share", "total", "rule" or "wrong"
    line: Line
    answer: Any
    through: tuple[tuple[int, ...], ...] = ()       # the steps whose shares are added up; empty for all steps
    names: tuple[str, ...] = ()                     # letters of a rule, g first
    letters: dict[str, str] = {}                    # of a rule: {parameter of the op: letter}       # noqa: RUF012
    shown: Shown | None = None

    @property
    def parts(self) -> int:
        """Return the number of answers that it takes."""
        return 1 if self.kind == "rule" else 2 if self.kind == "wrong" else int(np.size(self.answer))


def check(level: Any, seed: Any) -> None:
    if level not in LEVELS:
        raise ValueError(f"level: one of {', '.join(map(repr, LEVELS))}, not {level!r:.60}")
    if type(seed) not in (int, str) or len(str(seed)) > 60:
        raise ValueError(f"seed: a whole number or a short word, not {seed!r:.80}")


__all__ = ["FORMAT", "LEVELS", "VERSION", "Question", "check"]
