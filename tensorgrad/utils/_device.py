"""The device of new tensors as a decorator and as a mode (PyTorch: ``torch.utils._device``)."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..api import device as Device
from ..overrides import TorchFunctionMode

__all__ = ["DeviceContext", "set_device"]


class DeviceContext(TorchFunctionMode):
    """A mode in which functions make tensors on a device unless they are told another, like `with torch.device(…)`."""

    def __init__(self, device: Any) -> None:
        self.device = Device(device)

    def __enter__(self) -> Any:
        self.device.__enter__()
        return super().__enter__()

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        self.device.__exit__(*exception)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def set_device(device: Any) -> Callable[[Any], Any]:
    """Return a decorator of functions and of generators: new tensors are on this device while they run."""
    made: Callable[[Any], Any] = Device(device)
    return made
