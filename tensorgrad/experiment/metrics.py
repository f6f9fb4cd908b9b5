"""metrics.csv: a row for each call of `Run.log`, complete on the disk before the call returns.

A row is one write() of a line to a file opened for appending, and survives `kill -9`. A new column rewrites the file
beside the old one, which it then replaces. Readers see complete lines at any moment. Since file systems may show a
write page by page, no row of up to 1 KB crosses the end of a page: the row before it fills the page with zeros after
the decimals of its time. Text cells and names of columns are quoted, and cannot start a formula in a spreadsheet:
https://owasp.org → CSV injection.
"""

from __future__ import annotations

import os
import re
import time
import warnings
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..messages.escaping import escaped
from . import files

LONGEST, MOST_COLUMNS = 200, 4096  # characters of a name or text; columns
MOST_WAITING = 100_000  # rows that wait for space on the disk
PATIENCE = 1.0  # seconds until the disk is tried again
PAGE, WIDE = 4096, 1024  # bytes of a page; of rows that may cross its end
STEP, EPOCH, TIME = "step", "epoch", "time"
FORMULA = re.compile(r"(^|;)(\s*[=+\-@\uff1d\uff0b\uff0d\uff20])")
CELL = re.compile(r'(?:^|,)("(?:[^"]|"")*"|[^,]*)')


def text(value: str) -> str:
    """Return a text for a cell: on one line, and with an apostrophe before the start of a formula.

    >>> text("=1+1"), text("a\\nb")
    ("'=1+1", 'a\\\\nb')
    """
    return FORMULA.sub(r"\1'\2", escaped(value))


def quoted(value: str) -> str:
    """Return a text in double quotes."""
    return '"' + value.replace('"', '""') + '"'


def column(name: Any) -> str:
    """Return the column of a metric's name. TypeError if it is no string, ValueError if it is empty or long."""
    if not isinstance(name, str):
        raise TypeError(f"log(): names of metrics are strings, but got {name!r:.60} of type {type(name).__name__}")
    if not name or len(name) > LONGEST:
        raise ValueError(
            f"log(): the name of a metric has 1 to {LONGEST} characters, but got {len(name)}: {escaped(name, 60)!r}"
        )
    return text(name)


def number(name: str, value: Any) -> bool | int | float | str:
    """Convert a value to Python's types. TypeError, which names the metric, unless it is a number or a short text.

    >>> import tensorgrad as torch
    >>> number("loss", torch.tensor(0.5)), number("best", True)
    (0.5, True)
    """
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, str):
        if len(value) <= LONGEST:
            return str(value)
        raise TypeError(
            f"log(): {escaped(name)!r} is a text of {len(value)} characters; a metric has at most {LONGEST} "
            "(Run.print takes any)"
        )
    if type(value) in (bool, int):
        float(value)  # OverflowError for an int beyond float64, which readers could not represent
        return value
    if isinstance(value, (str, bytes)) or getattr(value, "ndim", 0) or not hasattr(value, "__float__"):
        shape = f" of shape {tuple(value.shape)}" if hasattr(value, "shape") else ""
        raise TypeError(
            f"log(): {escaped(name)!r} must be a number, a tensor without dimensions or a short text, but got "
            f"{type(value).__name__}{shape}{' (log its mean(), or another number)' if shape else ''}"
        )
    return float(value)


def cell(value: bool | int | float | str) -> str:
    """Return the text of a value; numbers read back exactly."""
    return quoted(text(value)) if isinstance(value, str) else repr(value)


