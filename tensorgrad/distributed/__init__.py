"""torch.distributed: several processes that train one model. There is no backend for it here. https://pytorch.org/docs/stable/distributed.html

>>> import tensorgrad as torch
>>> torch.distributed.is_available(), torch.distributed.is_initialized()
(False, False)
"""
from __future__ import annotations

from enum import Enum
from typing import Any

from .._unsupported import unavailable, unsupported

_COLLECTIVE = ("all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single", "barrier",
               "broadcast", "broadcast_object_list", "gather", "gather_object", "get_backend", "get_rank", "get_world_size", "irecv", "isend",
               "monitored_barrier", "new_group", "recv", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list",
               "send")
__all__ = ["Backend", "ProcessGroup", "ReduceOp", "destroy_process_group", "get_default_backend_for_device", "group", "init_process_group", "is_available",
           "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", *_COLLECTIVE]


class ReduceOp(Enum):
    """How values of several processes become one."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = range(8)


class Backend(str):
    """The name of a way to communicate."""

    GLOO, NCCL, MPI, UNDEFINED = "gloo", "nccl", "mpi", "undefined"


class ProcessGroup:
    """The class of PyTorch's groups of processes: nothing here is one."""


class group:
    """The group of all processes: none."""

    WORLD = None


def is_available() -> bool:
    """Whether processes can train together: no. https://pytorch.org/docs → torch.distributed.is_available"""
    return False


is_initialized = is_nccl_available = is_gloo_available = is_mpi_available = is_torchelastic_launched = is_available

globals().update({name: unavailable(name, ValueError, "Default process group has not been initialized, please make sure to call init_process_group.")
                  for name in _COLLECTIVE})
globals().update(unsupported("init_process_group", "torch.distributed", "processes do not communicate; run without it, as is_available() says"))


def destroy_process_group(group: Any = None) -> None:
    """End a group; there is none."""
    raise AssertionError("Process group cannot be None")


def get_default_backend_for_device(device: Any) -> str:
    """The name of the way to communicate that a device would have."""
    return "nccl" if str(device).startswith("cuda") else "gloo"
