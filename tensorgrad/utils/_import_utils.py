"""Helpers that ask for optional packages, under PyTorch's names."""
from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["dill_available", "import_dill"]


def _check_module_exists(name: str) -> bool:
    """Return True if there is a module of this name; it is not imported."""
    try:
        return find_spec(name) is not None
    except ImportError:
        return False


@cache
def dill_available() -> bool:
    """Return True if the package dill is installed."""
    return _check_module_exists("dill")


@cache
def import_dill() -> Any:
    """Return the module dill without its changes to the pickling of functions elsewhere; None if it is absent."""
    if not dill_available():
        return None
    dill = import_module("dill")
    dill.extend(use_dill=False)
    return dill
