"""An exercise: questions about a backward, made from a level and a seed, and made again in the same way when answers are marked."""
from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from random import Random, SystemRandom
from typing import Any, NamedTuple

import numpy as np

from ..evaluable import Unable, definition
from ..program import Builder, program
from ..telling import BackwardStep
from .grammar import FUNCTIONS, Unread, computed, fitting, parsed
from .mistakes import Shown, mistaken, order
from .nets import net
from .sheet import Line, lines

LEVELS = {"number": "The number", "rule": "The rule", "whole": "The whole backward", "wrong": "Which gradient is wrong?"}
MOST, BLANKS, SETS = 12, 12, 3         # questions of a page, elements that are asked for one by one, backwards with a mistake
STEPS = 60                             # of a program whose whole backward is asked for
NAME = re.compile(r"[^\W\d][\w.]*")
_made: list[list[Exercise]] = []       # lists of those who gather exercises as they are made


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


def exercise(level: str = "whole", seed: int | str | None = None) -> Exercise:
    """An exercise about a small program of its own, made from a seed: a number or a word. None draws a seed.

    Levels: "number" asks for the numbers of each step back, whose rule is shown. "rule" asks for the rules, as formulas. "whole" shows the forward of a
    small net and asks for all of its gradients. "wrong" shows backwards with one mistake each: which line is it, and what should be there?

    The page checks answers by differences that it computes; they are not in its source. What is handed in is a file, which
    `python -m tensorgrad.viz grade FILE` marks: it makes the exercise again from its seed.

    Raises: ValueError for a level that is none of these.

    >>> import tensorgrad as torch
    >>> made = torch.viz.exercise("whole", seed=7)
    >>> made
    <Exercise "whole", seed 7, about L: 8 questions>
    >>> made.save("exercise.html")                                                                  # doctest: +SKIP
    """
    seed = SystemRandom().randrange(10 ** 6) if seed is None else seed
    check(level, seed)
    return Exercise(net(level, seed), level, seed, made="net")


def check(level: Any, seed: Any) -> None:
    if level not in LEVELS:
        raise ValueError(f"level: one of {', '.join(map(repr, LEVELS))}, not {level!r:.60}")
    if type(seed) not in (int, str) or len(str(seed)) > 60:
        raise ValueError(f"seed: a whole number or a short word, not {seed!r:.80}")


