"""Guards and queries of PyTorch's dispatcher that programs with operators of their own call, as in `torch._C`."""
from __future__ import annotations

from typing import Any

from .._ops import OPERATORS
from .._tensor.torch_function import state
from .._unregistered import below
from ..core.mode import mode
from .schemas import Schema, parse

__all__ = ["ExcludeDispatchKeyGuard", "_AutoDispatchBelowAutograd", "_EnableTorchFunction", "_ExcludeDispatchKeyGuard",
           "_dispatch_has_computed_kernel_for_dispatch_key", "_dispatch_has_kernel_for_dispatch_key", "parse_schema"]
ALL_DEVICES = {"CPU", "CUDA"}


class _Guard:
    """A state of this thread that lasts as long as the object, or its `with` block."""

    def __init__(self) -> None:
        self._active = True
        self._enter()

    def _enter(self) -> None:
        """Set the state."""

    def _leave(self) -> None:
        """Restore the state."""

    def _end(self) -> None:
        if self.__dict__.pop("_active", False):
            self._leave()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: object) -> None:
        self._end()

    def __del__(self) -> None:
        self._end()


class _AutoDispatchBelowAutograd(_Guard):
    """While it lives, operators call the kernels of devices, not those for "Autograd", and nothing is recorded.

    >>> import tensorgrad as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch._C._AutoDispatchBelowAutograd():
    ...     print((x * 2).requires_grad)
    False
    """

    def _enter(self) -> None:
        below.depth += 1
        self._grad = mode.grad
        mode.set_grad(False)

    def _leave(self) -> None:
        below.depth -= 1
        mode.set_grad(self._grad)


class _EnableTorchFunction(_Guard):
    """While it lives, functions ask classes for overrides, also inside of `DisableTorchFunction`."""

    def _enter(self) -> None:
        self._before, state.classes, state.disabled = (state.classes, state.disabled), True, False

    def _leave(self) -> None:
        state.classes, state.disabled = self._before


class _ExcludeDispatchKeyGuard(_Guard):
    """Exclude dispatch keys. No effect: only keys of devices and of autograd have kernels here."""

    def __init__(self, keys: Any) -> None:
        super().__init__()


ExcludeDispatchKeyGuard = _ExcludeDispatchKeyGuard


def parse_schema(schema: str) -> Schema:
    """Return the schema that a text describes. Errors: RuntimeError if it is none."""
    return parse(schema)


def _dispatch_has_kernel_for_dispatch_key(name: str, dispatch_key: Any) -> bool:
    """Return True if an operator has a kernel that was registered for just this key."""
    operator = OPERATORS.get(name)
    return operator is not None and getattr(dispatch_key, "name", dispatch_key) in operator.kernels


def _dispatch_has_computed_kernel_for_dispatch_key(name: str, dispatch_key: Any) -> bool:
    """Return True if an operator has a kernel for the key, or one for all devices."""
    key = getattr(dispatch_key, "name", dispatch_key)
    general = ("CompositeExplicitAutograd", "CompositeImplicitAutograd") if key in ALL_DEVICES else ()
    return any(_dispatch_has_kernel_for_dispatch_key(name, k) for k in (key, *general))
