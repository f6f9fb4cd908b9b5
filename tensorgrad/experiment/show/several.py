"""Collect the runs of several directories: runs, sweeps, and folders of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...messages.escaping import escaped
from .. import files, sweeps
from ..config import load, override
from ..launch import OURS
from ..registry import alternatives
from .reading import Record, better, find, metrics, read, settings

MANY = 6  # settings up to which a table shows all of them


def gathered(paths: Iterable[Any]) -> list[Record]:
    """Return a record for each run in these directories, including runs that a sweep has not begun.

    Damage is reported in the records.

    FileNotFoundError for a path that does not exist.
    """
    records: dict[Path, Record] = {}
    for path in map(Path, paths):
        for folder in find(path):
            records.setdefault(folder.resolve(), _read(folder))
        for sweep in [path, *_below(path)]:
            for record in _planned(sweep):
                records.setdefault(record.path, record)
    return list(records.values())


def _below(path: Path) -> list[Path]:
    try:
        return sorted(inner for inner in path.iterdir() if (inner / sweeps.PLAN).is_file())
    except OSError:
        return []


def _read(folder: Path) -> Record:
    try:
        record = read(folder)
        if record.config is not None:
            record.config = {key: value for key, value in record.config.items() if key not in OURS}
        return record
    except Exception as error:  # an unreadable directory must not hide the others
        return Record(folder, "unreadable", problems=[escaped(f"cannot be read: {error}", 300)])


def _planned(sweep: Path) -> list[Record]:
    """Return the planned runs of a sweep; empty if its plan cannot be read."""
    try:
        runs = [(run["name"], run["settings"], run["status"]) for run in files.read_json(sweep / sweeps.PLAN)["runs"]]
        config = load(sweep / sweeps.CONFIG)
        return [
            Record(
                (sweep / name).resolve(),
                escaped(status, 40),
                config=override(config, settings),
                problems=[] if status == "waiting" else ["there are no files of a run"],
            )
            for name, settings, status in runs
            if name == Path(name).name
        ]
    except (OSError, ImportError, ValueError, KeyError, TypeError):
        return []


def only(records: list[Record], metric: str) -> list[Record]:
    """Return the records with this metric only, the best first, those without it last.

    ValueError for a metric that no run has.
    """
    if metric not in (known := metrics(records)):
        raise ValueError(f"no run has the metric {escaped(metric)!r}; {alternatives(metric, known, 'there are')}")
    way = better(metric)

    def place(record: Record) -> float:
        value = record.last(metric) if way is None else (record.best(metric) or (None,))[0]
        return np.inf if value is None else -value if way == "max" else value

    for record in records:
        record.series = {name: series for name, series in record.series.items() if name == metric}
        record.texts = {}
    return sorted(records, key=place)


def for_the_terminal(records: list[Record]) -> tuple[list[Record], int]:
    """Return (records, number of settings left out): if many settings differ, only those that all records have are
    kept."""
    differing, common = settings(records)
    partial = {key for key, values in differing.items() if any(value is ... for value in values)}
    if len(differing) <= MANY or not partial:
        return records, 0
    kept = {key: values for key, values in differing.items() if key not in partial}
    return [
        replace(record, config=common | {key: values[i] for key, values in kept.items()})
        for i, record in enumerate(records)
    ], len(partial)
