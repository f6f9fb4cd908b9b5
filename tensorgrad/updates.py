"""Steps of optimizers as one kernel each, for the backends that have one.

A kernel writes to the arrays that change: `kernel(*changed, *read, **numbers)`, or returns NotImplemented before it writes anything.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .autograd.inplace import check_mode
from .autograd.mode import mode
from .dispatch import PLAIN, OpDispatch

KERNELS: dict[tuple[str, Any], Callable[..., Any]] = {}


def register(name: str, device: Any) -> Callable[[Any], Any]:
    """A decorator: the function becomes the kernel of this update on the device."""
    def decorate(kernel: Any) -> Any:
        KERNELS[name, OpDispatch.backend(device)] = kernel
        return kernel
    return decorate


def at_once(name: str, changed: tuple[Any, ...], read: tuple[Any, ...], **numbers: Any) -> bool:
    """Whether a kernel made this update. Tensors that change may be None; nothing is recorded."""
    backend, arrays = type(changed[0]._storage), []
    kernel = KERNELS.get((name, backend))
    if kernel is None or mode.record or mode.hooks:
        return False
    for tensor in changed + read:
        if tensor is None:
            arrays.append(None)
        elif type(tensor) in PLAIN and type(tensor._storage) is backend:
            arrays.append(tensor.array)
        else:
            return False
    for number in numbers.values():
        if not isinstance(number, (int, float)):
            return False
    for tensor in changed:
        if tensor is not None:
            check_mode(tensor)
    if kernel(*arrays, **numbers) is NotImplemented:
        return False
    for tensor in changed:
        if tensor is not None:
            tensor._storage.wrote()
    return True
