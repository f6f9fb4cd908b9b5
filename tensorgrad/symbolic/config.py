"""Settings of symbolic models.

Each can be set in the environment before the import, as TENSORGRAD_SYMBOLIC_<NAME> (or PYTORCH_SYMBOLIC_<NAME>).
"""
from __future__ import annotations

import os
from ast import literal_eval
from types import TracebackType
from typing import Any


def read_from_env(name: str, default: Any) -> Any:
    """Return a setting: the literal in the environment, or the default.

    ValueError unless it is a literal of the default's type.

    >>> read_from_env("NO_SUCH_SETTING", 50)
    50
    """
    for prefix in ("TENSORGRAD_SYMBOLIC_", "PYTORCH_SYMBOLIC_"):
        if (text := os.environ.get(prefix + name)) is not None:
            try:
                value = literal_eval(text)
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                value = None
            if type(value) is not type(default):
                raise ValueError(f"{prefix}{name} must be a literal of type {type(default).__name__}, such as "
                                 f"{default!r}, not {text[:80]!r}")
            return value
    return default


CODEGEN_BY_DEFAULT = read_from_env("CODEGEN_BY_DEFAULT", True)                 # True: models run from generated source
# repeated layers from this number on become a loop in the source
CODEGEN_MIN_LOOP_LENGTH = read_from_env("CODEGEN_MIN_LOOP_LENGTH", 50)
API_2_ENABLED_BY_DEFAULT = read_from_env("API_2_ENABLED_BY_DEFAULT", True)     # True: layer(x) means x(layer)
_layer_calls = API_2_ENABLED_BY_DEFAULT


def check_layer_calls(module: Any) -> None:
    """Raise TypeError for `layer(x)` while it is disabled."""
    if not _layer_calls:
        raise TypeError(f"{type(module).__name__} was called with a node of a graph, and calls of layers are switched "
                        "off: write x(layer), or switch them on with symbolic.config.enable_symbolic_api_2()")


def is_symbolic_api_2_enabled() -> bool:
    """Return True if `layer(x)` adds a layer to the graph, as `x(layer)` always does."""
    return _layer_calls


def enable_symbolic_api_2() -> None:
    """Let `layer(x)` add layers to the graph."""
    global _layer_calls
    _layer_calls = True


def disable_symbolic_api_2() -> None:
    """Make `layer(x)` raise TypeError, to catch a node passed by mistake."""
    global _layer_calls
    _layer_calls = False


# their former names
enable_symbolic_api_2_for_new_modules, disable_symbolic_api_2_for_new_modules = (enable_symbolic_api_2,
                                                                                 disable_symbolic_api_2)


def optimize_module_calls() -> None:
    """Do nothing; kept for programs that call it.

    Modules handle nodes themselves, without a wrapper that could be removed.
    """


class SymbolicAPI2ContextManager:
    """A context manager in which `layer(x)` adds layers to the graph; it restores the setting afterwards.

    >>> from tensorgrad.symbolic import config
    >>> with config.SymbolicAPI2ContextManager():
    ...     config.is_symbolic_api_2_enabled()
    True
    """

    def __enter__(self) -> None:
        self._before = is_symbolic_api_2_enabled()
        enable_symbolic_api_2()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if not self._before:
            disable_symbolic_api_2()
