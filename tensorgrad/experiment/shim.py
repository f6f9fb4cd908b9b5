"""init, log, finish: the calls that many training scripts already make. All data remain in a local directory.

>>> import tempfile
>>> from tensorgrad import experiment
>>> with tempfile.TemporaryDirectory() as save:
...     run = experiment.init(project="mnist", config={"lr": 0.1}, dir=save, quiet=True)
...     experiment.log({"loss": 0.5})
...     experiment.finish()
...     print(run.path.relative_to(save).as_posix(), run.config)
mnist/run-1 {'lr': 0.1}
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .run import Run

_OPTIONS = ("overwrite", "events", "snapshot", "quiet", "labels")
_LABELS = ("tags", "notes", "group", "job_type")
_ACCOUNT = (
    "entity",
    "mode",
    "anonymous",
    "settings",
    "save_code",
    "sync_tensorboard",
    "force",
    "reinit",
    "id",
)  # options of services with accounts, ignored here
_current: Run | None = None


def init(
    project: str | None = None,
    name: str | None = None,
    config: Mapping[str, Any] | None = None,
    dir: Any = "save",
    *,
    resume: bool | str | None = None,
    **options: Any,
) -> Run:
    """Begin a run in `dir/project/name`, and end the one before. Without a name, the next free of `run-1`, `run-2`, …

    resume: True, or any of "allow", "must" and "auto", resumes the run of this name. `tags`, `notes`, `group` and
    `job_type` are recorded in run.json; `entity`, `mode` and other options of accounts have no effect; options of `Run`
    are passed to it. Returns the Run.
    """
    global _current
    labels = dict(options.pop("labels", None) or {}) | {
        k: v for k in _LABELS if (v := options.pop(k, None)) is not None
    }
    rest = {k: v for k, v in options.items() if k not in _ACCOUNT}
    if unknown := next((k for k in rest if k not in _OPTIONS), None):
        raise TypeError(f"init() got an unexpected keyword argument {unknown!r}")
    if resume not in (None, False, True, "allow", "must", "auto", "never"):
        raise ValueError(f"init(): resume must be a bool, 'allow', 'must', 'auto' or 'never', but got {resume!r:.60}")
    again = resume not in (None, False, "never")
    home = Path(dir, *(_part(p, what) for p, what in ((project, "project"), (name, "name")) if p is not None))
    if again and name is None and resume != "auto":
        raise ValueError("init(): resume needs the name of the run to continue")
    if resume == "must" and not (home / "run.json").exists():
        raise FileNotFoundError(f"init(): there is no run to resume in {home}")
    if _current is not None:
        _current.finish()
    if labels:
        rest["labels"] = labels
    _current = Run(home, config, resume=again, **rest) if name is not None else _numbered(home, config, again, rest)
    return _current


def log(values: Mapping[str, Any], step: int | None = None, commit: bool | None = None) -> None:
    """Log a row to the run of `init`; the default step is the next. RuntimeError before `init`.

    commit=False, with which services wait for more values of a step, is not needed: rows of one step may be many.
    """
    _running("log").log(step, values)


def finish(exit_code: int | None = None) -> None:
    """End the run of `init`, as failed if the exit code is not 0. Does nothing without a run."""
    global _current
    run, _current = _current, None
    if run is not None:
        run.finish("failed" if exit_code else "finished")


def _running(what: str) -> Run:
    if _current is None:
        raise RuntimeError(f"{what}() needs a run: call init(project=…, config=…) first")
    return _current


def _part(name: Any, what: str) -> str:
    """Return a name as a single component of a path."""
    text = str(name)
    if not text or text in (".", "..") or re.search(r"[/\\\0]", text) or text.startswith("."):
        raise ValueError(
            f"init(): {what} must be the name of a directory without separators and leading dots, but got {text!r:.80}"
        )
    return text


def _numbered(home: Path, config: Any, again: bool, rest: dict[str, Any]) -> Run:
    """Return the next free run-<k>; with `again`, the last existing one."""
    found = (
        [int(m[1]) for m in map(re.compile(r"run-(\d{1,9})").fullmatch, os.listdir(home)) if m] if home.is_dir() else []
    )
    number = max(found, default=0)
    if again and number:
        return Run(home / f"run-{number}", config, resume=True, **rest)
    while True:
        number += 1
        try:
            return Run(home / f"run-{number}", config, **rest)
        except (FileExistsError, BlockingIOError):  # another process has just begun it
            if number > max(found, default=0) + 1000:
                raise
