"""The accelerator, if there is one: here, CUDA devices. https://pytorch.org/docs/stable/accelerator.html

>>> import tensorgrad as torch
>>> device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
"""
from __future__ import annotations

from importlib import import_module
from typing import Any

from . import cuda
from .device import device as Device


def is_available() -> bool:
    """Return True if there is a CUDA device. https://pytorch.org/docs → torch.accelerator.is_available"""
    return cuda.is_available()


def device_count() -> int:
    """Return the number of CUDA devices. https://pytorch.org/docs → torch.accelerator.device_count"""
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> Any:
    """The kind of device, or None without one. https://pytorch.org/docs → torch.accelerator.current_accelerator"""
    return Device("cuda") if is_available() else None


def get_device_module(device: Any = None) -> Any:
    """The module of a kind of device, such as `torch.cuda`; of the accelerator, or the CPU, without an argument.

    RuntimeError for kinds without a module, and for anything but a device or its name.
    https://pytorch.org/docs → torch.get_device_module

    >>> import tensorgrad as torch
    >>> torch.get_device_module("cpu") is torch.cpu
    True
    """
    if device is None:
        device = current_accelerator() or "cpu"
    if not isinstance(device, (str, Device)):
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    kind = Device(device).type
    try:
        return import_module(f"{__package__}.{kind}")
    except ModuleNotFoundError:
        raise RuntimeError(f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'."
                           ) from None


def _needing_one(name: str, function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        if not is_available():
            raise RuntimeError("Cannot access accelerator device when none is available.")
        return function(*args, **kwargs)
    call.__name__ = call.__qualname__ = name
    call.__doc__ = (f"{(function.__doc__ or '').partition('https')[0].strip()} https://pytorch.org/docs → "
                    f"torch.accelerator.{name}")
    return call


_FUNCTIONS = {
    "current_device_index": cuda.current_device, "current_device_idx": cuda.current_device,
    "set_device_index": cuda.set_device, "set_device_idx": cuda.set_device, "current_stream": cuda.current_stream,
    "set_stream": cuda.set_stream, "synchronize": cuda.synchronize, "get_device_capability": cuda.get_device_capability,
    "get_memory_info": cuda.mem_get_info, "empty_cache": cuda.empty_cache, "memory_stats": cuda.memory_stats,
    "memory_allocated": cuda.memory_allocated, "memory_reserved": cuda.memory_reserved,
    "max_memory_allocated": cuda.max_memory_allocated,
    "max_memory_reserved": cuda.max_memory_reserved,
    "reset_peak_memory_stats": cuda.reset_peak_memory_stats,
    "reset_accumulated_memory_stats": cuda.reset_accumulated_memory_stats,
}
globals().update({name: _needing_one(name, function) for name, function in _FUNCTIONS.items()})


class device_index(cuda.device):
    """Make 'cuda' mean this device inside a `with` block. https://pytorch.org/docs → torch.accelerator.device_index"""

    __init__ = _needing_one("device_index", cuda.device.__init__)


__all__ = ["current_accelerator", "device_count", "device_index", "is_available", *_FUNCTIONS]
