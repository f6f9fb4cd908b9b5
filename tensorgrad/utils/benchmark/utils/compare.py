"""Compare measurements in tables."""
from __future__ import annotations

from enum import Enum, auto
from math import ceil, log10
from typing import Any

from ....messages.tables import padded, table
from .common import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

__all__ = ["Colorize", "Compare"]
PLAIN, END = "", "\033[0m\033[0m"
# the colour of times below a multiple of the best
COLORS = ((1.01, "\033[92m\033[1m"), (1.1, "\033[34m\033[1m"), (2.0, PLAIN), (5.0, "\033[2m\033[91m"),
          (float("inf"), "\033[31m\033[1m"))


class Colorize(Enum):
    """The set of times among which the best is coloured."""

    NONE = auto()
    COLUMNWISE = auto()
    ROWWISE = auto()


class Compare:
    """Measurements as tables: one for each label, a column for each description, a row for each sub-label and number of
    threads.

    https://pytorch.org/docs → torch.utils.benchmark.Compare

    >>> from tensorgrad.utils.benchmark import Compare, Measurement, TaskSpec
    >>> times = {"sum": 1e-3, "mean": 2e-3}
    >>> measured = [Measurement(1, [t], TaskSpec("", "", label="x", sub_label="8", description=f)) for f, t in times.items()]
    >>> print(Compare(measured))    # doctest: +NORMALIZE_WHITESPACE
    [--------- x ----------]
             |  sum  |  mean
    1 threads: -------------
          8  |  1.0  |  2.0
    <BLANKLINE>
    Times are in milliseconds (ms).
    <BLANKLINE>
    """  # noqa: E501

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._trim = self._highlight = False
        self._color = Colorize.NONE
        self.extend_results(results)

    def extend_results(self, results: Any) -> None:
        """Add measurements."""
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show significant digits only."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour the best times: of each column, or of each row."""
        self._color = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark times that vary."""
        self._highlight = True

    def print(self) -> None:
        """Print the tables."""
        print(self)

    def __str__(self) -> str:
        results = Measurement.merge(self._results)
        return "\n".join(self._table([r for r in results if r.label == label])
                         for label in ordered_unique(r.label for r in results))

    def _table(self, results: list[Measurement]) -> str:
        unit, size = select_unit(min(r.median for r in results))
        rows = sorted(ordered_unique((r.num_threads, r.env, r.as_row_name) for r in results), key=lambda row: row[:2])
        columns = ordered_unique(r.description for r in results)
        at = {((r.num_threads, r.env, r.as_row_name), r.description): r for r in results}
        envs = (max((len(f"({env})") for _, env, _ in rows if env), default=0) if len({env for _, env, _ in rows}) > 1
                else 0)
        names = [f"  {f'({env})' if env else '':<{envs}}  {name}" if envs else f"      {name}" for _, env, name in rows]
        widths = [max(map(len, names))]
        cells = [[""] * len(columns) for _ in rows]
        for j, column in enumerate(columns):
            texts = self._texts([at.get((row, column)) for row in rows], size)
            width = max(len(column), *map(len, texts))
            widths.append(width)
            for i, text in enumerate(texts):
                cells[i][j] = self._colored(padded(text, width, "^"), at, rows[i], rows, column, columns)
        titles = ["", *(padded(str(column), width, "^") for column, width in zip(columns, widths[1:], strict=True))]
        header, *shown = table([titles, *([name, *row] for name, row in zip(names, cells, strict=True))], gap="  |  ",
                               widths=widths, end="")
        lines = [f"[{f' {results[0].label} '.center(len(header) - 2, '-')}]", header]
        for i, row in enumerate(rows):
            if not i or row[0] != rows[i - 1][0]:
                lines.append(f"{row[0]} threads: ".ljust(len(header), "-"))
            lines.append(shown[i])
        lines += ["", f"Times are in {unit_to_english(unit)}s ({unit})."]
        if self._highlight and any(r.has_warnings for r in results):
            lines.append("(! XX%) Measurement has high variance, where XX is the IQR / median * 100.")
        return "\n".join([*lines, ""])

    def _texts(self, column: list[Measurement | None], size: float) -> list[str]:
        there = [(r, ceil(log10(r.median / size))) for r in column if r is not None]
        decimals = min(max(r.significant_figures - digits, 0) for r, digits in there) if self._trim else 1
        width = max(digits for _, digits in there) + decimals + bool(decimals)
        marks = [f" (! {r.iqr / r.median:.0%})" if r is not None and self._highlight and r.has_warnings else ""
                 for r in column]
        longest = max(map(len, marks))

        def shown(r: Measurement | None, mark: str) -> str:
            if r is None:
                return ""
            value = trim_sigfig(r.median / size, r.significant_figures) if self._trim else r.median / size
            return f"{value:>{width}.{decimals}f}{mark:>{longest}}"
        return [shown(r, mark) for r, mark in zip(column, marks, strict=True)]

    def _colored(self, text: str, at: Any, row: Any, rows: Any, column: Any, columns: Any) -> str:
        here = at.get((row, column))
        if here is None or self._color is Colorize.NONE:
            return text
        in_row = [(row, other) for other in columns]
        others = [at.get(key) for key in (in_row if self._color is Colorize.ROWWISE
                                          else [(other, column) for other in rows if other[0] == row[0]])]
        best = min(other.median for other in others if other is not None)
        color = next(color for bound, color in COLORS if here.median < bound * best)
        return f"{color}{text}{END}" if color else text
