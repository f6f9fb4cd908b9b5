"""Read numbers as people type them and compare them with answers, exactly as the page's script does."""
from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

SPACES, MINUS = re.compile(r"[\s_']"), re.compile("[−–‒﹣-]")
THOUSANDS = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d*)?", re.ASCII)
DECIMAL = re.compile(r"-?(?:\d+\.?(\d*)|\.(\d+))(?:e([+-]?\d{1,3}))?", re.ASCII | re.IGNORECASE)
FRACTION = re.compile(r"(-?\d+\.?\d*|-?\.\d+)/(-?\d+\.?\d*|-?\.\d+)", re.ASCII)
LONGEST = 60


class Read(NamedTuple):
    """A number and the value of a unit in its last digit (0 if it is exact)."""

    value: float
    step: float


def readings(text: str) -> list[Read]:
    """Return the numbers that a text may mean: 0.5, 0,5, 1,234.5, −2, 1/3, 2e-3.

    A comma may separate decimals or thousands.

    >>> [read.value for read in readings("1,234")]
    [1234.0, 1.234]
    """
    if len(text) > LONGEST:
        return []
    text = MINUS.sub("-", SPACES.sub("", text)).removeprefix("+")
    text = re.sub("∞|infinity", "inf", text, flags=re.IGNORECASE)
    forms = [text.replace(",", "")] if "," not in text or THOUSANDS.fullmatch(text) else []
    forms += [text.replace(",", ".")] if text.count(",") == 1 and "." not in text else []
    return [read for form in forms if (read := reading(form)) is not None]


def reading(form: str) -> Read | None:
    if fraction := FRACTION.fullmatch(form):
        below = float(fraction[2])
        return Read(float(fraction[1]) / below if below else math.nan, 0.0)
    if form.lower() in ("inf", "-inf", "nan"):
        return Read(float(form), 0.0)
    match = DECIMAL.fullmatch(form)
    return (None if match is None
            else Read(float(form), float(f"1e{int(match[3] or 0) - len(match[1] or match[2] or '')}")))


def right(text: str, answer: float, scale: float = 0.0) -> bool:
    """Return True if a text gives the answer to the four digits that are shown.

    Fewer digits suffice if they are rounded correctly and off by at most half a percent. `scale` is the largest number
    of the array: errors below a millionth of it are ignored.

    >>> right("0.333", 1 / 3), right("0.34", 1 / 3)
    (True, False)
    """
    for read in readings(text):
        if not math.isfinite(answer) or not math.isfinite(read.value):
            if read.value == answer or math.isnan(answer) and read.value != read.value and "/" not in text:
                return True
            continue
        size = abs(answer)
        digit = 10.0 ** (math.floor(math.log10(size)) - 3) if size > 0 else 1e-6
        if abs(read.value - answer) <= max(0.51 * digit, min(0.5 * read.step, 0.005 * size), 1e-6 * scale):
            return True
    return False


def all_right(texts: Any, answers: Any) -> list[bool]:
    """Return, for each answer, whether the text for it is right."""
    numbers = [float(x) for x in answers]
    scale = max([abs(x) for x in numbers if math.isfinite(x)], default=0.0)
    return [right(text, x, scale) for text, x in zip(texts, numbers, strict=True)]
