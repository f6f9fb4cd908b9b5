"""torch.distributed: several processes that train one model. https://pytorch.org/docs/stable/distributed.html

Backends carry the bytes: "gloo" among the processes of one machine, "mpi" among those that mpiexec or srun started,
    "nccl" among GPUs. Names, arguments and
errors are PyTorch's; `nn.parallel.DistributedDataParallel` averages gradients with any of them.

>>> import tensorgrad as torch
>>> import tensorgrad.distributed as dist
>>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
>>> x = torch.ones(2)
>>> dist.all_reduce(x)
>>> dist.get_rank(), dist.get_world_size(), x
(0, 1, tensor([1., 1.]))
>>> dist.destroy_process_group()
"""
from __future__ import annotations

from importlib import import_module
from typing import Any

from ..nn.parallel.buckets import GradBucket
from . import backends, collectives, objects, options, point_to_point, world
from .backends import *  # noqa: F403
from .collectives import *  # noqa: F403
from .collectives import _all_gather_base, _coalescing_manager, _CoalescingManager, _reduce_scatter_base  # noqa: F401
from .debugging import breakpoint, record_comm
from .errors import DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError
from .file_store import FileStore
from .flight_recorder import DebugLevel, get_debug_level, set_debug_level, set_debug_level_from_env
from .group import TIMEOUT as default_pg_timeout
from .group import ProcessGroup
from .objects import *  # noqa: F403
from .operations import ReduceOp, reduce_op, supports_complex
from .options import *  # noqa: F403
from .point_to_point import *  # noqa: F403
from .rendezvous import register_rendezvous_handler, rendezvous
from .stores import HashStore, PrefixStore, Store
from .tcp_store import TCPStore
from .work import Work
from .world import *  # noqa: F403
from .world import _outside as _rank_not_in_group  # noqa: F401

GroupName = str
__all__ = ["DebugLevel", "DeviceMesh", "DistBackendError", "DistError", "DistNetworkError",  # noqa: F405
           "DistStoreError", "FileStore", "GradBucket", "GroupName", "HashStore", "PrefixStore",
           "ProcessGroup", "QueueEmptyError", "ReduceOp", "Store", "TCPStore", "Work", "breakpoint",
           "default_pg_timeout", "get_debug_level", "init_device_mesh", "record_comm", "reduce_op",  # noqa: F405
           "register_rendezvous_handler", "rendezvous", "set_debug_level", "set_debug_level_from_env",
           "supports_complex", *backends.__all__, *collectives.__all__, *objects.__all__,
           *options.__all__, *point_to_point.__all__, *world.__all__]

set_debug_level_from_env()
# of a module that stands on all of this one
_LATER = {"DeviceMesh": "device_mesh", "init_device_mesh": "device_mesh", "device_mesh": ""}

from . import _names, algorithms, distributed_c10d, rpc  # noqa: E402, F401

_names.make()


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_LATER[name] or name}")
    return getattr(module, name) if _LATER[name] else module
