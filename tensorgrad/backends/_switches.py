"""`flags`: a backend's switches, set within a block."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def flags_of(module: str, **defaults: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Make (set_flags, flags) for a module whose attributes are switches; `flags` resets unnamed ones."""
    def set_flags(**values: Any) -> tuple[Any, ...]:
        """Set switches; return their previous values."""
        there = vars(sys.modules[module])
        if unknown := values.keys() - defaults.keys():
            raise TypeError(f"set_flags() got an unexpected keyword argument '{min(unknown)}'")
        before = tuple(there[name] for name in defaults)
        there.update({name: value for name, value in values.items() if value is not None})
        return before

    @contextmanager
    def flags(**values: Any) -> Iterator[None]:
        """Set the switches within a `with` block."""
        before = set_flags(**{**defaults, **values})
        try:
            yield
        finally:
            vars(sys.modules[module]).update(zip(defaults, before, strict=True))
    return set_flags, flags
