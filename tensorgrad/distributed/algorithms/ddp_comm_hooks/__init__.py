"""Communication hooks of DistributedDataParallel: what happens to a bucket of gradients.

https://pytorch.org/docs/stable/ddp_comm_hooks.html

A hook takes what it was registered with, and a GradBucket, and gives a Future of the flat tensor that goes into the
bucket.
"""
from enum import Enum
from typing import Any

from . import debugging_hooks, default_hooks, powerSGD_hook

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


class Registers:
    """Registers a hook: `(model=…, state=…)`.

    The state is a process group, of which PowerSGD, of products of some rank, makes one of its own.
    """

    def __init__(self, hook: Any, rank: int = 0) -> None:
        self.hook, self.rank = hook, rank

    def __call__(self, model: Any, state: Any = None) -> None:
        model.register_comm_hook(powerSGD_hook.PowerSGDState(state, self.rank) if self.rank else state, self.hook)


class DDPCommHookType(Enum):
    """Hooks by name; the value of each registers it. https://pytorch.org/docs → ddp_comm_hooks"""

    ALLREDUCE = Registers(default_hooks.allreduce_hook)
    FP16_COMPRESS = Registers(default_hooks.fp16_compress_hook)
    BF16_COMPRESS = Registers(default_hooks.bf16_compress_hook)
    POWER_SGD = Registers(powerSGD_hook.powerSGD_hook, 1)
    POWER_SGD_RANK2 = Registers(powerSGD_hook.powerSGD_hook, 2)
    BATCHED_POWER_SGD = Registers(powerSGD_hook.batched_powerSGD_hook, 1)
    BATCHED_POWER_SGD_RANK2 = Registers(powerSGD_hook.batched_powerSGD_hook, 2)
    NOOP = Registers(debugging_hooks.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Register a hook by its name with a DistributedDataParallel; `state` is the process group."""
    comm_hook_type.value(model=model, state=state)
