"""torch.xpu: Intel's GPUs, which are not supported. https://pytorch.org/docs/stable/xpu.html"""
from typing import Any

from .messages.unsupported import unavailable


def is_available() -> bool:
    """Return False: Intel's GPUs are not supported."""
    return False


is_initialized = is_available


def device_count() -> int:
    """Return 0: Intel's GPUs are not supported."""
    return 0


def memory_allocated(device: Any = None) -> int:
    """Return 0: no memory is in use."""
    return 0


memory_reserved = max_memory_allocated = max_memory_reserved = memory_allocated


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Do nothing: there is no device to seed or empty."""


empty_cache = manual_seed = manual_seed_all = seed = seed_all = _nothing
_REFUSED = ("current_device", "current_stream", "get_device_capability", "get_device_name", "get_device_properties",
            "get_rng_state", "init", "initial_seed", "mem_get_info", "set_device", "set_rng_state", "synchronize")
globals().update({_name: unavailable(_name, AssertionError, "Torch not compiled with XPU enabled")
                  for _name in _REFUSED})
__all__ = ["device_count", "empty_cache", "is_available", "is_initialized", "manual_seed", "manual_seed_all",
           "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "seed", "seed_all",
           *_REFUSED]