class Exercise:
    """Questions about the backward of an explanation, as `viz.exercise` and `Explanation.exercise` make them. Shows itself in Jupyter.

    `questions` are what is asked, `level` and `seed` say how it was made, `fingerprint` tells it from others. ValueError for a program that has no
    question of this level, or whose steps a page cannot compute.
    """

    def __init__(self, explanation: Any, level: str = "number", seed: int | str = 0, made: str = "program") -> None:
        check(level, seed)
        self.explanation, self.level, self.seed, self.made = explanation, level, seed, made
        self.program = program(explanation)
        if not self.program["able"]:
            raise ValueError(f"there is no exercise about this program, as its page could not check answers: {self.program['why']}")
        for step in self.program["steps"]:
            step["rules"] = []          # the page is not to know them
        random = Random(f"tensorgrad questions 1, {level}, {seed}")
        self.lines = lines(explanation)
        self.questions: list[Question] = list(getattr(self, f"ask_{level}")(lambda choices: choices[int(random.random() * len(choices))]))
        if not self.questions:
            raise ValueError(f"this program has no question of the level {level!r}: its steps are too large, or have no rule that fits into a line")
        for gathering in _made:
            gathering.append(self)

    def __repr__(self) -> str:
        count = len(self.questions)
        return f'<Exercise "{self.level}", seed {self.seed}, about {self.explanation.name}: {count} question{"s" if count != 1 else ""}>'

    @property
    def title(self) -> str:
        return f"{LEVELS[self.level]}: backprop of {self.explanation.name}"

    @property
    def fingerprint(self) -> str:
        """What tells an exercise from others: its level, seed, program, numbers to six digits, and questions."""
        leaves = [[leaf["name"], leaf["value"]["shape"], [f"{float(x):.6g}" for x in leaf["value"]["data"]]] for leaf in self.program["leaves"]]
        steps = [[step["number"], step["op"], step["results"]] for step in self.program["steps"]]
        told = [self.level, str(self.seed), leaves, steps, [[q.key, q.kind, q.line.key] for q in self.questions]]
        if self.level == "wrong":       # which line is wrong is for the reader to find
            told[-1] = [q.key for q in self.questions]
        return sha256(json.dumps(told).encode()).hexdigest()[:24]

    def html(self) -> str:
        """The page, which needs nothing else."""
        from .page import page
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
        """Open the page in the browser; returns where it lies."""
        import tempfile
        import webbrowser
        path = self.save(Path(tempfile.mkdtemp(prefix="tensorgrad-"), "exercise.html"))
        webbrowser.open(path.as_uri())
        return path

    def grade(self, *files: Any) -> list[Any]:
        """Mark files that were handed in: a list of `Marked`, each of which prints as a line of a table. OSError for a file that cannot be read."""
        from .marking import marked
        return [marked(file, [self]) for file in files]

    def _repr_html_(self) -> str:
        from ..lesson import framed
        return framed(self.html())

    # ── what is asked, by level ───────────────────────────────────────────────────────────────────────────────────────

    def asked(self, draw: Any, found: list[Any]) -> list[Any]:
        """As many as a page has room for, in their order."""
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
        """The steps that have given something to a line's tensor by then."""
        return tuple(other.numbers for other in self.lines[:self.lines.index(line) + 1] if other.place == line.place)

    def ask_whole(self, draw: Any) -> Iterator[Question]:
        if len(self.explanation.steps) > STEPS:
            raise ValueError(f"the whole backward is asked of up to {STEPS} steps; this program has {len(self.explanation.steps)}")
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
        """The lines that a backward with a mistake shows."""
        return order(self.lines)

    def ask_wrong(self, draw: Any) -> Iterator[Question]:
        shown = self.wrong_lines()
        if any(not told.total.whole for step in self.explanation.steps for told in step.gives):
            raise ValueError("a backward with a mistake shows all of its numbers; this one has too many")
        if not shown or len(shown) > STEPS:
            raise ValueError(f"a backward with a mistake has up to {STEPS} lines; this one has {len(shown)}")
        taken: set[int] = set()
        for i in range(SETS):
            found = mistaken(self.explanation.recorded, shown, draw, taken)
            if found is not None:
                taken.add(found.wrong)
                yield Question(f"q{i + 1}", "wrong", shown[found.wrong], (found.wrong, float(np.sum(found.right))), shown=found)


