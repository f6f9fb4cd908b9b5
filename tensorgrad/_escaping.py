"""Text that comes from a file, made fit to be shown."""
from __future__ import annotations

from typing import Any


def escaped(text: Any, most: int | None = None, keep: str = "") -> str:
    r"""A text of one line that a terminal prints as it is: characters that move the cursor, colour, hide or reorder what
    is shown become escapes.

    most: characters of the text that are shown; keep: characters that stay what they are.

    >>> escaped("weight\x1b[2J")
    'weight\\x1b[2J'
    """
    text = str(text)[:most]
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in text)


def escape_error(error: BaseException, keep: str = "") -> None:
    """Escape what an error says, in place."""
    error.args = tuple(escaped(part, keep=keep) if isinstance(part, str) else part for part in error.args)
