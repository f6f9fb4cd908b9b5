"""Helpers for modes."""
from __future__ import annotations

from typing import Any

from ..core.class_hooks import DisableTorchDispatch
from ._python_dispatch import _disable_current_modes

__all__ = ["all_same_mode", "no_dispatch"]


class no_dispatch:
    """A `with` block in which no `__torch_dispatch__` is called, neither of modes nor of classes."""

    def __enter__(self) -> None:
        self.blocks = _disable_current_modes(), DisableTorchDispatch()
        for block in self.blocks:
            block.__enter__()

    def __exit__(self, *exception: Any) -> None:
        for block in self.blocks:
            block.__exit__(*exception)


def all_same_mode(modes: Any) -> bool:
    """Return True if all modes equal the first.

    >>> all_same_mode([1, 1]), all_same_mode([1, 2]), all_same_mode([])
    (True, False, True)
    """
    modes = tuple(modes)
    return all(mode == modes[0] for mode in modes)
