"""Read a run's directory, which may be untrusted, damaged, or being written at this moment.

Only regular files are opened, never through links, and each has a limit. Failures are listed in `Record.problems`.
"""

from __future__ import annotations

import csv
import os
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...messages.escaping import escaped
from .. import directory, files
from ..metrics import EPOCH, MOST_COLUMNS, STEP, TIME

LONGEST_LINE, MOST_VALUES = 1 << 20, 20_000_000
DEEP = 4  # levels below a directory that are searched for runs
UP = frozenset(
    "acc accuracy top1 top5 f1 auc auroc ap map psnr ssim precision recall iou miou dice bleu rouge reward r2 "
    "score".split()
)
DOWN = frozenset("loss error err mse mae rmse nll ce bce perplexity ppl bpc bpd fid wer cer kl cost".split())
TRUTH = {"True": 1.0, "False": 0.0}


@dataclass
class Series:
    """The values of a metric and the rows in which they were logged. NaN is a logged value."""

    rows: np.ndarray
    values: np.ndarray


@dataclass
class Record:
    """A run as data.

    status: finished, failed, interrupted, running, or stopped if run.json says running but no process writes to it.
    about: the content of run.json; config: the configuration or None; series: the metrics, in the order of their
    columns; texts: the last text of metrics that are no numbers; steps, times, epochs: a number for each row (NaN if
    missing); problems: failures to read.
    """

    path: Path
    status: str = "unknown"
    about: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] | None = None
    series: dict[str, Series] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    steps: np.ndarray = field(default_factory=lambda: np.empty(0))
    times: np.ndarray = field(default_factory=lambda: np.empty(0))
    epochs: np.ndarray = field(default_factory=lambda: np.empty(0))
    problems: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of the directory."""
        return self.path.name

    @property
    def step(self) -> int | None:
        """The last step."""
        known = self.steps[np.isfinite(self.steps)]
        return int(known[-1]) if len(known) else None

    @property
    def seconds(self) -> float | None:
        """The time that was logged last."""
        known = self.times[np.isfinite(self.times)]
        return float(known[-1]) if len(known) else None

    def last(self, name: str) -> float | None:
        """The last finite value of a metric."""
        known = self._known(name)
        return float(known.values[-1]) if len(known.values) else None

    def best(self, name: str) -> tuple[float, int] | None:
        """Return (value, step) of a metric's best value; None if the better direction is unknown."""
        way, known = better(name), self._known(name)
        if way is None or not len(known.values):
            return None
        at = int((known.values.argmax if way == "max" else known.values.argmin)())
        step = self.steps[known.rows[at]]
        return float(known.values[at]), int(step) if np.isfinite(step) else int(known.rows[at])

    def _known(self, name: str) -> Series:
        series = self.series.get(name)
        if series is None:
            return Series(np.empty(0, np.int64), np.empty(0))
        finite = np.isfinite(series.values)
        return Series(series.rows[finite], series.values[finite])


def better(name: str) -> str | None:
    """Return the better direction of a metric by its name: "max", "min", or None if unknown.

    >>> better("val/acc"), better("train_loss"), better("lr")
    ('max', 'min', None)
    """
    words = set(re.split(r"[^a-z0-9]+", name.lower()))
    if words & DOWN or "loss" in name.lower():
        return "min"
    return "max" if words & UP else None


def find(path: Any) -> list[Path]:
    """Return the runs in a directory: itself, or those below it, by name. FileNotFoundError if it does not exist.

    >>> find(".")
    []
    """
    path = Path(path)
    if not path.is_dir():
        raise FileNotFoundError(2, "There is no such directory", str(path))
    if _looks_like_a_run(path):
        return [path]
    found, todo = list[Path](), [(path, 0)]
    while todo:
        folder, depth = todo.pop()
        try:
            below = [
                Path(entry.path)
                for entry in os.scandir(folder)
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
            ]
        except OSError:
            continue
        for inner in below:
            if _looks_like_a_run(inner):
                found.append(inner)
            elif depth + 1 < DEEP:
                todo.append((inner, depth + 1))
    return sorted(found, key=_natural)


def _natural(path: Path) -> list[tuple[float, str]]:
    """Return a sort key that compares numbers in names by value: run-2 before run-10, lr=0.01 before lr=0.1."""
    parts = re.split(r"([0-9]+(?:\.[0-9]+)?)", str(path))
    return [(float(part), "") if i % 2 else (-1.0, part) for i, part in enumerate(parts)]


def _looks_like_a_run(path: Path) -> bool:
    return (path / directory.RUN).is_file() or (path / directory.METRICS).is_file()


def read(path: Any) -> Record:
    """Read a run from its directory.

    FileNotFoundError if there is none, ValueError if it has no run; other failures are listed in `problems`.
    """
    path = Path(os.path.abspath(os.fspath(path)))
    if not path.is_dir():
        raise FileNotFoundError(2, "There is no such directory", str(path))
    if not _looks_like_a_run(path):
        raise ValueError(f"{path} is no run: it has neither {directory.RUN} nor {directory.METRICS}")
    record = Record(path)
    for part, reader in ((directory.RUN, _read_about), ("config", _read_config), (directory.METRICS, _read_metrics)):
        try:
            reader(record)
        except FileNotFoundError:
            record.problems.append(f"{part} is missing")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            record.problems.append(f"{part} cannot be read: {escaped(reason, 300)}")
    return record


def _read_about(record: Record) -> None:
    record.about = files.read_json(record.path / directory.RUN)
    status = record.about.get("status")
    record.status = escaped(status, 40) if isinstance(status, str) else "unknown"
    if record.status == "running" and directory.is_held(record.path) is False:
        record.status = "stopped"


def _read_config(record: Record) -> None:
    record.config = files.read_config(record.path)


