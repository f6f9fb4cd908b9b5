"""Questions about several modes."""
from __future__ import annotations

from typing import Any

from ._python_dispatch import _disable_current_modes

__all__ = ["all_same_mode", "no_dispatch"]


class no_dispatch:
    """A `with` block in which no `TorchDispatchMode` sees what is called."""

    def __enter__(self) -> None:
        self.block = _disable_current_modes()
        self.block.__enter__()

    def __exit__(self, *exception: Any) -> None:
        self.block.__exit__(*exception)


def all_same_mode(modes: Any) -> bool:
    """Return True if all modes equal the first.

    >>> all_same_mode([1, 1]), all_same_mode([1, 2]), all_same_mode([])
    (True, False, True)
    """
    modes = tuple(modes)
    return all(mode == modes[0] for mode in modes)
