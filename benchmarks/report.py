"""BENCHMARK.md and its chart."""
from __future__ import annotations

import datetime
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tensorgrad.benchmark.machine import processor

from .timing import Measurement
from .workloads import RUNTIME

TITLES = {"training": "Training steps", "inference": "Inference", "ops": "Operations", "machinery": "Machinery"}
COLUMNS = {"compiled": "compiled kernels", "numpy": "NumPy alone"}          # what kernels there may be, and their names
# in rows of inference alone
RUNTIMES = {"graph": "compiled graph", "numpy_graph": "compiled graph, NumPy alone", "onnxruntime": "onnxruntime",
            "openvino": "OpenVINO"}
OTHERS = {"jax": "JAX", "tinygrad": "tinygrad", "mygrad": "MyGrad", "autograd": "HIPS autograd"}
WIDE = 0.2                                      # quartiles further apart than this part of the median are shown
EVEN = 1.05                                     # ratios up to this, and down to its inverse, count as equal
BLUE, SKY = "#0072B2", "#7FC4EE"                # told apart by all kinds of eyes, and in print
# columns beside the first that the chart has, too
MARKS = {"numpy": ("orange", "#D55E00"), "jax": ("green", "#009E73"), "graph": ("purple", "#AA3377"),
         "onnxruntime": ("black", "#000000")}
NAMES = COLUMNS | RUNTIMES | OTHERS
Found = Mapping[str, Measurement]


@dataclass
class Report:
    """The measurements: `rows[group, section][name][column]`."""

    command: str
    threads: int
    columns: list[str]
    clock: str = "wall"
    note: str = ""
    versions: dict[str, None] = field(default_factory=dict)
    compiled: bool = True
    seconds: float = 0.0
    rows: dict[tuple[str, str], dict[str, Found]] = field(default_factory=dict)
    load: tuple[float, ...] = field(default_factory=os.getloadavg)

    def columns_of(self, group: str) -> list[str]:
        """Ours; in training those of other libraries, in inference compiled graphs and other runtimes, too."""
        more = {"training": OTHERS, "inference": RUNTIMES}.get(group, {})
        return [column for column in self.columns if column in COLUMNS or column in more]

    def rounds_of(self, group: str) -> list[list[str]]:
        """Which columns are timed in turn, with PyTorch: ours and other runtimes, and each other library by itself,
        whose threads would be in the way of ours.
        """
        columns = self.columns_of(group)
        return [[column for column in columns if column not in OTHERS],
                *([column] for column in columns if column in OTHERS)]

    def add(self, group: str, section: str, name: str, found: Found) -> None:
        """Note what was found for a row, beside what was found for it before."""
        rows = self.rows.setdefault((group, section), {})
        rows[name] = {**rows.get(name, {}), **found}

    def of(self, group: str) -> Iterator[tuple[str, dict[str, Found]]]:
        return ((section, rows) for (of, section), rows in self.rows.items() if of == group)

    def groups(self) -> list[str]:
        return list(dict.fromkeys(group for group, _ in self.rows))


def ratios(sections: list[dict[str, Found]], column: str) -> list[float]:
    return [found[column].ratio for rows in sections for found in rows.values()
            if column in found and found[column].ratio is not None]


def geometric_mean(values: list[float]) -> float | None:
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else None


# ── text ──────────────────────────────────────────────────────────────────────────────────────


