"""Wrappers: modules that train a model from specs. They share the registry of models: `{name: base}` is one.

>>> from tensorgrad.experiment import wrappers
>>> {"base", "gan", "mlp"} <= set(wrappers.names())
True
"""

from __future__ import annotations

import importlib
from typing import Any

from ..models import make, names, register, registry

_HOMES = {"BaseWrapper": "base", "GANWrapper": "gan"}

__all__ = ["make", "names", "register", "registry", *_HOMES]  # pyright: ignore


def __getattr__(name: str) -> Any:
    """Import a class on first access."""
    if name in _HOMES:
        value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
