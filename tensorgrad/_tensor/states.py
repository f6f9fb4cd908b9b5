"""The state of a tensor besides its values: attributes, slots of its class, or what its own `__getstate__` returns."""
from __future__ import annotations

from typing import Any

from ..core.tape import TensorBase

HOOKS = "_hooks_at_rest"        # an attribute of this package, which is not saved


def slots_of(cls: type) -> list[str]:
    """Return the names of the slots that classes derived from Tensor declare."""
    declared = (vars(kind).get("__slots__", ()) for kind in cls.__mro__ if issubclass(kind, TensorBase)
                and kind is not TensorBase)
    names = [name for slots in declared for name in ([slots] if isinstance(slots, str) else slots)]
    return [name for name in names if name not in ("__dict__", "__weakref__") and hasattr(cls, name)]


def slots_in(tensor: Any) -> dict[str, Any]:
    """Return the values of a tensor's slots, without those that are unset."""
    return {name: getattr(tensor, name) for name in slots_of(type(tensor)) if hasattr(tensor, name)}


def state_of(tensor: Any, without: tuple[str, ...] = (HOOKS,)) -> Any:
    """Return the attributes of a tensor, (attributes, slots) if it has slots, or what its class says.

    without: names of attributes to leave out.
    """
    own: Any = type(tensor).__getstate__
    if own is not vars(object)["__getstate__"]:
        return own(tensor)
    attributes = {name: value for name, value in tensor.__dict__.items() if name not in without}
    slots = slots_in(tensor)
    return (attributes, slots) if slots else attributes


def restore(target: Any, state: Any) -> None:
    """Give a tensor, or an object of a program's class, the state that was saved."""
    own = getattr(type(target), "__setstate__", None)
    if own is not None:
        own(target, state)
        return
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if attributes:
        target.__dict__.update(attributes)
    for name, value in (slots or {}).items():
        setattr(target, name, value)
