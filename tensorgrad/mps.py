"""torch.mps: Metal devices, which are not supported. https://pytorch.org/docs/stable/mps.html"""
from typing import Any

from .messages.unsupported import unavailable


def is_available() -> bool:
    """Return False: Metal devices are not supported."""
    return False


def device_count() -> int:
    """Return 0: Metal devices are not supported."""
    return 0


def manual_seed(seed: Any) -> None:
    """There is no generator to seed."""


_REFUSED = {"synchronize": "deviceSynchronize", "empty_cache": "emptyCache", "seed": "getDefaultGenerator",
            "get_rng_state": "getDefaultGenerator", "set_rng_state": "getDefaultGenerator",
            "current_allocated_memory": "currentAllocatedMemory", "driver_allocated_memory": "driverAllocatedMemory",
            "recommended_max_memory": "recommendedMaxMemory",
            "set_per_process_memory_fraction": "setMemoryFraction",
            "compile_shader": "compileShader"}
globals().update({_name: unavailable(_name, RuntimeError, f"Cannot execute {_called}() without MPS backend.")
                  for _name, _called in _REFUSED.items()})
__all__ = ["device_count", "is_available", "manual_seed", *_REFUSED]
