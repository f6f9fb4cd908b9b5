"""The protocol of objects that have a state. https://pytorch.org/docs → torch.distributed.checkpoint.stateful"""
from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """Anything with `state_dict` and `load_state_dict`: a module, an optimizer, a scheduler, a class of a program.

    `save` and `load` call them.
    """

    def state_dict(self) -> dict[str, Any]:
        """Return the state; `load` fills its tensors in place, so it is called before loading, too."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state."""


StatefulT = TypeVar("StatefulT", bound=Stateful)
