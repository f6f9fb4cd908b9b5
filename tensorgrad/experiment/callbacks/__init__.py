"""Callbacks by name: objects whose methods have the names of a trainer's hooks."""

from __future__ import annotations

import importlib
from typing import Any

from ..registry import Registry

_HOMES = {
    "Callback": "base",
    "ModelCheckpoint": "checkpoints",
    "EarlyStopping": "stopping",
    "LearningRateMonitor": "rates",
    "ProgressBar": "progress",
    "GlobalProgressBar": "progress",
    "BaseLogger": "logger",
    "TrainingPage": "page",
}
registry = Registry("callback", *(f"{__name__}.{home}" for home in dict.fromkeys(_HOMES.values())))
register, make, names = registry.register, registry.make, registry.names

__all__ = ["make", "names", "register", "registry", *_HOMES]  # pyright: ignore


def __getattr__(name: str) -> Any:
    """Import a class on first access."""
    if name in _HOMES:
        value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
