"""Show several runs on a page that works offline: curves, best values, differences of their configurations.

Tables and curves work without the script. The script adds smoothing, scales, axes, values under the pointer or the
cursor keys, a legend that hides runs, and sorting.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ...viz import html
from ...viz.text import escape, number, script, shorten
from .. import files
from . import curves
from .reading import Record, better, duration, metrics, names, setting, settings, winners

MOST_RUNS, MOST_CHARTS, MOST_COLUMNS, MOST_CURVES = 100, 60, 40, 1_500  # limits of a page
POINTS, STATIC, MOST_POINTS = 28_000, 9_000, 800  # points in all, points in curves without a script, points of a curve
COLOURS, DASHES = 7, ("", "7 4", "2 4", "9 3 2 3")
NAME, VALUE = 60, 80  # characters of a name, of a setting
ICON = {"max": "↑", "min": "↓"}
WORDS = {"max": "higher is better", "min": "lower is better"}


def page(records: Sequence[Record], path: Any = None) -> str:
    """Return an HTML page of several runs, which loads nothing from outside; also write it to `path` if that is given.

    Curves of all runs share a chart for each metric; long curves are thinned to the least and greatest values of equal
    parts, so that the page is smaller than 2 MB. Text from files is escaped. At most 100 runs, 60 metrics, 40 settings
    and 1,500 curves are shown, and the page lists what it leaves out. OSError if the file cannot be written.
    """
    text = _Page(list(records)).text()
    if path is not None:
        files.write(path, text.encode())
    return text


@cache
def _beside(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


class _Page:
    """The parts of the page."""

    def __init__(self, records: list[Record]) -> None:
        self.left_out = list[str]()
        self.records = self.some(records, MOST_RUNS, "runs")
        self.names = names(self.records)
        self.short = [shorten(name, NAME) for name in self.names]
        each = MOST_CURVES // max(len(self.records), 1)
        self.columns = min(MOST_COLUMNS, each)
        self.metrics = self.some(metrics(self.records), min(MOST_CHARTS, each), "metrics")
        several = sum(name in record.series for record in self.records for name in self.metrics)
        self.curves = {name: self.drawn(name, POINTS // max(several, 1)) for name in self.metrics}
        self.static = max(10, min(STATIC // max(several, 1), 200))

    def some(self, items: list[Any], most: int, what: str) -> list[Any]:
        """Return at most `most` items, and note how many were left out."""
        if len(items) > most:
            self.left_out.append(f"The first {most} of {len(items)} {what} are shown.")
        return items[:most]

    def drawn(self, name: str, most: int) -> list[curves.Curve]:
        most = max(10, min(most, MOST_POINTS))
        return [
            curves.curve(i, record, record.series[name], most)
            for i, record in enumerate(self.records)
            if name in record.series
        ]

    def text(self) -> str:
        count = len(self.records)
        title = (
            shorten(", ".join(self.short[:3]), 90) + (f" and {count - 3} more" if count > 3 else "")
            if count
            else "No runs"
        )
        parts = [
            f'<header><h1>{escape(title)}</h1><p class="muted">{self.summary()}</p></header>',
            self.notes(),
            self.bar(),
            self.charts(),
            self.best(),
            self.differences(),
            self.about(),
            self.common(),
        ]
        data = f'<script type="application/json" id="data">{script(self.data())}</script>'
        body = f'<main class="runs">{"".join(parts)}</main>\n{data}'
        return html.page(title, body, _beside("page.css"), _beside("page.js"))

    def summary(self) -> str:
        states = [record.status for record in self.records]
        told = [f"{states.count(state)} {escape(state)}" for state in dict.fromkeys(states)]
        return " · ".join([_count(len(self.records), "run"), _count(len(self.metrics), "metric"), *told[:6]])

    def notes(self) -> str:
        problems = [
            f"{name}: {shorten(problem, 300)}"
            for name, record in zip(self.short, self.records, strict=True)
            for problem in record.problems[:5]
        ]
        lines = "".join(f"<li>{escape(line)}</li>" for line in [*problems, *self.left_out])
        return f'<ul class="notes">{lines}</ul>' if lines else ""

    def bar(self) -> str:
        """Return the controls, which the script shows, and the legend."""
        keys = "".join(
            f'<li><button type="button" class="key" data-run="{i}" aria-pressed="true" disabled>{_swatch(i)}'
            f'<span class="name">{escape(name)}</span></button></li>'
            for i, name in enumerate(self.short)
        )
        epochs = any(curve.epochs is not None for drawn in self.curves.values() for curve in drawn)
        controls = CONTROLS.replace("EPOCHS", "" if epochs else " disabled")
        controls = controls.replace("WHICH", WHICH if len(self.records) > 1 else "")
        legend = f'<ul class="legend" aria-label="Runs">{keys}</ul>'
        whole = f'<section class="bar" aria-label="Runs and scales">{controls}{legend}</section>'
        return whole if self.metrics else ""

    # ── charts ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def charts(self) -> str:
        figures = "".join(self.chart(name, drawn) for name, drawn in self.curves.items())
        pairs = " pairs" * (len(self.curves) in (2, 4))
        return (
            f'<section class="charts{pairs}" aria-label="Curves">{figures}</section>'
            if figures
            else '<p class="muted">No metrics have been logged yet.</p>'
        )

    def chart(self, name: str, drawn: list[curves.Curve]) -> str:
        """Return a chart for readers without the script: values over steps."""
        thin = [curves.curve(c.run, self.records[c.run], self.records[c.run].series[name], self.static) for c in drawn]
        x, y = curves.reach([c.steps for c in thin]), curves.reach([c.values for c in thin], 0.04)
        lines = "".join(
            f'<path class="c{c.run % COLOURS}" {_dash(c.run)}d="{curves.path(c.steps, c.values, x, y)}"/>' for c in thin
        )
        ys = [(v, 1 - curves.part(v, y)) for v in curves.ticks(*y, 5)]
        xs = [(v, curves.part(v, x)) for v in curves.ticks(*x, 5)]
        grid = "".join(f"M0 {at * curves.SIDE:.0f}H{curves.SIDE}" for _, at in ys)
        labels = "".join(f'<span class="y" style="top:{at:.2%}">{_tick(v)}</span>' for v, at in ys)
        labels += "".join(f'<span class="x" style="left:{at:.2%}">{_tick(v)}</span>' for v, at in xs)
        gaps = sum(c.gaps for c in drawn)
        note = f'<small class="gaps">{_count(gaps, "value")} not finite</small>' if gaps else ""
        way = better(name)
        hint = f'<small title="{WORDS[way]}">{ICON[way]}<span class="heard"> {WORDS[way]}</span></small>' if way else ""
        short = escape(shorten(name, NAME))
        return (
            f'<figure data-metric="{self.metrics.index(name)}"><figcaption><b>{short}</b>{hint}{note}</figcaption>'
            f'<div class="plot" role="group" aria-label="{short} over steps">'
            f'<svg viewBox="0 0 {curves.SIDE} {curves.SIDE}" preserveAspectRatio="none" aria-hidden="true">'
            f'<path class="grid" d="{grid}"/><g class="lines">{lines}</g></svg>'
            f'<div class="labels">{labels}</div></div><p class="axis">step</p></figure>'
        )

    def data(self) -> dict[str, Any]:
        """Return the points that the script draws."""
        charts = [
            [
                [
                    c.run,
                    _numbers(c.steps),
                    0 if c.epochs is None else _numbers(c.epochs),
                    _numbers(c.times),
                    _numbers(c.values),
                ]
                for c in drawn
            ]
            for drawn in self.curves.values()
        ]
        return {
            "runs": self.short,
            "metrics": [shorten(name, NAME) for name in self.metrics],
            "charts": charts,
            "dashes": DASHES,
            "colours": COLOURS,
        }

    # ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def best(self) -> str:
        """Return the table of the best value of each metric, or the last if the better direction is unknown."""
        if not self.metrics:
            return ""
        heads, columns = [], []
        for name in self.metrics[: self.columns]:
            way = better(name)
            found = [record.best(name) for record in self.records]
            values = [b[0] for b in found if b] if way else []
            shown = (
                [None if b is None else b[0] for b in found]
                if values
                else [record.last(name) for record in self.records]
            )
            top = winners(shown, way if values else None)
            heads.append((shorten(name, NAME), f"best {ICON[way]}" if way else "last"))
            columns.append([_value(v, i in top, found[i]) for i, v in enumerate(shown)])
        return _table("Best values", heads, columns, self.short)

    def differences(self) -> str:
        if len(self.records) < 2:
            return ""
        differing = settings(self.records)[0]
        if not differing:
            return (
                '<section class="table"><h2>Configuration</h2><p class="muted">All runs have the same.</p></section>'
                if self.configured()
                else ""
            )
        shown = list(differing.items())[: self.columns]
        more = f" (the first {self.columns} of {len(differing)})" if len(differing) > self.columns else ""
        heads = [(shorten(key, NAME), "") for key, _ in shown]
        return _table(
            f"Differences of the configurations{more}",
            heads,
            [[_setting(v) for v in values] for _, values in shown],
            self.short,
        )

    def configured(self) -> bool:
        return any(record.config for record in self.records)

    def about(self) -> str:
        """Return the table of the runs' provenance."""
        if not self.records:
            return ""
        columns = [
            [_plain(record.status, kind=record.status) for record in self.records],
            [_plain("" if record.step is None else f"{record.step:,}", record.step) for record in self.records],
            [_plain(duration(record.seconds), record.seconds) for record in self.records],
            [
                _plain(_text(record.about.get("started"))[:16].replace("T", " "), _text(record.about.get("started")))
                for record in self.records
            ],
            [_plain(_commit(record)) for record in self.records],
            [f'<td class="wide"><code>{escape(shorten(_command(record), 200))}</code></td>' for record in self.records],
        ]
        return _table(
            "Runs",
            [(head, "") for head in ("status", "step", "time", "started", "commit", "command")],
            columns,
            self.short,
        )

    def common(self) -> str:
        """Return the settings that all runs share."""
        common = settings(self.records)[1] if self.records else {}
        if not common:
            return ""
        rows = "".join(
            f"<dt>{escape(shorten(key, 2 * NAME))}</dt><dd>{escape(shorten(setting(value), VALUE))}</dd>"
            for key, value in list(common.items())[:400]
        )
        head, opened = ("Configuration", " open") if len(self.records) == 1 else ("Settings that all runs share", "")
        summary = f"<summary>{head} ({len(common):,})</summary>"
        return f"<details{opened}>{summary}<dl>{rows}</dl></details>"