class Rules:
    """Tells whether a formula is the rule of a line: at three places near the numbers that are shown, it has to give what differences give."""

    def __init__(self, recorded: Any) -> None:
        self.builder = Builder(recorded)
        for step in recorded.steps:
            self.builder.forward(step)

    def question(self, line: Line) -> Question | None:
        """The question about the rule of a line; None if it has no rule that is found here."""
        taken = [entry for entry in self.builder.taken if entry[0].number in line.numbers]
        if len(taken) != 1 or taken[0][0].op.several:
            return None
        step, written, _ = taken[0]
        letters, others = self.letters(line.step, written), []
        out = self.builder.found.names.get(step.results[0], "")
        names = ("g", *dict.fromkeys([*letters.values(), out]))
        if any(np.asarray(taken[0][2].get(name)).dtype.kind != "f" for name in letters):
            return None
        if not letters or not all(map(NAME.fullmatch, names)) or set(names) & set(FUNCTIONS) or names.count("g") + ("g" in letters.values()) > 1 or out == "g":
            return None
        others = [name for name in letters.values() if name != line.target] + [str(abs(v)) for _, (kind, v) in written["inputs"]
                                                                               if kind == "is" and isinstance(v, (int, float)) and type(v) is not bool]
        question = Question("", "rule", line, "", names=names, letters=letters)
        found = fitting(line.target, others or [line.target], out, lambda text: self.right(question, text))
        return None if found is None else question._replace(answer=found)

    def letters(self, back: BackwardStep, written: Any) -> dict[str, str]:
        """{the op's own name of an input: the tensor's name}, of all inputs that are arrays. Empty if one has no name."""
        given, found = {g.name: g.tensor or g.name for g in back.given}, {}
        for name, (kind, value) in written["inputs"]:
            if kind == "place":
                found[name] = self.builder.found.names.get(value, "")
            elif kind == "constant":
                found[name] = given.get(name, name)
        return found if all(found.values()) else {}

    def right(self, question: Question, text: str) -> bool:
        """Whether a formula is right. Unread if it is none."""
        tree = parsed(text, question.names)
        step, written, arguments = next(entry for entry in self.builder.taken if entry[0].number in question.line.numbers)
        rng = np.random.default_rng(7)
        inputs = {name: np.asarray(arguments[name], dtype=np.float64) for name in question.letters}
        out = self.builder.values[step.results[0]]
        target = next(name for name, (kind, value) in written["inputs"] if kind == "place" and value == question.line.place)
        for turned in (True, True, False):
            letters = {question.letters[name]: x * rng.uniform(0.8, 1.2, x.shape) for name, x in inputs.items()}
            g = rng.uniform(0.5, 1.5, np.shape(out))
            try:
                for signs in (turned, False):       # with some signs turned, which tells on which side of a corner a rule holds; not where that has no logarithm
                    at = {name: x * rng.choice([-1.0, 1.0], x.shape) if signs else x for name, x in letters.items()}
                    truth, value = slope(step.op, arguments | {name: at[letter] for name, letter in question.letters.items()}, target, g)
                    if np.all(np.isfinite(truth)):
                        break
                letters = at
                got = broadcast(computed(tree, {"g": g, self.builder.found.names[step.results[0]]: value} | letters), truth.shape)
            except (Unread, Unable):
                return False
            if got is None or not np.allclose(got, truth, rtol=1e-5, atol=1e-6 * max(1.0, np.max(np.abs(truth), initial=0))):
                return False
        return True


def slope(op: Any, arguments: dict[str, Any], name: str, g: Any) -> tuple[Any, Any]:
    """Σ g · ∂op/∂input by central differences, and the value of the op."""
    x = arguments[name]
    found = np.zeros(x.shape)

    def value(at: Any) -> Any:
        return np.asarray(definition(op, arguments | {name: at}).value)
    for place in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[place] = h = 1e-5 * max(1.0, abs(float(x[place])))
        with np.errstate(all="ignore"):
            found[place] = np.sum(g * (value(x + step) - value(x - step))) / (2 * h)
    return found, value(x)


def broadcast(got: Any, shape: tuple[int, ...]) -> Any:
    """What a formula gives, in the shape of the tensor whose gradient it is: summed over the axes that this lacks; None if it does not fit."""
    while got.ndim > len(shape):
        got = got.sum(0)
    for axis, n in enumerate(shape[len(shape) - got.ndim:]):
        got = got.sum(axis, keepdims=True) if n == 1 != got.shape[axis] else got
    try:
        return np.broadcast_to(got, shape)
    except ValueError:
        return None


@contextmanager
def gathered() -> Iterator[list[Exercise]]:
    """All exercises that are made meanwhile."""
    found: list[Exercise] = []
    _made.append(found)
    try:
        yield found
    finally:
        _made[:] = [own for own in _made if own is not found]


__all__ = ["LEVELS", "Exercise", "Question", "Rules", "exercise", "gathered"]
