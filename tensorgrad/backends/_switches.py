"""`flags`: a backend's switches, set within a block; and a lock that forbids to set them outside of one."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

FROZEN = [False]


def disable_global_flags() -> None:
    """Let assignments to switches raise RuntimeError from now on; `flags()` of a backend still sets them."""
    FROZEN[0] = True


def flags_frozen() -> bool:
    """Return True after `disable_global_flags()`."""
    return FROZEN[0]


@contextmanager
def allow_mutation() -> Iterator[None]:
    """Allow assignments to switches within a `with` block."""
    FROZEN[0], before = False, FROZEN[0]
    try:
        yield
    finally:
        FROZEN[0] = before


class Switches(ModuleType):
    """A module whose attributes of `switches` are set only while they are not frozen."""

    switches: frozenset[str]        # put there by `flags_of`

    def __setattr__(self, name: str, value: object) -> None:
        if FROZEN[0] and name in self.switches:
            raise RuntimeError(f"not allowed to set torch.backends.{self.__name__.rpartition('.')[2]} flags after "
                               "disable_global_flags; please use flags() context manager instead")
        super().__setattr__(name, value)


def flags_of(module: str, **defaults: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Make (set_flags, flags) for a module whose attributes are switches; `flags` resets unnamed ones."""
    sys.modules[module].__class__ = Switches
    vars(sys.modules[module])["switches"] = frozenset(defaults)

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