CONTROLS = """<div class="controls" hidden>
<label class="slide">Smoothing <input type="range" id="smooth" min="0" max="0.99" step="0.01" value="0">
<output for="smooth">0</output></label>
<fieldset><legend>Over</legend><label><input type="radio" name="x" value="step" checked><span>step</span></label
><label><input type="radio" name="x" value="epoch"EPOCHS><span>epoch</span></label
><label><input type="radio" name="x" value="time"><span>time</span></label></fieldset>
<label class="check"><input type="checkbox" id="log"> Logarithmic</label>
WHICH</div>"""
WHICH = """<span class="which"><button type="button" data-all="true">Show all</button>
<button type="button" data-all="false">Hide all</button></span>"""


def _table(title: str, heads: list[tuple[str, str]], columns: list[list[str]], rows: list[str]) -> str:
    """Return a table with a row for each run, which the script sorts."""

    def head(text: str, note: str) -> str:
        small = f" <small>{escape(note)}</small>" if note else ""
        return (
            f'<th scope="col"><button type="button" class="sort" disabled>{escape(text)}{small}'
            f'<span class="way" aria-hidden="true"></span></button></th>'
        )

    lines = "".join(
        f'<tr data-run="{i}"><th scope="row" title="{escape(name)}">{_swatch(i)}'
        f'<span class="name">{escape(name)}</span></th>'
        f"{''.join(column[i] for column in columns)}</tr>"
        for i, name in enumerate(rows)
    )
    scroll = f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(title)}">'
    return (
        f'<section class="table"><h2>{escape(title)}</h2>{scroll}<table><thead><tr>{head("run", "")}'
        f"{''.join(head(*h) for h in heads)}</tr></thead><tbody>{lines}</tbody></table></div></section>"
    )


