"""Escape text from files for display."""
from __future__ import annotations

from typing import Any


def escaped(text: Any, most: int | None = None, keep: str = "") -> str:
    r"""Return text as one line that is safe to print on a terminal: characters that move the cursor, colour, hide or
    reorder text become escapes.

    most: the number of characters to show; keep: characters that are not escaped.

    >>> escaped("weight\x1b[2J")
    'weight\\x1b[2J'
    """
    text = str(text)[:most]
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in text)


def escape_error(error: BaseException, keep: str = "") -> None:
    """Escape the message of an error, in place."""
    error.args = tuple(escaped(part, keep=keep) if isinstance(part, str) else part for part in error.args)
