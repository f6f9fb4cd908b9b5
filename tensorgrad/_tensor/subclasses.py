"""New subclasses of Tensor: their overrides, and attributes under the name of a slot, such as a property `array`.

In PyTorch these names are free. The code of this package goes on to find the slot, all other code the attribute.
"""
from __future__ import annotations

import sys
from typing import Any

from ..core.class_hooks import CLASSES, disabled_dispatch
from ..core.tape import TensorBase
from .torch_function import arm, disabled

PACKAGE = __name__.partition(".")[0]
SLOTS = {name: vars(TensorBase)[name] for name in ("array", "origin")}


class Shadowed:
    """An attribute of a subclass, before the slot of its name."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value, self.slot = name, value, SLOTS[name]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is not None and _is_ours(sys._getframe(1)):
            return self.slot.__get__(instance, owner)
        kind = type(self.value)
        if instance is not None and not hasattr(kind, "__set__") and self.name in vars(instance):
            return vars(instance)[self.name]
        return kind.__get__(self.value, instance, owner) if hasattr(kind, "__get__") else self.value

    def __set__(self, instance: Any, value: Any) -> None:
        kind: Any = type(self.value)
        if _is_ours(sys._getframe(1)):
            self.slot.__set__(instance, value)
        elif hasattr(kind, "__set__"):
            kind.__set__(self.value, instance, value)
        else:
            vars(instance)[self.name] = value


def _is_ours(frame: Any) -> bool:
    """Return True if the code of this package runs in the frame."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] == PACKAGE


def prepare(cls: Any) -> None:
    """Let functions ask a new subclass, and this package find its slots, whatever attributes the class has.

    Attributes that a class of this package puts before a slot, as uninitialized parameters do, stay what they are.
    """
    if cls.__torch_dispatch__ is not disabled_dispatch:
        from ..interpret import class_dispatch  # noqa: F401  registers itself
        CLASSES.add(cls)
        if not any("__torch_function__" in vars(base) for base in cls.__mro__[:cls.__mro__.index(TensorBase) - 1]):
            cls.__torch_function__ = staticmethod(disabled)        # unless the class says so, it overrides no functions
    if cls.__torch_function__ is not disabled:
        arm()
    for name, slot in SLOTS.items():
        base = next(base for base in cls.__mro__ if name in vars(base))
        found = vars(base)[name]
        if found is not slot and not isinstance(found, Shadowed) and base.__module__.partition(".")[0] != PACKAGE:
            setattr(cls, name, Shadowed(name, found))