def amount(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    if unit == "B":
        return f"{value / 2 ** 20:,.1f} MiB"
    return f"{value:,.2f} s" if value >= 1 else f"{value * 1e3:,.2f} ms" if value >= 1e-3 else f"{value * 1e6:,.2f} µs"


def cell(found: Measurement) -> str:
    """The ratio; with its quartiles where they are far apart."""
    if found.problem or found.quartiles is None:
        return found.problem or "–"
    first, middle, third = found.quartiles
    return f"{middle:.2f}" + (f" ({first:.2f} to {third:.2f})" if third - first > WIDE * middle else "")


def table(head: list[str], lines: list[list[str]]) -> list[str]:
    lines = [[text.replace("|", "\\|") for text in line]
             for line in [head, ["---", *["---:"] * (len(head) - 1)], *lines]]
    return [*("| " + " | ".join(line) + " |" for line in lines), ""]


def mean_cell(sections: list[dict[str, Found]], column: str) -> str:
    return "–" if (mean := geometric_mean(ratios(sections, column))) is None else f"{mean:.2f}"


def overview(report: Report) -> list[str]:
    """A line for each group: the geometric means, and how many rows are faster, equal, slower, or failed.

    The sections of machinery have little in common.
    """
    own, lines = report.columns_of(""), []
    more = [column for column in report.columns_of("inference" if "inference" in report.groups() else "")
            if column in RUNTIMES]
    parts = [(TITLES[group], [rows for _, rows in report.of(group)]) for group in report.groups()
             if group != "machinery"]
    for title, sections in parts + [(f"{TITLES['machinery']}: {section}", [rows])
                                    for section, rows in report.of("machinery")]:
        found = ratios(sections, report.columns[0])
        faster, slower = sum(value < 1 / EVEN for value in found), sum(value > EVEN for value in found)
        bad = sum(row[column].problem != "" for rows in sections for row in rows.values() for column in own)
        lines.append([title, *(mean_cell(sections, column) for column in [*own, *more]),
                      *map(str, (faster, len(found) - faster - slower, slower, bad))])
    names = (NAMES[column] for column in [*own, *more])
    return table(["geometric means of ratios", *names, "faster", "equal", "slower", "failed"], lines)


def against_runtime(report: Report) -> list[str]:
    """Return the section of the ratios to onnxruntime, row by row; nothing where it was not measured."""
    columns = [column for column in report.columns_of("inference") if column != RUNTIME]
    if RUNTIME not in report.columns or "inference" not in report.groups():
        return []
    lines, sections = [], dict(report.of("inference"))
    whole = {name: row for section in sections.values() for name, row in section.items()}
    for section, rows in {**sections, "all rows": whole}.items():
        if rows is not whole:
            lines += [[name, *(runtime_cell(row.get(column)) for column in columns)] for name, row in rows.items()]
        means = [geometric_mean([row[column].runtime[1] for row in rows.values()
                                 if column in row and row[column].runtime]) for column in columns]
        lines.append([f"*geometric mean, {section}*", *("–" if mean is None else f"*{mean:.2f}*" for mean in means)])
    return [f"### Against {RUNTIME}", "",
            f"Time over {RUNTIME}'s, which runs what `torch.onnx.export` writes: below 1 the column is faster.",
            "", *table(["", *(NAMES[column] for column in columns)], lines)]


def runtime_cell(found: Measurement | None) -> str:
    return "–" if found is None or found.runtime is None or found.problem else f"{found.runtime[1]:.2f}"


METHOD = (
    "A ratio is tensorgrad's time over PyTorch's, eager: **below 1 tensorgrad is faster, above 1 it is slower**.",
    "All libraries run the same code, each in a process of its own, with its own settings of memory and threads.",
    "They take turns, block by block. Before each block the threads of the others fall asleep.",
    "PyTorch's threads are bound to a processor each, without which PyTorch is slower at times.",
    "A ratio is the median over the rounds; quartiles follow it if they are more than a fifth of it apart.",
    "Times are those of the first column of ratios. Means are geometric. Rows within 5 % count as equal.",
    "Values, gradients and losses of three steps are compared first; a row that differs or fails says so.",
    "Trust means more than rows, and ratios more than times: on a shared machine, PyTorch's own time of a row changes "
    "up to twofold between runs.")
METHOD_OF_RUNTIMES = (
    "A compiled graph is `torch.compile(model)`; compiling is not counted. Other runtimes run the model as "
    "`torch.onnx.export` writes it for the batch.",)
METHOD_OF_OTHERS = (
    "Other libraries train after ours, each in turn with PyTorch, on as many processors, from PyTorch's parameters and "
    "inputs. Dropout and noise are left out of their comparison.",
    "JAX and tinygrad compile the whole step beforehand; that time is not counted. “–”: the library lacks a function "
    "that the network needs.")


def introduction(report: Report) -> list[str]:
    """Return the lines above the first table: how the figures were measured, on which machine."""
    clock = "CPU time of the process" if report.clock == "cpu" else "wall time"
    others = any(column in OTHERS for column in report.columns) and "training" in report.groups()
    runtimes = any(column in RUNTIMES for column in report.columns_of("inference")) and "inference" in report.groups()
    method = (*METHOD, *(METHOD_OF_RUNTIMES if runtimes else ()), *(METHOD_OF_OTHERS if others else ()))
    about = (f"{datetime.date.today()}, {os.cpu_count()} processors: {processor()}, threads: {report.threads}, "
             f"{', '.join(report.versions)}. Command: `{report.command}` ({report.seconds / 60:.0f} minutes, load "
             f"average {report.load[0]:.1f} before it and {os.getloadavg()[0]:.1f} after). float32, {clock}.")
    missing = "" if report.compiled else "**There were no compiled kernels in this run.**"
    paragraphs = ["\n".join(f"{i}. {line}" for i, line in enumerate(method, 1)), about, missing, report.note]
    return [text for paragraph in paragraphs if paragraph for text in (paragraph, "")]


def slower(report: Report) -> list[str]:
    """Return the section of rows in which tensorgrad is slower than PyTorch, the slowest first."""
    own = report.columns_of("")
    parts = [(group, section, rows) for group in report.groups() for section, rows in report.of(group)]
    lines, tails = [], []
    for column in own:
        found = [row[column].ratio for _, _, rows in parts for row in rows.values()
                 if column in row and row[column].ratio]
        late = sum(ratio > EVEN for ratio in found)
        tails.append(f"{late} of {len(found)} rows with {COLUMNS[column]}")
    for group, section, rows in parts:
        for name, row in rows.items():
            if (ratio := row[own[0]].ratio) and ratio > EVEN:
                where = ": ".join(filter(None, (TITLES[group], section)))
                lines.append((ratio, [name, where, *(cell(row[column]) for column in own)]))
    lines.sort(key=lambda line: -line[0])
    head = ["row", "section", *(f"ratio, {COLUMNS[column]}" for column in own)]
    return ["## Slower than PyTorch", "", f"tensorgrad is slower by more than 5 % in {' and '.join(tails)}. Rows with "
                                          f"{COLUMNS[own[0]]}:", "",
            *(table(head, [line for _, line in lines]) if lines else ["none", ""])]


def markdown(report: Report, picture: str = "") -> str:
    lines = ["# Benchmark", "", "How fast tensorgrad is beside PyTorch, and where it is slower.", "",
             *introduction(report)]
    lines += [f"![Ratios, row by row]({picture})", ""] if picture else []
    lines += [*overview(report), *slower(report)]
    for group in report.groups():
        lines += [f"## {TITLES[group]}", ""]
        for section, rows in report.of(group):
            lines += [f"### {section[:1].upper()}{section[1:]}", ""] if section else []
            lines += section_table(rows, report.columns_of(group))
        lines += against_runtime(report) if group == "inference" else []
    return "\n".join(lines)


def section_table(rows: dict[str, Found], columns: list[str]) -> list[str]:
    own, body = columns[0], []
    for name, found in rows.items():
        first = found[own]
        name += f"; {first.note}" if first.note else ""
        times = ["", ""] if first.problem else [amount(first.ours, first.unit), amount(first.theirs, first.unit)]
        body.append([name, *times, *(cell(found[column]) for column in columns)])
    means = [mean_cell([rows], column) for column in columns]
    if len(rows) > 1 and set(means) != {"–"}:
        body.append(["*geometric mean*", "", "", *(f"*{mean}*" for mean in means)])
    if set(columns) & set(OTHERS):
        shared = ({name: found for name, found in rows.items() if found[column].ratio} for column in columns)
        body.append([f"*{COLUMNS[own]}, the same rows*", "", "", *(f"*{mean_cell([some], own)}*" for some in shared)])
    return table(["", "tensorgrad", "PyTorch",
                  *(f"ratio, {COLUMNS[column]}" if column in COLUMNS else NAMES[column] for column in columns)], body)


# ── picture ───────────────────────────────────────────────────────────────────────────────────

# a label, and what was found for it: forward and backward share a line; a heading has nothing
Line = tuple[str, list[tuple[str, Found]]]


def lines_of(report: Report) -> dict[str, dict[str, list[tuple[str, Found]]]]:
    """heading, with the geometric mean → label → (colour, what was found)."""
    out: dict[str, dict[str, list[tuple[str, Found]]]] = {}
    for group in report.groups():
        for section, rows in report.of(group):
            way = section.rpartition(", ")[2]
            for name, found in rows.items():
                if any(measurement.ratio for measurement in found.values()):
                    heading = ": ".join(filter(None, (TITLES[group], section.removesuffix(f", {way}"))))
                    out.setdefault(heading, {}).setdefault(name.removesuffix(f", {way}"),
                                                           []).append((SKY if way == "backward" else BLUE, found))
    means = {heading: geometric_mean(ratios([dict(bars) for bars in lines.values()], report.columns[0]))
             for heading, lines in out.items()}
    return {heading + (f", mean {means[heading]:.2f}" if means[heading] else ""): lines
            for heading, lines in out.items()}


def columns_of(headed: Mapping[str, Mapping[str, Any]], number: int) -> list[list[tuple[str, Any]]]:
    """The lines in columns of about the same height; a heading stands above its lines, never alone at the foot of a
    column.
    """
    height, parts = -(-sum(len(lines) + 1 for lines in headed.values()) // number), [[]]
    for heading, lines in headed.items():
        for i, line in enumerate(lines.items()):
            if len(parts[-1]) >= height - (not i) and len(parts) < number:
                parts.append([])
            parts[-1] += [(heading, [])] * (not i or not parts[-1]) + [line]
    return parts


def chart(report: Report, path: Path) -> bool:
    """A bar for each ratio, from 1 to the left where tensorgrad is faster, to the right where it is slower; whether
    there is anything to draw.
    """
    if not (headed := lines_of(report)):
        return False
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    parts = columns_of(headed, 1 + (sum(map(len, headed.values())) > 40))
    tallest = max(map(len, parts))
    figure = Figure(figsize=(6.4 * len(parts), 0.165 * tallest + 1.2), dpi=80, layout="constrained")
    FigureCanvasAgg(figure)
    columns = [column for column in report.columns if column == report.columns[0] or column in MARKS]
    shown = [ratio for column in columns
             for ratio in ratios([rows for group in report.groups() for _, rows in report.of(group)], column)]
    for axes, part in zip(figure.subplots(1, len(parts), squeeze=False)[0], parts):
        draw(axes, part, columns)
        axes.set(xlim=(min(0.5, *shown) / 1.1, max(2.0, *shown) * 1.1), ylim=(tallest - 0.4, -0.6))
    figure.suptitle("Time of tensorgrad over PyTorch's: bars to the left of 1 are faster, to the right slower",
                    fontsize=10)
    legend = [f"{COLUMNS[columns[0]]}: dark, light the backward pass of operations",
              *(f"{NAMES[name]}: {MARKS[name][0]}" for name in columns[1:])]
    figure.supxlabel("; ".join(legend), fontsize=9)
    figure.savefig(path)
    few_colours(path)
    return True


def few_colours(path: Path, most: int = 10) -> None:
    """Write a picture again with few colours, which take few bytes."""
    from PIL import Image
    with Image.open(path) as image:
        small = image.convert("RGB").quantize(most, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def draw(axes: Any, part: list[Line], columns: list[str]) -> None:
    axes.set_xscale("log")
    for i, (_, bars) in enumerate(part):
        for j, (colour, found) in enumerate(bars):
            height = 0.76 / len(bars)
            for column, ratio in ((column, found[column].ratio) for column in columns if column in found):
                y = i - 0.38 + (j + 0.5) * height
                if ratio and column == columns[0]:
                    axes.barh(y, ratio - 1, left=1, height=height, color=colour)
                elif ratio:
                    axes.plot([ratio], [y], "|", color=MARKS[column][1], markersize=10 * height, markeredgewidth=1.6)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_yticks(range(len(part)), [name for name, _ in part], fontsize=7)
    for label, (_, bars) in zip(axes.get_yticklabels(), part):
        label.set_fontweight("normal" if bars else "bold")
    marks = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20]
    axes.set_xticks(marks, [f"{mark:g}" for mark in marks], fontsize=7)
    axes.minorticks_off()
    axes.grid(axis="x", color="#cccccc", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
