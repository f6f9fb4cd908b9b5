"""Marks for the files of a class: `python -m tensorgrad.viz grade [--from script.py] [--level LEVEL] [--seed SEED]
[--csv FILE] FILE …`.
"""
from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ...messages import tables
from ...messages.tables import columns
from .exercise import Exercise, gathered
from .generation import exercise
from .marking import Marked, marked
from .questions import LEVELS

USAGE = """usage: python -m tensorgrad.viz grade [--from SCRIPT] [--level LEVEL] [--seed SEED] [--csv FILE] [--details] FILE [FILE ...]

Mark answers that pages of exercises have handed in. Each exercise is made again from its seed; what is right is computed anew.

  --from SCRIPT   the program whose exercises the files answer: it is run, and each exercise that it makes is known
  --level LEVEL, --seed SEED   what was given out: files that answer another exercise are not marked
  --csv FILE      write the table for spreadsheets, too
  --details       below the table, each answer that is not right; for a single file this is always printed
  -h, --help      this text

The exit status is 0 if all files could be marked, 1 if not, 2 if the command line is wrong."""  # noqa: E501
TAKING = ("--from", "--level", "--seed", "--csv")
HEADS = ("file", "name", "level", "seed", "right", "wrong", "open", "revealed", "hints", "mark")


def main(arguments: list[str], run: Callable[[list[str]], None]) -> int:
    """Mark the files, print the table, return the exit status. `run` runs a program as `python` would."""
    if any(word in ("-h", "--help") for word in arguments):
        print(USAGE)
        return 0
    try:
        options, files = parsed(arguments)
    except ValueError as wrong:
        print(f"{USAGE}\n\n{wrong}", file=sys.stderr)
        return 2
    try:
        known = made_by(options["--from"], run) if "--from" in options else []
        found = [one(file, known, options) for file in files]
        print(table(found))
        if "--csv" in options:
            write(found, Path(options["--csv"]))
    except (OSError, ValueError) as trouble:
        print(f"python -m tensorgrad.viz grade: {trouble}", file=sys.stderr)
        return 1
    if "--details" in options or len(found) == 1:
        print("\n".join(details(found)))
    return int(any(marks.why for marks in found))


def parsed(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Options and files. ValueError says what is wrong."""
    options: dict[str, str] = {}
    files, rest = [], list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if name in TAKING:
            if not equals and not rest:
                raise ValueError(f"{name}: a value is expected")
            options[name] = value if equals else rest.pop(0)
        elif word == "--details":
            options[word] = ""
        elif word == "--":
            files += rest
            break
        elif word.startswith("-"):
            raise ValueError(f"unknown option {word}")
        else:
            files.append(word)
    if not files:
        raise ValueError("which files?")
    if options.get("--level", "number") not in LEVELS:
        raise ValueError(f"--level: one of {', '.join(LEVELS)}")
    return options, files


def made_by(script: str, run: Callable[[list[str]], None]) -> list[Exercise]:
    """The exercises that a program makes. ValueError if it makes none."""
    with gathered() as known:
        try:
            run([script])
        except SystemExit as end:
            if end.code:
                raise ValueError(f"{script} ended with status {end.code}") from None
    if not known:
        raise ValueError(f"{script} makes no exercise: it should call explain(loss).exercise(level=…, seed=…)")
    return known


def one(file: str, known: Sequence[Exercise], options: dict[str, str]) -> Marked:
    """A file's marks; one that cannot be read is a line of the table, too."""
    try:
        return marked(file, known, exercise, options.get("--level"), options.get("--seed"))
    except OSError as error:
        return Marked(file, "", "", "", (), error.strerror or "it cannot be read")


def row(marks: Marked) -> list[str]:
    counts = [str(marks.count(what)) for what in ("right", "wrong", "open", "revealed", "hints")]
    return [Path(marks.file).name, marks.name, marks.level, marks.seed,
            *(["–"] * 5 if marks.why else counts), "not marked" if marks.why
            else f"{100 * marks.count('right') / marks.parts:.0f} %"]


def table(found: Sequence[Marked]) -> str:
    """The files as a table, and below it why some have no marks."""
    lines = tables.table([HEADS, *map(row, found)], "<<<<>")
    lines.insert(1, "─" * max(map(columns, lines)))
    return "\n".join([*lines, *[f"{Path(marks.file).name}: {marks.why}" for marks in found if marks.why]])


def details(found: Sequence[Marked]) -> list[str]:
    """A line for each answer that is not right."""
    lines = []
    for marks in found:
        for mark in marks.marks:
            if mark.wrong or mark.open or mark.revealed:
                given = "revealed" if mark.revealed else "; ".join(text or "–" for text in mark.given)
                lines.append(f"{marks.name or Path(marks.file).name}, {mark.question}, {mark.asked}: {given}. Right: "
                             f"{mark.answer}")
    return lines


def write(found: Sequence[Marked], path: Path) -> None:
    """The table as CSV. A text that a spreadsheet would compute gets an apostrophe before it."""
    def plain(text: str) -> str:
        return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t") else text
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*HEADS, "why"])
        writer.writerows([*map(plain, row(marks)), marks.why] for marks in found)