class Metrics:
    """The file. `columns` and `rows` describe the logged rows; `waiting` are rows that did not fit on the disk.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     metrics = Metrics(Path(folder, "metrics.csv"))
    ...     metrics.append({"step": "0", "time": "0.1", "loss": "0.5"})
    ...     print(metrics.path.read_text())
    ...     metrics.close()
    step,time,loss
    0,0.1,0.5
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.waiting: deque[dict[str, str]] = deque()
        self._longest = 0  # bytes of the longest row so far, with a margin
        self._descriptor, self._size, self._next = -1, 0, 0.0
        found = _read(path)
        if found is None:
            self._replace([STEP, TIME], [])
            return
        columns, lines, whole = found
        self.columns, self.rows, self.last = columns, len(lines), lines[-1] if lines else ""
        if whole:
            self._open()
        else:
            self._replace(columns, lines)

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in the order of the file."""
        return list(self._columns)

    @columns.setter
    def columns(self, names: list[str]) -> None:
        self._columns = dict.fromkeys(names)

    def value(self, name: str) -> float | None:
        """A number of the last row."""
        if name not in self._columns or not self.last:
            return None
        try:
            return float(cells(self.last)[self.columns.index(name)])
        except (ValueError, IndexError):
            return None

    def append(self, row: dict[str, str]) -> None:
        """Add a row: cells by the names of their columns.

        OSError if the disk is full: then this row, and those of the next second, wait.
        """
        if not row.keys() <= self._columns.keys() and len(self._columns.keys() | row.keys()) > MOST_COLUMNS:
            raise ValueError(
                f"log(): there are {len(self._columns)} metrics, and no more than {MOST_COLUMNS} can be. "
                "A name that holds the step makes a new one each time"
            )
        self.waiting.append(row)
        self.rows += 1
        if len(self.waiting) == 1 or time.monotonic() >= self._next:
            self.flush()

    def flush(self) -> None:
        """Write waiting rows. OSError if the disk is still full."""
        if not self.waiting:
            return
        new = [
            name for name in dict.fromkeys(name for row in self.waiting for name in row) if name not in self._columns
        ]
        try:
            if new:
                self._add(new)
            while self.waiting:
                self._put(self.waiting[0])
                self.waiting.popleft()
        except OSError as error:
            self._next = time.monotonic() + PATIENCE
            files.fail(error, self.path)

    def state(self) -> dict[str, Any]:
        """Columns and number of rows."""
        return {
            "columns": [
                *self._columns,
                *dict.fromkeys(n for row in self.waiting for n in row if n not in self._columns),
            ],
            "rows": self.rows,
        }

    def cut(self, columns: list[str], rows: int) -> int:
        """Cut the file to these columns and this number of rows; return its number of rows, which may be smaller."""
        self.flush()
        found = _read(self.path)
        before, lines, whole = found if found is not None else ([STEP, TIME], [], False)
        if before != columns or len(lines) > rows or not whole:
            places = [before.index(name) if name in before else -1 for name in columns]
            rest = lines[:rows]
            if before != columns:
                rest = [",".join(["" if i < 0 else parts[i] for i in places]) for parts in map(cells, rest)]
            self._replace(columns, rest)
        return self.rows

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _add(self, new: list[str]) -> None:
        """Rewrite the file with more columns: `epoch` after `step`, all others at the end."""
        before, lines, _ = _read(self.path) or ([STEP, TIME], [], True)
        head = [STEP, EPOCH] if EPOCH in new or EPOCH in before else [STEP]
        columns = [*head, *(n for n in [*before, *new] if n not in head)]
        at = next(
            (i for i, name in enumerate(columns) if name != (before[i] if i < len(before) else None)), len(before)
        )
        tail = "," * (len(columns) - len(before))
        if at == len(before):
            lines = [line + tail for line in lines]
        else:
            places = [before.index(name) if name in before else -1 for name in columns]
            lines = [",".join(["" if i < 0 else parts[i] for i in places]) for parts in map(cells, lines)]
        rows = self.rows
        self._replace(columns, lines)
        self.rows = rows

    def _replace(self, columns: list[str], lines: list[str]) -> None:
        head = ",".join(name if re.fullmatch(r"[\w./:() %-]+", name) else quoted(name) for name in columns)
        files.write(self.path, "".join(line + "\n" for line in [head, *lines]).encode())
        self.columns, self.rows, self.last = columns, len(lines), lines[-1] if lines else ""
        self._open()

    def _open(self) -> None:
        self.close()
        self._descriptor = files.open_plain(self.path, os.O_WRONLY | os.O_APPEND)
        self._size = os.fstat(self._descriptor).st_size

    def _put(self, row: dict[str, str]) -> None:
        """Append a row; rewrite the file if the row would cross the end of a page."""
        line = self._line(row)
        data = line.encode() + b"\n"
        length, left = len(data), PAGE - self._size % PAGE
        if length <= WIDE:
            self._longest = max(self._longest, length + 16)
            if length > left:
                rows = self.rows
                self._replace(self.columns, [*(_read(self.path) or ([], [], True))[1], line])
                self.rows = rows
                return
            if left - length < self._longest:
                line = self._line({**row, TIME: row[TIME] + "0" * (left - length)})
                data = line.encode() + b"\n"
        self._write(data)
        self.last = line

    def _line(self, row: dict[str, str]) -> str:
        return ",".join([row.get(name, "") for name in self._columns])

    def _write(self, data: bytes) -> None:
        """Append all or nothing: a partial line on a full disk is cut off again."""
        done = 0
        try:
            while done < len(data):
                done += os.write(self._descriptor, data[done:] if done else data)
        except OSError:
            if done:
                os.ftruncate(self._descriptor, self._size)
            raise
        self._size += done


def cells(line: str) -> list[str]:
    """Split a line into its cells as written, with quotes.

    >>> cells('1,"a,b",')
    ['1', '"a,b"', '']
    """
    return CELL.findall(line) if '"' in line else line.split(",")


def _read(path: Path) -> tuple[list[str], list[str], bool] | None:
    """Return (columns, lines, True if the file is intact), or None without a file.

    A torn last line and lines of another length are dropped.
    """
    try:
        with os.fdopen(files.open_plain(path, os.O_RDONLY), "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return None
    *lines, torn = data.decode("utf-8-sig", "replace").replace("\r", "").split("\n")
    if not lines:
        return None
    columns = [name[1:-1].replace('""', '"') if name[:1] == '"' else name for name in cells(lines[0])]
    if columns[0] != STEP or TIME not in columns or len(set(columns)) < len(columns):
        raise ValueError(
            f"{path} was not written by a Run: its first line does not name the columns step and time. "
            "Move the file away, or begin another run"
        )
    good = [line for line in lines[1:] if len(cells(line)) == len(columns)]
    if len(good) < len(lines) - 1:
        warnings.warn(f"{path}: {len(lines) - 1 - len(good)} damaged rows are left out", RuntimeWarning, stacklevel=4)
    return columns, good, not torn and len(good) == len(lines) - 1 and b"\r" not in data


def checked_state(state: Any) -> tuple[list[str], int]:
    """Return the parts of a `Metrics.state()`. ValueError if it is something else."""
    columns, rows = (state.get("columns"), state.get("rows")) if isinstance(state, Mapping) else (None, None)
    if not (
        isinstance(columns, list)
        and all(isinstance(name, str) for name in columns)
        and columns[:1] == [STEP]
        and TIME in columns
        and len(set(columns)) == len(columns)
        and type(rows) is int
        and rows >= 0
    ):
        raise ValueError(
            "load_state_dict(): the state of a Run is a dict of `columns` (names, of which step is the first) "
            "and `rows` (a number)"
        )
    return columns, rows
