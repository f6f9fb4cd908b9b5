"""Callbacks by name: objects whose methods have the names of a trainer's hooks."""

from __future__ import annotations

from typing import Any

from ..registry import Registry

registry = Registry("callback")
register, make, names = registry.register, registry.make, registry.names

__all__ = ["Callback", "make", "names", "register", "registry"]  # pyright: ignore


def __getattr__(name: str) -> Any:
    """Import the base class when it is asked for."""
    if name == "Callback":
        from .base import Callback

        return Callback
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
