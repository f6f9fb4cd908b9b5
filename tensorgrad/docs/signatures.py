"""Write signatures as a program writes calls: names and defaults."""
from __future__ import annotations

import inspect
from enum import EnumType
from types import ModuleType
from typing import Any


def signature_of(thing: Any, method: bool = False) -> str:
    """Return `(a, b=1, *, c)` for a function or class; of a method without its first parameter."""
    # Python's own signature of these, and of callable modules, differs between its versions
    if isinstance(thing, EnumType):
        return "(value)"
    if isinstance(thing, type) and issubclass(thing, Exception):
        return "(message)"
    if isinstance(thing, ModuleType):
        thing = thing.__call__
    try:
        parameters = list(inspect.signature(thing).parameters.values())[int(method):]
    except (TypeError, ValueError):
        return "(…)"
    shown = []
    starred = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    for i, p in enumerate(parameters):
        if p.kind is p.KEYWORD_ONLY and not starred:
            shown.append("*")
            starred = True
        if i and p.kind is not p.POSITIONAL_ONLY and parameters[i - 1].kind is p.POSITIONAL_ONLY:
            shown.append("/")
        name = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
        shown.append(name if p.default is p.empty else f"{name}={_default(p.default)}")
    return f"({', '.join(shown)})"


def _default(value: Any) -> str:
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    text = repr(value)
    return text if " at 0x" not in text else f"<{type(value).__name__}>"
