"""Questions about several modes."""
from __future__ import annotations

from typing import Any

__all__ = ["all_same_mode"]


def all_same_mode(modes: Any) -> bool:
    """Return True if all modes equal the first.

    >>> all_same_mode([1, 1]), all_same_mode([1, 2]), all_same_mode([])
    (True, False, True)
    """
    modes = tuple(modes)
    return all(mode == modes[0] for mode in modes)
