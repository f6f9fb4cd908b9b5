"""Marks for answers that were handed in.

A file is not trusted: the exercise is made again, and nothing in the file but its answers counts.
"""
from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..text import clean, short, shorten
from .grammar import Unread
from .questions import FORMAT, LEVELS, VERSION, Question
from .reading import LONGEST, all_right, right
from .rules import Rules

BYTES, NAME = 1_000_000, 40


class Unmarked(ValueError):
    """The file cannot be marked; the message says why."""


class Mark(NamedTuple):
    """Mark for the answer to one question. `right`, `wrong`, `open` and `revealed` count its parts."""

    question: str
    asked: str
    given: tuple[str, ...]
    answer: str
    right: int
    wrong: int
    open: int
    revealed: int
    hints: int


class Marked(NamedTuple):
    """A file that was handed in: its name, level and seed as the file states them, and a mark for each question.

    `why` says why it cannot be marked.
    """

    file: str
    name: str
    level: str
    seed: str
    marks: tuple[Mark, ...]
    why: str = ""

    def count(self, what: str) -> int:
        return sum(getattr(mark, what) for mark in self.marks)

    @property
    def parts(self) -> int:
        return sum(self.count(what) for what in ("right", "wrong", "open", "revealed"))


def marked(file: Any, known: Sequence[Any] = (), make: Callable[[str, Any], Any] | None = None,
           level: str | None = None, seed: str | None = None) -> Marked:
    """Mark a file that answers one of the exercises in `known`, or one that `make(level, seed)` makes.

    `level` and `seed` are those that were given out. Errors: OSError for a file that cannot be read; the result reports
    all other faults of the file.
    """
    path = Path(file)
    if path.stat().st_size > BYTES:
        return Marked(str(path), "", "", "", (), "it is too large for answers")
    content = path.read_bytes()
    name = told_level = told_seed = ""
    try:
        handed = parsed(content)
        name, told_level, told_seed = (shorten(clean(handed["name"]), NAME), handed["level"],
                                       shorten(clean(handed["seed"]), NAME))
        if level is not None and told_level != level:
            raise Unmarked(f"it answers an exercise of the level {told_level!r}, not {level!r}")
        if seed is not None and str(handed["seed"]) != seed:
            raise Unmarked(f"it answers the exercise of seed {told_seed}, not {seed}")
        made = again(handed, known, make)
        rules = Rules(made.explanation.recorded) if told_level == "rule" else None
        marks = tuple(mark(question, handed, rules) for question in made.questions)
    except Unmarked as error:
        return Marked(str(path), name, told_level, told_seed, (), str(error))
    return Marked(str(path), name, told_level, told_seed, marks)


def parsed(content: bytes) -> dict[str, Any]:
    """Parse the content of a file and check the type of each part. Errors: Unmarked."""
    try:
        found = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise Unmarked("it is not JSON") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise Unmarked("it was not handed in by the page of an exercise")
    if found.get("version") != VERSION:
        raise Unmarked("it is from another version of the package")
    kinds = {"level": str, "seed": (int, str), "made": str, "fingerprint": str, "name": str, "answers": dict,
             "hints": dict, "revealed": list}
    for key, kind in kinds.items():
        if not isinstance(found.get(key), kind) or isinstance(found[key], bool):        # type: ignore[arg-type]
            raise Unmarked(f"its {key!r} is missing or malformed")
    if found["level"] not in LEVELS:
        raise Unmarked("its level is none that there is")
    if len(str(found["seed"])[:99]) > 60:
        raise Unmarked("its 'seed' is missing or malformed")
    for texts in found["answers"].values():
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise Unmarked("its 'answers' is missing or malformed")
    return found


def again(handed: dict[str, Any], known: Sequence[Any], make: Callable[[str, Any], Any] | None) -> Any:
    """Return the exercise that a file answers, from `known` or made again. Errors: Unmarked."""
    own = next((made for made in known if made.fingerprint == handed["fingerprint"]), None)
    if own is not None:
        if own.level != handed["level"] or str(own.seed) != str(handed["seed"]):
            raise Unmarked("its level or seed is not that of the exercise: the file was changed")
        return own
    if make is None:
        raise Unmarked("it answers another exercise, or one about another program")
    if handed["made"] != "net":
        raise Unmarked(f"its exercise is about {'another' if known else 'a'} program: give the script that made it, "
                       f"with --from")
    made = make(handed["level"], handed["seed"])
    if made.fingerprint != handed["fingerprint"]:
        raise Unmarked("its seed makes another exercise: the file was changed, or made by another version of the "
                       "package")
    return made


def mark(question: Question, handed: dict[str, Any], rules: Rules | None) -> Mark:
    """Mark one question. Parts that the file declares as revealed count nothing."""
    texts = [text.strip() for text in handed["answers"].get(question.key, [])][:question.parts]
    texts += [""] * (question.parts - len(texts))
    hints = handed["hints"].get(question.key, 0)
    hints = hints if type(hints) is int and 0 <= hints < 10 else 0
    told = (question.key, asked(question), tuple(shorten(clean(text), LONGEST) for text in texts), answered(question))
    if question.key in handed["revealed"]:
        return Mark(*told, 0, 0, 0, question.parts, hints)
    verdicts = judged(question, texts, rules)
    opened = texts.count("")
    good = sum(ok for text, ok in zip(texts, verdicts, strict=True) if text)
    return Mark(*told, good, question.parts - good - opened, opened, 0, hints)


def judged(question: Question, texts: list[str], rules: Rules | None) -> list[bool]:
    if question.kind == "rule":
        try:
            return [bool(texts[0]) and rules is not None and rules.right(question, texts[0])]
        except Unread:
            return [False]
    if question.kind == "wrong":
        line, number = question.answer
        shown = question.shown
        scale = float(np.sum(np.abs(shown.right))) if shown is not None else 0.0
        return [texts[0] == str(line + 1), right(texts[1], number, scale)]
    return all_right(texts, np.ravel(question.answer))


def asked(question: Question) -> str:
    line = question.line
    if question.kind == "wrong":
        return "the wrong line, and the sum of what should be there"
    what = {"share": f"what step {line.step.number} gives to",
            "rule": f"the rule of {line.step.op} for"}.get(question.kind, "all of" if not question.through
                                                       else "the sum so far of")
    return f"{what} ∂L/∂{line.target}"


def answered(question: Question) -> str:
    """Return the right answer as text."""
    if question.kind == "rule":
        return str(question.answer)
    if question.kind == "wrong":
        return f"line {question.answer[0] + 1}, {short(question.answer[1])}"
    return ", ".join(short(x) for x in np.ravel(question.answer))


__all__ = ["Mark", "Marked", "marked"]
