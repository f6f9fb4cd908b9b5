"""Tables as text: every table that the package prints in a terminal is laid out here.

Columns are as wide as their widest cell where every letter is as wide as the next, wide letters counted as two.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from unicodedata import combining, east_asian_width


def columns(text: str) -> int:
    """Return the number of columns that a string takes in a terminal.

    >>> columns("tensor"), columns("張量"), columns("e\\u0301")
    (6, 4, 1)
    """
    if text.isascii():
        return len(text)
    return sum([0 if combining(c) else 2 if east_asian_width(c) in "WF" or ord(c) > 0xFFFF else 1 for c in text])


def widths_of(rows: Iterable[Sequence[str]]) -> list[int]:
    """Return the width of each column of cells."""
    return [max(map(columns, column)) for column in zip(*rows, strict=True)]


def padded(text: str, width: int, align: str = "<") -> str:
    """Fill a cell with spaces: "<" to the left, ">" to the right, "^" in the middle. A longer text stays as it is.

    >>> padded("a", 3, ">"), padded("張", 3), padded("long", 3)
    ('  a', '張 ', 'long')
    """
    left = " " * (width - columns(text))
    if align == "^":
        return text.center(len(text) + len(left))
    return left + text if align == ">" else text + left


def table(rows: Sequence[Sequence[str]], align: str = "<", gap: str = "  ", widths: Sequence[int] | None = None,
          rule: str = "",
          end: str | None = None) -> list[str]:
    """Lay out rows of cells, the first of which is the head, and return the lines.

    `align` has a sign for each column, and the last one holds for all that follow. `widths` are by default those of the
    widest cells.
    `rule`: a sign for a line of each column below the head. `end` ends every line; by default, lines end with their
        last letter.

    >>> print(*table([("op", "calls"), ("add", "3"), ("matmul", "12")], "<>", rule="-"), sep="\\n")
    op      calls
    ------  -----
    add         3
    matmul     12
    """
    widths = widths_of(rows) if widths is None else widths
    signs = align + align[-1] * (len(widths) - len(align))
    lines = [gap.join(map(padded, row, widths, signs)) for row in rows]
    if rule:
        lines.insert(1, gap.join(rule * width for width in widths))
    return [line.rstrip() if end is None else line + end for line in lines]


def summary(head: str, *blocks: Iterable[str], width: int, outer: str = "=", inner: str = "=") -> str:
    """Join the head of a summary and the blocks of lines below it, such as rows and totals, with rules of a width
    between them.

    >>> print(summary("Layer", ["Linear"], parameters(1010, 10), width=8, outer="_"))
    ________
    Layer
    ========
    Linear
    ========
    Total params: 1,010
    Trainable params: 10
    Non-trainable params: 1,000
    ________
    """
    lines = [outer * width, head]
    for block in blocks:
        lines += [inner * width, *block]
    return "\n".join([*lines, outer * width])


def parameters(total: int, trained: int, style: str = ",") -> list[str]:
    """Return the lines of a summary that count parameters, in this style of `format`."""
    return [f"Total params: {total:{style}}", f"Trainable params: {trained:{style}}",
            f"Non-trainable params: {total - trained:{style}}"]


__all__ = ["columns", "padded", "parameters", "summary", "table", "widths_of"]
