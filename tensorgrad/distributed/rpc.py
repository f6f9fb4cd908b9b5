"""torch.distributed.rpc: calls to other processes, which are not there; packages ask `is_available` first."""
from __future__ import annotations

from .._unsupported import unsupported

_NAMES = "BackendType RRef TensorPipeRpcBackendOptions get_worker_info init_rpc remote rpc_async rpc_sync shutdown"
__all__ = ["is_available", *_NAMES.split()]


def is_available() -> bool:
    """Whether processes can call each other, which they cannot. https://pytorch.org/docs → torch.distributed.rpc"""
    return False


globals().update(unsupported(_NAMES, "torch.distributed.rpc", "there is no backend for several processes"))
