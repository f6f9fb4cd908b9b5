"""Strings, numbers and lines as people read them: a string is shown as text, at a known width, and never as markup."""
from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Sequence
from math import isfinite, prod
from typing import Any, NamedTuple

import numpy as np

from ..messages.tables import columns
from ..runtime.small_floats import wide
from ..storage.base import Storage
from ..storage.sparse import pattern_of

LABEL, TOOLTIP, NAME, PARAMETER = 40, 1500, 24, 48      # characters that these show: a parameter is one of an op
MINUS = "−"
# what turns its neighbours around
TURNING = (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)
UNSEEN = (*range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)
ODD = {n: chr(0x2400 + n) for n in range(32)} | dict.fromkeys((*TURNING, *UNSEEN), "\ufffd")
ODD_BUT_LINES = {n: c for n, c in ODD.items() if n != ord("\n")}
MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def clean(text: Any, lines: bool = False) -> str:
    """A string without what cannot be shown: control characters become visible, halves of characters are replaced."""
    text = str(text).translate(ODD_BUT_LINES if lines else ODD)
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def escape(text: Any, lines: bool = False) -> str:
    """A string for XML and HTML, inside and outside of attributes.

    >>> escape('<script>\\0')
    '&lt;script&gt;␀'
    """
    return clean(text, lines).translate(MARKUP)


