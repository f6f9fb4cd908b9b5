"""`torch` is absent for the packages that a program names: they run as where PyTorch is not installed.

Imports, `importlib.import_module`, `importlib.util.find_spec` and `importlib.metadata` answer for them as if there were
no torch. sys.modules is one dict for all modules, in which torch can still be found.
"""
from __future__ import annotations

import builtins
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

HIDDEN: set[str] = set()


def hide_from(packages: Iterable[str]) -> None:
    """Let the modules of these packages find no `torch` from now on."""
    if isinstance(packages, str):
        raise TypeError(f"hidden_from must be a list of names of packages, not the str {packages!r}")
    names = set(packages)
    for name in names:
        if not (isinstance(name, str) and all(part.isidentifier() for part in name.split("."))):
            raise ValueError(f"hidden_from must be a list of names of packages, but has {name!r}")
    HIDDEN.update(names)
    if names and not REPLACED:
        _replace(builtins, "__import__", _import)
        _replace(importlib, "import_module", _import_module)
        _replace(importlib.util, "find_spec", _find_spec)


def show_again() -> None:
    """Undo all `hide_from`."""
    HIDDEN.clear()
    while REPLACED:
        setattr(*REPLACED.pop())


def is_hidden_from(module: Any) -> bool:
    """Return True if the module of this name is in a package that is to find no `torch`."""
    return isinstance(module, str) and any(f"{module}.".startswith(f"{name}.") for name in HIDDEN)


def asks_for_metadata() -> bool:
    """Return True if a hidden package called the function of `importlib.metadata` that is running."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in LIBRARIES:
        frame = frame.f_back
    return frame is not None and is_hidden_from(frame.f_globals.get("__name__"))


LIBRARIES = {"importlib", "importlib_metadata", __name__.partition(".")[0]}
# (module, name, value) of functions of the standard library that are replaced while something is hidden
REPLACED: list[tuple[Any, str, Any]] = []


def _replace(module: Any, name: str, make: Callable[[Any], Any]) -> None:
    plain = getattr(module, name)
    REPLACED.append((module, name, plain))
    setattr(module, name, wraps(plain)(make(plain)))


def _import(plain: Any) -> Any:
    def __import__(name: Any, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if level == 0 and _is_torch(name) and globals is not None and is_hidden_from(globals.get("__name__")):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return plain(name, globals, locals, fromlist, level)
    return __import__


def _import_module(plain: Any) -> Any:
    def import_module(name: Any, package: Any = None) -> Any:
        if _is_torch(name) and is_hidden_from(sys._getframe(1).f_globals.get("__name__")):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return plain(name, package)
    return import_module


def _find_spec(plain: Any) -> Any:
    def find_spec(name: Any, package: Any = None) -> Any:
        if _is_torch(name) and is_hidden_from(sys._getframe(1).f_globals.get("__name__")):
            if name == "torch":
                return None
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
        return plain(name, package)
    return find_spec


def _is_torch(name: Any) -> bool:
    return isinstance(name, str) and (name == "torch" or name.startswith("torch."))
