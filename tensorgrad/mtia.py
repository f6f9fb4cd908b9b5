"""torch.mtia: Meta's accelerators, which are not supported. https://pytorch.org/docs/stable/mtia.html"""
from .messages.unsupported import unavailable
from .xpu import (
            device_count,
            is_available,
            is_initialized,
            manual_seed,
            manual_seed_all,
            max_memory_allocated,
            memory_allocated,
            seed,
            seed_all,
)

_REFUSED = {"current_device": "getCurrentDevice", "current_stream": "getCurrentDevice",
            "synchronize": "getCurrentDevice", "empty_cache": "emptyCache",
            "set_device": "setCurrentDevice"}
globals().update({_name: unavailable(_name, RuntimeError, f"Cannot execute {_called}() without MTIA backend.")
                  for _name, _called in _REFUSED.items()})
__all__ = ["device_count", "is_available", "is_initialized", "manual_seed", "manual_seed_all", "max_memory_allocated",
           "memory_allocated", "seed", "seed_all",
           *_REFUSED]