def quoted(text: Any) -> str:
    """A string for DOT, between double quotes, where \\n ends a line."""
    return '"' + clean(text, lines=True).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def script(data: Any) -> str:
    """Data for a script inside of HTML: JSON without a character that could end the script."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def shorten(text: Any, limit: int = LABEL) -> str:
    """A string with its middle left out, if it is long.

    >>> shorten("a" * 30 + "b" * 30, 11)
    'aaaaa…bbbbb'
    """
    text = str(text)
    return text if len(text) <= limit else f"{text[:limit // 2]}…{text[-(limit - 1 - limit // 2):]}"


def tooltip(text: Any) -> str:
    """Several lines for a tooltip: cleaned, and of limited length."""
    return clean(shorten(text, TOOLTIP), lines=True)


def readable(name: Any) -> str:
    """The name of a tensor, cleaned and of limited length."""
    return shorten(clean(name), NAME)


# ── numbers in pictures: a few, or their range ────────────────────────────────────────────────────────────────────────


def number(value: Any, digits: int = 4) -> str:
    """A number of a few digits.

    >>> number(-0.123456), number(2.0), number(True)
    ('−0.1235', '2', 'True')
    """
    value = value.item() if hasattr(value, "item") else value
    return (str(value) if isinstance(value, (bool, str)) else format(value, f".{digits}g")).replace("-", "−")


def numbers(array: Any, most: int = 6) -> str:
    """The numbers of an array, or, of many, their range.

    >>> import numpy as np
    >>> numbers(np.array([[1., 2.], [3., 4.]])), numbers(np.arange(100.)), numbers(np.ones(9))
    ('[[1, 2], [3, 4]]', '0 … 99, mean 49.5', 'all 1')
    """
    array = host(array)
    if array.size <= most and len(text := _nested(array.tolist(), 4 if array.size == 1 else 3)) <= 6 * most:
        return text
    first = array.reshape(-1)
    if (first == first[0]).all():
        return f"all {number(first[0])}"
    if array.dtype.kind not in "fiu":
        return f"[{', '.join(map(number, first[:most - 2].tolist()))}, …]"
    exact = array.astype(np.float64)
    return f"{number(exact.min(), 3)} … {number(exact.max(), 3)}, mean {number(exact.mean(), 3)}"


def _nested(values: Any, digits: int) -> str:
    return f"[{', '.join(_nested(v, digits) for v in values)}]" if isinstance(values, list) else number(values, digits)


def host(value: Any) -> np.ndarray:
    """The numbers of an array or tensor, on the CPU, of a dtype that NumPy knows; none, where they cannot be had."""
    array = getattr(value, "array", value)
    if not isinstance(array, (np.ndarray, np.generic, bool, int, float, complex)):
        if (pattern := pattern_of(array)) is not None:      # sparse: with its zeros
            array = pattern.backend.xp.sparse_to_dense(array, pattern=pattern)
        backend = next((b for b in Storage.by_device.values() if isinstance(array, b.array_type)), None)
        array = np.empty(0) if backend is None else backend.seen(array)
    found: np.ndarray = wide(np.asarray(array))
    return found


def size(shape: Any) -> str:
    """A shape as text, unless it is text.

    >>> size((2, 3)), size(()), size(((2, 3), (4,))), size("(None, 3)")
    ('2×3', 'scalar', '2×3, 4', '(None, 3)')
    """
    if isinstance(shape, str):
        return shape
    if shape and isinstance(shape[0], tuple):
        return ", ".join(map(size, shape))
    return "×".join(map(str, shape)) if shape else "scalar"


# ── numbers in explanations: the first and the last ───────────────────────────────────────────────────────────────────

WHOLE = 256        # up to so many elements are kept; of a larger array, its corners
BRIEF = 18         # characters of a value in a box
FIRST = 2          # results of a step whose values its box shows
CORNER = 3         # elements at each end of each axis
DRAWN = 8192       # up to so many elements are kept for pictures, which show each as a dot


class Value:
    """An array's numbers, as they were: all of a small one, the corners of a large one.

    `number` is the text of a single number, '' for an array; `dots` has all elements of an array that can be drawn.

    >>> print(Value(np.array([1 / 3, 2.0])), Value(np.arange(1000.)))
    [0.3333, 2] [0, 1, 2, …, 997, 998, 999]
    """

    __slots__ = ("shape", "dtype", "kept", "number", "dots")

    def __init__(self, array: Any) -> None:
        self.shape, self.dtype = tuple(array.shape), array.dtype
        many = WHOLE < prod(self.shape) <= DRAWN
        self.dots = np.array(array, np.float32) if many and self.dtype.kind in "fiub" else None
        for axis, n in enumerate(self.shape if prod(self.shape) > WHOLE else ()):
            if n > 2 * CORNER:
                array = np.take(array, (*range(CORNER), *range(n - CORNER, n)), axis=axis)
        self.kept = np.array(array)
        if self.dots is None and self.kept.shape == self.shape and self.dtype.kind in "fiub":
            self.dots = self.kept
        self.number = "" if self.shape else short(self.kept[()])

    @staticmethod
    def of(value: Any) -> Value:
        """The value of a tensor, of a backend's array, or of a number."""
        return Value(host(value))

    @property
    def whole(self) -> bool:
        return self.kept.shape == self.shape

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def scalar(self) -> bool:
        return prod(self.shape) == 1

    def text(self, width: int = 60) -> str:
        """The numbers in a line of at most so many characters, if there is a way.

        The fewest elements that are shown are the first and the last of each axis.
        """
        if len(self.shape) < 2 and prod(self.shape) == 1:
            return self.number or short(self.kept[0])
        for corner in (None, 3, 2, 1):
            text = self._listed(corner)
            if len(text) <= width:
                return text
        flat, deep = self.kept.reshape(-1), len(self.shape)
        text = f"{'[' * deep}{short(flat[0])}, …, {short(flat[-1])}{']' * deep}" if flat.size else "[]"
        return text if len(text) <= width and deep <= 2 else f"{shape_text(self.shape)} numbers"

    def _listed(self, corner: int | None) -> str:
        def listed(part: Any, axis: int) -> str:
            if axis == len(self.shape):
                return short(part)
            n, left = self.shape[axis], len(part)
            ends = left // 2 if left < n else corner
            if ends is None or n <= 2 * ends:
                return f"[{', '.join(listed(p, axis + 1) for p in part)}]"
            ends = min(ends, corner or ends)
            shown = [*(listed(p, axis + 1) for p in part[:ends]), "…", *(listed(p, axis + 1) for p in part[-ends:])]
            return f"[{', '.join(shown)}]"
        return listed(self.kept, 0)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Value({self})"


def values_of(things: Iterable[Any]) -> list[Any]:
    """The values of tensors, arrays and numbers; what is none of these stays as it is."""
    kinds = (np.ndarray, np.generic, int, float, complex, *Storage.layouts,
             *[b.array_type for b in Storage.by_device.values()])
    return [Value.of(x) if isinstance(x, kinds) or hasattr(x, "array") else x for x in things]


def brief(things: Iterable[Any]) -> list[str | None]:
    """Arrays and values in a few characters each, as boxes show them."""
    return [None if x is None else (x if isinstance(x, Value) else Value.of(x)).text(BRIEF) for x in things]


def together(steps: Sequence[Sequence[Value | None]]) -> list[str | None]:
    """For each step, the values of its results in a line of its box: those of the first two; None if one is not known.

    >>> one, two = Value(np.ones(())), Value(np.arange(2.))
    >>> together([[one], [two, one], [one, two, two], [one, None]])
    ['1', '[0, 1], 1', '1, [0, 1], …', None]
    """
    texts = [brief(values[:FIRST]) for values in steps]
    return [None if None in found else ", ".join([*found, *["…"] * (len(values) > FIRST)])
            for found, values in zip(texts, steps, strict=True)]


