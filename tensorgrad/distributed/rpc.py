"""torch.distributed.rpc: calls of functions in other processes, which are not there; packages ask `is_available`
first.
"""
from __future__ import annotations

from ..messages.unsupported import unsupported

_NAMES = "BackendType RRef TensorPipeRpcBackendOptions get_worker_info init_rpc remote rpc_async rpc_sync shutdown"
__all__ = ["is_available", *_NAMES.split()]


def is_available() -> bool:
    """Return False: processes cannot call each other. https://pytorch.org/docs → torch.distributed.rpc"""
    return False


globals().update(unsupported(_NAMES, "torch.distributed.rpc",
                             "processes exchange tensors and objects: torch.distributed.send, recv, send_object_list"))