def _read_metrics(record: Record) -> None:
    with os.fdopen(files.open_plain(record.path / directory.METRICS, os.O_RDONLY), "rb") as file:
        _Rows(record).read(_lines(file))


def _lines(file: Any) -> Iterator[str]:
    """Yield the complete lines of a file, without one that is being written."""
    while line := file.readline(LONGEST_LINE):
        if not line.endswith(b"\n"):
            if len(line) == LONGEST_LINE:
                raise ValueError(f"a line has more than {LONGEST_LINE:,} bytes")
            return
        yield line.decode("utf-8", "replace").rstrip("\r\n")


class _Rows:
    """Collects the rows of metrics.csv for a record."""

    def __init__(self, record: Record) -> None:
        self.record, self.damaged, self.values = record, 0, 0
        self.rows: list[array[int]] = []
        self.columns: list[array[float]] = []

    def read(self, lines: Iterator[str]) -> None:
        names = self.head(next(lines, "").removeprefix("\ufeff"))
        self.rows, self.columns = [array("q") for _ in names], [array("d") for _ in names]
        number = 0
        for line in lines:
            parts = _split(line)
            if parts is None or len(parts) != len(names):
                self.damaged += 1
                continue
            if self.values > MOST_VALUES:
                self.record.problems.append(f"metrics.csv: only the first {number:,} rows are read")
                break
            self.take(number, parts, names)
            number += 1
        self.give(names, number)

    def head(self, line: str) -> list[str]:
        """Return the names of the columns, made unique."""
        cells = _split(line) if line else None
        if cells is None:
            raise ValueError("its first line is damaged" if line else "it is empty")
        if len(cells) > MOST_COLUMNS:
            raise ValueError(f"it has more than {MOST_COLUMNS:,} columns")
        names, seen = list[str](), dict[str, int]()
        for name in cells:
            name = name[:300] or "(no name)"
            seen[name] = seen.get(name, 0) + 1
            names.append(name if seen[name] == 1 else f"{name} (column {len(names) + 1})")
        return names

    def take(self, number: int, parts: list[str], names: list[str]) -> None:
        for i, part in enumerate(parts):
            if not part:
                continue
            try:
                value = float(part)
            except ValueError:
                truth = TRUTH.get(part)
                if truth is None:
                    self.record.texts[names[i]] = part[:300]
                    continue
                value = truth
            self.rows[i].append(number)
            self.columns[i].append(value)
            self.values += 1

    def give(self, names: list[str], number: int) -> None:
        record = self.record
        if self.damaged:
            record.problems.append(
                f"metrics.csv: {self.damaged:,} damaged {'row is' if self.damaged == 1 else 'rows are'} left out"
            )
        found = {
            name: Series(np.array(rows, np.int64), np.array(values))
            for name, rows, values in zip(names, self.rows, self.columns, strict=True)
        }
        for name, key in ((STEP, "steps"), (TIME, "times"), (EPOCH, "epochs")):
            dense = np.full(number, np.nan)
            if (series := found.pop(name, None)) is not None:
                dense[series.rows] = series.values
            elif name == STEP:
                dense = np.arange(number, dtype=float)
            setattr(record, key, dense)
        record.series = {name: series for name, series in found.items() if len(series.values)}


def _split(line: str) -> list[str] | None:
    """Split a line into cells; None for a damaged one."""
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line], strict=True), None)
    except csv.Error:
        return None


# ── several runs ──────────────────────────────────────────────────────────────────────────────────────────────────────


def names(records: list[Record]) -> list[str]:
    """Return a name for each run: its directory's, with as many parent directories as make it unique."""
    parts, found = [record.path.parts for record in records], [record.name for record in records]
    for above in range(2, 5):
        again = {name for name in found if found.count(name) > 1}
        if not again:
            break
        found = ["/".join(path[-above:]) if name in again else name for name, path in zip(found, parts, strict=True)]
    return [escaped(name, 200) for name in found]


def metrics(records: list[Record]) -> list[str]:
    """Return the metrics of all runs, in order of first appearance."""
    return list(dict.fromkeys(name for record in records for name in record.series))


def settings(records: list[Record]) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Return (differing settings: path → a value for each run, common settings).

    A run without a setting has `...` there.
    """
    flat = [dict(files.flattened(record.config)) if record.config else {} for record in records]
    differing, common = {}, {}
    for key in dict.fromkeys(key for one in flat for key in one):
        values = [one.get(key, ...) for one in flat]
        if all(repr(value) == repr(values[0]) for value in values):
            common[key] = values[0]
        else:
            differing[key] = values
    return differing, common


def winners(values: list[float | None], way: str | None) -> set[int]:
    """Return the indices of the best runs, if at least two are compared and not all are equal."""
    known = [value for value in values if value is not None]
    if way is None or len(known) < 2 or min(known) == max(known):
        return set()
    top = max(known) if way == "max" else min(known)
    return {i for i, value in enumerate(values) if value == top}


def duration(seconds: float | None) -> str:
    """Format a duration.

    >>> duration(12.34), duration(75), duration(7300), duration(200000)
    ('12.3 s', '1 min 15 s', '2 h 1 min', '2 d 7 h')
    """
    if seconds is None or not np.isfinite(seconds):
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s"
    for small, big, one, two in ((60, 3600, "min", "s"), (3600, 86400, "h", "min"), (86400, None, "d", "h")):
        if big is None or seconds < big:
            whole, rest = divmod(int(seconds), small)
            return f"{whole} {one} {rest * 60 // small if small < 86400 else rest // 3600} {two}"
    return ""


def setting(value: Any) -> str:
    """Format a value of a configuration."""
    return "" if value is ... else escaped(value if isinstance(value, str) else repr(value), 200)
