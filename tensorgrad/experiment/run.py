"""Run: the directory that a training writes, in any loop."""

from __future__ import annotations

import atexit
import errno
import operator
import os
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..messages.escaping import escaped
from . import directory, files, provenance
from . import events as _events
from .config import ConfigError, plain
from .metrics import EPOCH, MOST_WAITING, STEP, TIME, Metrics, cell, checked_state, column, number

_OPEN: weakref.WeakSet[Run] = weakref.WeakSet()
ENDS = {KeyboardInterrupt: "interrupted", SystemExit: "finished", GeneratorExit: "finished"}


class Run:
    """A training on disk: configuration, metrics, log and provenance in one directory, for any loop.

    path: the directory to create. An existing one that is not empty is a FileExistsError, unless `resume=True` resumes
    it (an empty path begins a new run) or `overwrite=True` removes the run in it first; only files of a Run are
    removed. config: a mapping of what JSON has (tuples become lists, paths text), kept in `config.yaml` (`config.json`
    without PyYAML); None, when resuming, is the one that is there. events: scalars for TensorBoard, in `tensorboard/`;
    a name writes them to `<name>/version_<k>`, with `hparams.yaml` beside them; False none. snapshot: a directory of
    source code, of which `src/` becomes a copy. quiet: `print` writes to `log.txt` only. labels: recorded in
    `run.json`.

    Files: `run.json` (command, packages, git, times, status), `config.yaml`, `log.txt`, `metrics.csv`, and folders
    `ckpt` and `img`, which are yours. A run is written by a single process at a time: another gets a BlockingIOError,
    and processes forked from this one a RuntimeError.

    On a full disk, the constructor raises an OSError that names the path. `log` warns and keeps the rows until there is
    space again, so that training continues; `finish` raises if rows are still waiting.

    >>> import tempfile
    >>> from tensorgrad.experiment import Run
    >>> with tempfile.TemporaryDirectory() as save:
    ...     with Run(f"{save}/mnist", config={"lr": 0.1}, events=False) as run:
    ...         for step in range(2):
    ...             run.log(step, loss=1 / (step + 1))
    ...     print(sorted(p.name for p in run.path.iterdir() if p.is_file() and p.suffix in (".csv", ".txt")))
    ['log.txt', 'metrics.csv']
    """

    path: Path
    config: dict[str, Any] | None
    resumed: bool

    def __init__(
        self,
        path: Any,
        config: Mapping[str, Any] | None = None,
        *,
        resume: bool = False,
        overwrite: bool = False,
        events: bool | str = True,
        snapshot: Any = None,
        quiet: bool = False,
        labels: Mapping[str, Any] | None = None,
    ) -> None:
        if resume and overwrite:
            raise ValueError("Run(): resume continues a run and overwrite removes it; give one of them")
        self.path, self.quiet, self.status = directory.as_path(path), bool(quiet), "starting"
        given = None if config is None else plain(_mapping(config))
        noted = None if labels is None else plain(labels)
        source = None if snapshot is None else directory.as_path(snapshot)
        self._began = time.monotonic()
        self._turn, self._warned, self._process = threading.RLock(), set[str](), os.getpid()
        self._directory = directory.Directory(self.path, bool(resume), bool(overwrite))
        try:
            self.resumed = self._directory.existed
            self._tell_provenance(source, noted)
            self._keep_config(given)
            self._open(events)
            if source is not None:
                for line in provenance.snapshot(source, self.path):
                    self._note(line)
        except BaseException as error:
            self._abandon(error)
            raise
        self.status = "running"
        self._names: dict[str, str] = {}
        self._error_before = _last_error()
        _OPEN.add(self)
        atexit.register(self._at_exit)

    # ── logging ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def log(self, step: Any = None, values: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Add a row to metrics.csv, and its numbers to TensorBoard.

        `log(step, loss=0.5)` or `log(step, {"train/loss": 0.5})`.

        step: an int; without one, the step after the last. Values are numbers, tensors and arrays without dimensions,
        bools, short texts, and mappings of such: `loss={"train": 0.5}` is the column `loss/train`. `epoch` has its
        column after `step`. NaN and infinities are kept. TypeError, which names the metric, for all else; nothing is
        logged then.
        """
        if isinstance(step, Mapping) and values is None:
            step, values = None, step
        if values is not None:
            named = {**values, **named}
        if STEP in named and step is None:
            step = named.pop(STEP)
        with self._turn:
            self._check()
            row, scalars = self._row(named)
            at = self._step(step)
            row[STEP], row[TIME] = str(at), f"{self._time + time.monotonic() - self._began:.3f}"
            try:
                self._metrics.append(row)
                if self._warned and not self._metrics.waiting:
                    self._warned.discard("rows")
            except OSError as error:
                self._wait(error)
            self._last = at
            if scalars and self._events is not None:
                self._tell(at, scalars)

    def log_hyperparams(self, params: Mapping[str, Any]) -> Path:
        """Write `hparams.yaml` beside the events (if these have no name: into the run's directory), and return its
        path.

        Values that a configuration cannot hold, such as dtypes, are written as text.
        """
        named = self._events is not None and self._events.path.name.startswith("version_")
        folder = self._events.path if self._events is not None and named else self.path
        return files.write_config(folder, {str(k): _plain_or_text(v) for k, v in _mapping(params).items()}, "hparams")

    def print(self, *parts: Any) -> None:
        """Write a line to log.txt, and to the screen unless the run is quiet.

        Characters that move the cursor or colour are escaped. Further lines of a text are indented, so that none of
        them looks like one that was logged.
        """
        line = escaped(" ".join(map(str, parts)).replace("\n", "\n    "), keep="\n")
        self._note(line)
        if not self.quiet:
            _show(line)

    def _row(self, named: Mapping[str, Any], before: str = "") -> tuple[dict[str, str], list[tuple[str, float]]]:
        """Return (cells by their columns, scalars for TensorBoard)."""
        row, scalars = dict[str, str](), list[tuple[str, float]]()
        for name, value in named.items():
            full = before + name if before else name
            if type(value) is not float:
                if isinstance(value, Mapping):
                    inner, more = self._row(value, f"{full}/")
                    if not row.keys().isdisjoint(inner):
                        raise ValueError(f"log(): {escaped(next(iter(row.keys() & inner.keys())))!r} is given twice")
                    row.update(inner)
                    scalars += more
                    continue
                value = number(str(full), value)
            key = self._names.get(full)
            if key is None:
                key = column(full)
                if key in (STEP, TIME):
                    raise ValueError(f"log(): the column {key!r} is the run's own; log(step, …) gives the step")
                if len(self._names) < 100_000:
                    self._names[full] = key
            if key in row:
                raise ValueError(f"log(): {key!r} is given twice")
            row[key] = cell(value)
            if key != EPOCH and not isinstance(value, str):
                scalars.append((full, value))
        return row, scalars

    def _step(self, step: Any) -> int:
        if step is None:
            return self._last + 1
        try:
            at = operator.index(step)
            if abs(at) < 1 << 63:
                return at
            raise ValueError("log(): the step must fit into 64 bits")
        except TypeError:
            raise TypeError(
                f"log(): the step must be an int, but got {escaped(repr(step), 60)} of type {type(step).__name__}"
            ) from None

    def _check(self) -> None:
        if self.status != "running":
            name = f"log(): the run {escaped(self.path.name)!r}"
            if self.status == "forked":
                raise RuntimeError(f"{name} is written by process {self._process}; processes forked from it do not log")
            raise RuntimeError(f"{name} has ended ({self.status})")

    def _wait(self, error: OSError) -> None:
        """Warn that rows wait for space on the disk."""
        if len(self._metrics.waiting) > MOST_WAITING:
            raise error
        self._warn("rows", f"{error}. The run goes on; rows wait in memory until there is room")

    def _tell(self, step: int, scalars: list[tuple[str, float]]) -> None:
        try:
            self._events.add(step, scalars)  # type: ignore[union-attr]
        except (OSError, ValueError) as error:
            self._events = None
            self._warn("events", f"No more events for TensorBoard are written to {self.path}: {error}")

    def _warn(self, about: str, message: str) -> None:
        """Warn once about a subject."""
        if about not in self._warned:
            self._warned.add(about)
            warnings.warn(message, RuntimeWarning, stacklevel=4)

    def _note(self, line: str) -> None:
        """Write a line to log.txt."""
        try:
            files.append(self.path / directory.LOG, (line + "\n").encode("utf-8", "backslashreplace"))
        except OSError as error:
            self._warn("log", f"{self.path / directory.LOG} is not written: {error.strerror or error}")

    # ── checkpoints ───────────────────────────────────────────────────────────────────────────────────────────────────

    def state_dict(self) -> dict[str, Any]:
        """Return the state of metrics.csv: its columns and the number of its rows."""
        with self._turn:
            return self._metrics.state()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state: later rows and columns of metrics.csv are cut, and TensorBoard drops them.

        ValueError for an invalid state.
        """
        columns, rows = checked_state(state)
        with self._turn:
            self._check()
            before = self._metrics.rows
            kept = self._metrics.cut(columns, rows)
            if kept < rows and self.resumed:
                self._warn(
                    "missing",
                    f"{self._metrics.path} has {kept} of the {rows} rows that the checkpoint knows of",
                )
            self._go_on()
            if before > kept:
                self._note(f"back to row {kept} (step {self._last}); rows cut from metrics.csv: {before - kept}")
            if self._events is not None and (self.resumed or before):
                self._events.restart(self._last + 1)

    def _go_on(self) -> None:
        """Continue time and steps after the last row."""
        self._began, self._time = time.monotonic(), self._metrics.value(TIME) or 0.0
        last = self._metrics.value(STEP)
        self._last = -1 if last is None else int(last)

    # ── beginning and end ─────────────────────────────────────────────────────────────────────────────────────────────

    def _tell_provenance(self, source: Path | None, labels: Any) -> None:
        """Write run.json, with an entry for each process that wrote the run."""
        about = provenance.about(source)
        self._about: dict[str, Any] = {}
        if self.resumed:
            try:
                self._about = files.read_json(self.path / directory.RUN)
            except (OSError, ValueError) as error:
                self._note(f"run.json of the earlier process cannot be read: {escaped(error)}")
        sessions = self._about.get("sessions")
        self._about = {
            "format": directory.FORMAT,
            "name": self.path.name,
            "status": "running",
            "started": self._about.get("started") or about["time"],
            "ended": None,
            **{k: v for k, v in about.items() if k != "time"},
            "labels": labels if labels is not None else self._about.get("labels"),
            "sessions": [
                *(sessions if isinstance(sessions, list) else []),
                {k: v for k, v in about.items() if k != "packages"},
            ],
        }
        files.write_json(self.path / directory.RUN, self._about)
        self._note(f"{'resumed' if self.resumed else 'started'} {about['time']}: {escaped(' '.join(about['command']))}")

    def _keep_config(self, given: dict[str, Any] | None) -> None:
        before = None
        if self.resumed:
            try:
                before = files.read_config(self.path)
            except (OSError, ValueError) as error:
                if given is None:
                    raise ValueError(
                        f"{self.path}: {escaped(error)}. Give the configuration, which then replaces it"
                    ) from None
        self.config = before if given is None else given
        if given is None or given == before:
            return
        files.write_config(self.path, given)
        if before is not None:
            old, new = dict(files.flattened(before)), dict(files.flattened(given))
            for key in dict.fromkeys((*old, *new)):
                if old.get(key, files) != new.get(key, files):
                    self._note(
                        escaped(
                            f"config: {key} = {new.get(key, '(gone)')!r}, before {old.get(key, '(nothing)')!r}", 300
                        )
                    )

    def _open(self, events: bool | str) -> None:
        self._metrics = Metrics(self.path / directory.METRICS)
        self._go_on()
        folder = _events.folder(self.path, events)
        try:
            self._events = None if folder is None else _events.Events(folder, self._last + 1 if self.resumed else None)
        except OSError as error:
            files.fail(error, error.filename or folder)
        if isinstance(events, str):
            self.log_hyperparams(self.config or {})

    def finish(self, status: str = "finished") -> None:
        """End the run with a status, which `show` displays; nothing is logged afterwards. Later calls do nothing.

        OSError if waiting rows or run.json cannot be written.
        """
        if self.status != "running":
            return
        trouble = None
        with self._turn:
            self.status = str(status)
            atexit.unregister(self._at_exit)
            _OPEN.discard(self)
            try:
                self._metrics.flush()
            except OSError as error:
                trouble = OSError(
                    error.errno,
                    f"Rows that could not be written and are lost: {len(self._metrics.waiting)}. {error.strerror}",
                    error.filename,
                )
            try:
                if self._events is not None:
                    self._events.close()
                files.write_json(
                    self.path / directory.RUN,
                    {**self._about, "status": escaped(self.status, 40), "ended": provenance.now()},
                )
            except OSError as error:
                trouble = trouble or error
            self._metrics.close()
            self._directory.release()
        if trouble is not None:
            raise trouble

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        status = "finished" if kind is None else next((s for k, s in ENDS.items() if issubclass(kind, k)), "failed")
        if status == "failed":
            self._note(f"failed: {kind.__name__}: {escaped(error, 500)}")  # type: ignore[union-attr]
        try:
            self.finish(status)
        except OSError as trouble:
            if kind is None:
                raise
            warnings.warn(str(trouble), RuntimeWarning, stacklevel=2)

    def _at_exit(self) -> None:
        """Finish the run when the program ends without `finish`, normally or by an uncaught error."""
        error = _last_error()
        failed = error is not None and error is not self._error_before
        self.finish(("interrupted" if isinstance(error, KeyboardInterrupt) else "failed") if failed else "finished")

    def _abandon(self, error: BaseException) -> None:
        """Close open files when the constructor fails."""
        for part in (getattr(self, "_metrics", None), getattr(self, "_events", None)):
            if part is not None:
                part.close()
        if hasattr(self, "_about") and (
            not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT)
        ):
            try:
                files.write_json(
                    self.path / directory.RUN, {**self._about, "status": "failed", "ended": provenance.now()}
                )
            except OSError:
                pass
        self._directory.release()

    def _leave(self) -> None:
        """Close the files silently in a forked process."""
        self._turn = threading.RLock()
        self.status, self._events = "forked", None
        self._metrics.close()
        self._directory.release()
        atexit.unregister(self._at_exit)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, {self._metrics.rows} rows, {self.status})"


def _mapping(config: Any) -> Mapping[str, Any]:
    if isinstance(config, Mapping):
        return config
    if type(config).__name__ == "Namespace" and hasattr(config, "__dict__"):  # argparse's
        return vars(config)
    raise TypeError(f"config must be a mapping, but got {type(config).__name__}")


def _plain_or_text(value: Any) -> Any:
    try:
        return plain(value)
    except ConfigError:
        return escaped(value, 200)


def _last_error() -> BaseException | None:
    return getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)


def _show(line: str) -> None:
    """Print a line, above a progress bar if there is one."""
    bar = sys.modules.get("tqdm")
    try:
        if bar is not None and getattr(bar.tqdm, "_instances", None):
            bar.tqdm.write(line)
        else:
            print(line, flush=True)
    except UnicodeEncodeError:  # a terminal that lacks characters
        print(line.encode("ascii", "backslashreplace").decode(), flush=True)


def _forked() -> None:
    for run in list(_OPEN):
        run._leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
