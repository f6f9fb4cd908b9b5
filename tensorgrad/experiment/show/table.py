"""Show several runs as a table in the terminal."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from ...messages import tables
from ...messages.escaping import escaped
from ...messages.tables import columns
from ...viz.text import shorten
from .reading import Record, better, duration, metrics, names, setting, settings, winners

WIDEST, GAP = 32, 2  # of a column; between columns


def table(records: Sequence[Record], width: int | None = None) -> str:
    """Return a table with a row for each run: status, steps, time, differing settings, and the best and last value of
    each metric.

    width: columns of the terminal, by default from COLUMNS or the terminal. Columns that do not fit follow below, with
    the names of the runs repeated. Text from files is escaped. `*` marks the best value of a column.
    """
    records = list(records)
    if not records:
        return "no runs"
    width = max(shutil.get_terminal_size((100, 24)).columns if width is None else width, 20)
    first, *rest = _columns(records)
    most = max(width // 2 - GAP, 8)
    blocks = _blocks(
        [_cut(cell, min(most, WIDEST)) for cell in first],
        [[_cut(cell, min(width // 2, WIDEST)) for cell in c] for c in rest],
        width,
    )
    notes = [
        f"{name}: {problem}"
        for name, record in zip(names(records), records, strict=True)
        for problem in record.problems
    ]
    if any(record.series for record in records):
        notes.insert(0, "metrics: best / last (only the last where better and worse are not known); * best of the runs")
    return "\n\n".join([*blocks, *(["\n".join(_wrapped(note, width) for note in notes)] if notes else [])])


def _columns(records: list[Record]) -> list[list[str]]:
    """Return the columns as text, each with its heading first."""
    found = [
        ["run", *names(records)],
        ["status", *(record.status for record in records)],
        ["step", *("" if record.step is None else str(record.step) for record in records)],
        ["time", *(duration(record.seconds) for record in records)],
    ]
    if len(records) > 1:
        found += [[escaped(key), *map(setting, values)] for key, values in settings(records)[0].items()]
    for name in metrics(records):
        best, last = [record.best(name) for record in records], [record.last(name) for record in records]
        top = winners([None if b is None else b[0] for b in best], better(name))
        cells = [
            _figure(value) if b is None else f"{_figure(b[0])}{'*' * (i in top)} / {_figure(value)}"
            for i, (b, value) in enumerate(zip(best, last, strict=True))
        ]
        way = better(name)
        found.append([escaped(name) + (f" ({way})" if way else ""), *cells])
    return found


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _cut(text: str, most: int) -> str:
    text = shorten(text, most)
    while columns(text) > most:  # for letters that are two columns wide
        text = shorten(text, len(text) - 1)
    return text


def _blocks(first: list[str], rest: list[list[str]], width: int) -> list[str]:
    """Return tables of limited width, each with the first column."""
    lead = max(map(columns, first))
    blocks, chosen, used = list[str](), list[list[str]](), lead
    for column in rest:
        needed = GAP + max(map(columns, column))
        if chosen and used + needed > width:
            blocks.append(_lines([first, *chosen]))
            chosen, used = [], lead
        chosen.append(column)
        used += needed
    return [*blocks, _lines([first, *chosen])]


def _lines(table: list[list[str]]) -> str:
    return "\n".join(tables.table(list(zip(*table, strict=True)), gap=" " * GAP, rule="-"))


def _wrapped(text: str, width: int) -> str:
    import textwrap

    return textwrap.fill(escaped(text), width, subsequent_indent="  ")
