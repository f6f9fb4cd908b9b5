"""An exercise: questions about a backward, made from a level and a seed, and made again in the same way when answers
are marked.
"""
from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from ..explained_graph import framed
from ..program import program
from .marking import marked
from .mistakes import mistaken, order
from .page import page
from .questions import LEVELS, Question, check
from .rules import Rules
from .sheet import Line, lines

MOST, BLANKS = 12, 12                  # questions on a page; elements of a tensor with a blank for each
# gradients that backwards with a mistake start from; different ones, as comparing would reveal it
TIMES = (1, -2, 3)
STEPS = 60                             # of the longest program whose whole backward is asked for
_made: list[list[Exercise]] = []       # lists of the open `gathered` blocks


class Exercise:
    """Questions about the backward of an explanation, as `viz.exercise` and `Explanation.exercise` make them.

    Shows itself in Jupyter.

    `questions` lists the questions, `level` and `seed` say how it was made, `fingerprint` identifies it. ValueError for
    a program that has no question of this level, or whose steps a page cannot compute.
    """

    def __init__(self, explanation: Any, level: str = "number", seed: int | str = 0, made: str = "program") -> None:
        check(level, seed)
        self.explanation, self.level, self.seed, self.made = explanation, level, seed, made
        self.program = program(explanation)
        if not self.program["able"]:
            raise ValueError(f"there is no exercise about this program, as its page could not check answers: "
                             f"{self.program['why']}")
        for step in self.program["steps"]:
            step["rules"] = []          # hide the rules from the page
        random = Random(f"tensorgrad questions 1, {level}, {seed}")
        self.lines = lines(explanation)
        self.questions: list[Question] = list(getattr(self,
                                                      f"ask_{level}")(
                                                          lambda choices: choices[int(random.random() * len(choices))]))
        if not self.questions:
            raise ValueError(f"this program has no question of the level {level!r}: its steps are too large, or have "
                             f"no rule that fits into a line")
        for gathering in _made:
            gathering.append(self)

    def __repr__(self) -> str:
        count = len(self.questions)
        return (f'<Exercise "{self.level}", seed {self.seed}, about {self.explanation.name}: {count} '
                f'question{"s" if count != 1 else ""}>')

    @property
    def title(self) -> str:
        return f"{LEVELS[self.level]} – backprop of {self.explanation.name}"

    @property
    def fingerprint(self) -> str:
        """Return a hash of the level, seed, program, numbers to six digits, and questions."""
        leaves = [[leaf["name"], leaf["value"]["shape"], [f"{float(x):.6g}" for x in leaf["value"]["data"]]]
                  for leaf in self.program["leaves"]]
        steps = [[step["number"], step["op"], step["results"]] for step in self.program["steps"]]
        told = [self.level, str(self.seed), leaves, steps, [[q.key, q.kind, q.line.key] for q in self.questions]]
        if self.level == "wrong":       # the page knows the hash: it must not reveal the wrong line
            told[-1] = [q.key for q in self.questions]
        return sha256(json.dumps(told).encode()).hexdigest()[:24]

    def html(self) -> str:
        """Return the self-contained page."""
        return page(self)

    def save(self, path: Any) -> Path:
        """Write the page to a file; returns its path. ValueError if its name does not end in .html."""
        path = Path(path)
        if path.suffix != ".html":
            raise ValueError(f"an exercise is a page, which checks what is typed in: {str(path)!r} has to end in .html")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.html(), encoding="utf-8")
        return path

    def show(self) -> Path:
        """Open the page in the browser; return its path."""
        import tempfile
        import webbrowser
        path = self.save(Path(tempfile.mkdtemp(prefix="tensorgrad-"), "exercise.html"))
        webbrowser.open(path.as_uri())
        return path

    def grade(self, *files: Any) -> list[Any]:
        """Mark files that were handed in; return a list of `Marked`, each printed as a line of a table.

        Errors: OSError for a file that cannot be read.
        """
        return [marked(file, [self]) for file in files]

    def _repr_html_(self) -> str:
        return framed(self.html())

    # ── what is asked, by level ───────────────────────────────────────────────────────────────────────────────────────

    def asked(self, draw: Any, found: list[Any]) -> list[Any]:
        """Return at most MOST of `found`, chosen by `draw`, in their order."""
        chosen = list(range(len(found)))
        while len(chosen) > MOST:
            chosen.remove(draw(chosen))
        return [found[i] for i in chosen]

    def ask_number(self, draw: Any) -> Iterator[Question]:
        for i, line in enumerate(self.asked(draw, [line for line in self.lines if line.share.size <= BLANKS])):
            yield Question(f"q{i + 1}", "share", line, line.share, (line.numbers,))
            if line.before is not None:
                yield Question(f"q{i + 1}s", "total", line, line.total, self.so_far(line))

    def so_far(self, line: Line) -> tuple[tuple[int, ...], ...]:
        """Return the numbers of the steps that contribute to the line's tensor, up to this line."""
        return tuple(other.numbers for other in self.lines[:self.lines.index(line) + 1] if other.place == line.place)

    def ask_whole(self, draw: Any) -> Iterator[Question]:
        if len(self.explanation.steps) > STEPS:
            raise ValueError(f"the whole backward is asked of up to {STEPS} steps; this program has "
                             f"{len(self.explanation.steps)}")
        last = {line.place: line for line in self.lines}
        some = [line for line in self.lines if last[line.place] is line and line.share.size <= BLANKS]
        for i, line in enumerate(self.asked(draw, some)):
            yield Question(f"q{i + 1}", "total", line, line.total)

    def ask_rule(self, draw: Any) -> Iterator[Question]:
        checker, seen, found = Rules(self.explanation.recorded), set[Any](), []
        for line in self.lines:
            ruled = checker.question(line) if len(line.rules) == 1 and line.share.size <= BLANKS else None
            if ruled is not None and (line.step.op, ruled.answer) not in seen:
                seen.add((line.step.op, ruled.answer))
                found.append(ruled)
        for i, question in enumerate(self.asked(draw, found)):
            yield question._replace(key=f"q{i + 1}")

    def wrong_lines(self) -> list[Line]:
        """Return the lines that a backward with a mistake shows."""
        return order(self.lines)

    def ask_wrong(self, draw: Any) -> Iterator[Question]:
        shown = self.wrong_lines()
        if any(not told.total.whole for step in self.explanation.steps for told in step.gives):
            raise ValueError("a backward with a mistake shows all of its numbers; this one has too many")
        if not shown or len(shown) > STEPS:
            raise ValueError(f"a backward with a mistake has up to {STEPS} lines; this one has {len(shown)}")
        taken: set[int] = set()
        for i, times in enumerate(TIMES):
            found = mistaken(self.explanation.recorded, times, shown, draw, taken)
            if found is not None:
                taken.add(found.wrong)
                yield Question(f"q{i + 1}", "wrong", shown[found.wrong], (found.wrong, float(np.sum(found.right))),
                               shown=found)


@contextmanager
def gathered() -> Iterator[list[Exercise]]:
    """Yield a list that collects the exercises made within the block."""
    found: list[Exercise] = []
    _made.append(found)
    try:
        yield found
    finally:
        _made[:] = [own for own in _made if own is not found]


__all__ = ["Exercise", "gathered"]
