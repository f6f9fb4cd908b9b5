"""Communication hooks of DistributedDataParallel: what happens to a bucket of gradients. https://pytorch.org/docs/stable/ddp_comm_hooks.html

A hook takes what it was registered with, and a GradBucket, and gives a Future of the flat tensor that goes into the bucket.
"""
from enum import Enum
from functools import partial
from typing import Any

from . import debugging_hooks, default_hooks

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


class DDPCommHookType(Enum):
    """Hooks by name. https://pytorch.org/docs → ddp_comm_hooks"""

    ALLREDUCE = partial(default_hooks.allreduce_hook)
    FP16_COMPRESS = partial(default_hooks.fp16_compress_hook)
    BF16_COMPRESS = partial(default_hooks.bf16_compress_hook)
    NOOP = partial(debugging_hooks.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Register a hook by its name with a DistributedDataParallel."""
    model.register_comm_hook(state, comm_hook_type.value.func)