def short(number: Any) -> str:
    """A number with four digits; whole numbers with up to six.

    >>> short(2 / 3), short(12345.0), short(-1e-9), short(True)
    ('0.6667', '12345', '−1e−09', 'True')
    """
    if isinstance(number, (bool, np.bool_)):
        return str(bool(number))
    if isinstance(number, (complex, np.complexfloating)):
        sign = "+" if number.imag >= 0 or number.imag != number.imag else ""
        return f"{short(number.real)}{sign}{short(number.imag)}j"
    if isinstance(number, (int, np.integer)):
        return str(int(number)).replace("-", MINUS)
    number = float(number)
    whole = isfinite(number) and number == round(number) and abs(number) < 1e6
    return (str(int(number)) if whole else f"{number:.4g}").replace("-", MINUS)


def shape_text(shape: tuple[int, ...]) -> str:
    """A shape as it is spoken of: '2 × 3', or nothing for a single number."""
    return " × ".join(map(str, shape))


def shown(parameter: Any) -> str:
    """A parameter of an op, as text."""
    if isinstance(parameter, float):
        return short(parameter)
    text = clean(repr(parameter))
    return text if len(text) <= PARAMETER else f"{text[:PARAMETER - 1]}…"


# ── lines for the terminal ────────────────────────────────────────────────────────────────────────────────────────────

BLUE, ORANGE, BOLD, DIM = "34", "33", "1", "2"       # values, gradients


class Line(NamedTuple):
    """A line of prose, wrapped where it is too long."""

    text: str = ""
    colour: str = ""


class Equation(NamedTuple):
    """name = part = … = value, behind a `lead`. A pair of values among the parts is written as their sum."""

    lead: str
    name: str
    parts: tuple[Any, ...]
    value: Value | str | None
    colour: str = ""
    rest: str = ""


class Block(NamedTuple):
    """Equations whose names are padded to the widest of `names`, or to `most` columns, and lines between them."""

    rows: list[Line | Equation]
    names: Iterable[str]
    most: int


def laid_out(blocks: Iterable[Line | Block], width: int, colour: bool = False) -> str:
    """Lines and equations as text of so many columns.

    >>> rows = [Equation("  ", "x", ("1 + 1",), "2"), Equation("  ", "xy", (), "3")]
    >>> print(laid_out([Line("so"), Block(rows, ["x", "xy"], 9)], 40))
    so
      x  = 1 + 1 = 2
      xy = 3
    """
    page = Page(width, colour)
    for block in blocks:
        if isinstance(block, Line):
            page.line(block)
            continue
        wide = min(block.most, max(map(columns, block.names), default=1))
        for row in block.rows:
            page.line(row) if isinstance(row, Line) else page.equation(row, wide)
    return "\n".join(page.lines)


class Page:
    """Lines of limited width, in colour or not."""

    def __init__(self, width: int, colour: bool) -> None:
        self.width, self.colour, self.lines = max(width, 40), colour, list[str]()

    def paint(self, text: str, colour: str) -> str:
        return f"\033[{colour}m{text}\033[0m" if self.colour and text.strip() else text

    def line(self, line: Line) -> None:
        for part in textwrap.wrap(line.text, self.width, subsequent_indent=" " * 6, drop_whitespace=False) or [""]:
            self.lines.append(self.paint(part.rstrip(), line.colour) if line.colour else part.rstrip())

    def equation(self, row: Equation, wide: int) -> None:
        """In one line if there is room, or in lines that begin with the equals sign."""
        left = row.lead + row.name + " " * (wide - columns(row.name))
        room = self.width - columns(left) - 3
        value = row.value.text(room) if isinstance(row.value, Value) else row.value
        half = (room - 3) // 2
        parts = [part if isinstance(part, str) else " + ".join(term.text(half) for term in part) for part in row.parts]
        parts = [p for p in [*parts, value] if p]
        whole = " = ".join(parts) + row.rest
        if columns(whole) <= room:
            self.lines.append(f"{left} = {self.painted(whole, value, row.colour)}")
            return
        for i, part in enumerate([*parts[:-1], parts[-1] + row.rest]):
            for k, piece in enumerate(textwrap.wrap(part, max(room, 20)) or [""]):
                lead = f"{left} = " if i == k == 0 else " " * columns(left) + (" = " if k == 0 else "   ")
                self.lines.append(lead + self.painted(piece, value, row.colour))

    def painted(self, text: str, shown: str | None, colour: str) -> str:
        if not (colour and self.colour and shown and shown in text):
            return text
        head, _, tail = text.rpartition(shown)
        return head + self.paint(shown, colour) + tail