def _value(value: float | None, top: bool, found: tuple[float, int] | None) -> str:
    """Return a cell of a number, with its exact value in the tooltip and for sorting."""
    if value is None:
        return '<td class="number none">–</td>'
    step = f", at step {found[1]:,}" if found else ""
    mark = '<span class="heard"> best</span>' if top else ""
    return f'<td class="number{" top" * top}" data-v="{value!r}" title="{value!r}{step}">{number(value)}{mark}</td>'


def _setting(value: Any) -> str:
    if value is ...:
        return '<td class="none">–</td>'
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    key = f' data-v="{float(value)!r}"' if plain and _representable(value) else ""
    return f'<td class="{"number" if plain else ""}"{key}>{escape(shorten(setting(value), VALUE))}</td>'


def _representable(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _plain(text: str, key: Any = None, kind: str = "") -> str:
    sort = "" if key is None else f' data-v="{escape(key)}"'
    shown = (
        f'<span class="status" data-status="{escape(kind)}">{escape(text)}</span>'
        if kind
        else escape(shorten(text, VALUE))
    )
    return f"<td{sort}>{shown}</td>"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _commit(record: Record) -> str:
    git = record.about.get("git")
    if not isinstance(git, dict):
        return ""
    commit = _text(git.get("commit"))[:8]
    return " ".join(
        filter(None, [commit, _text(git.get("branch")), "+ changes" if commit and git.get("dirty") is True else ""])
    )


def _command(record: Record) -> str:
    command = record.about.get("command")
    return " ".join(map(str, command[:50])) if isinstance(command, list) else ""


def _swatch(run: int) -> str:
    line = f'<path class="c{run % COLOURS}" {_dash(run)}d="M1 5H25"/>'
    return f'<svg class="swatch" viewBox="0 0 26 10" aria-hidden="true">{line}</svg>'


def _dash(run: int) -> str:
    dash = DASHES[run // COLOURS % len(DASHES)]
    return f'stroke-dasharray="{dash}" ' if dash else ""


def _numbers(values: Any) -> list[float | int | None]:
    """Round numbers to six digits for the script, None for those that are not finite."""
    found = list[float | int | None]()
    for value in values.tolist():
        if not math.isfinite(value):
            found.append(None)
        elif value == int(value) and abs(value) < 1e15:
            found.append(int(value))
        else:
            found.append(float(f"{value:.6g}"))
    return found


def _tick(value: float) -> str:
    """Format a number for an axis: 12k, 0.05, 1e-7."""
    size = abs(value)
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if unit <= size < 1e12 and (size >= 1e4 or unit > 1e3):
            return f"{value / unit:g}{letter}".replace("-", "−")
    if 0 < size < 1e-3:
        digits, _, power = f"{value:.5e}".partition("e")
        return f"{float(digits):g}e{int(power)}".replace("-", "−")
    return f"{float(f'{value:.6g}'):g}".replace("-", "−")


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"
