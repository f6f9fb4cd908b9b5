"""The default group and its sub-groups: how they are made, named, asked about, and destroyed.

https://pytorch.org/docs/stable/distributed.html
"""
from __future__ import annotations

import hashlib
import io
import os
import sys
import threading
import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ..device import device as Device
from ..nn import processes
from . import backends, flight_recorder
from .backends import Backend, BackendConfig
from .group import TIMEOUT, ProcessGroup
from .plugins import Plugged
from .rendezvous import check_one_machine, launched_by_mpi, rendezvous
from .stores import PrefixStore
from .transport.base import Transport
from .transport.single_rank import Alone

__all__ = ["GroupMember", "destroy_process_group", "get_backend", "get_backend_config", "get_global_rank",
           "get_group_rank", "get_node_local_rank", "get_pg_count", "get_process_group_ranks", "get_rank",
           "get_world_size", "group", "init_process_group", "is_initialized", "is_torchelastic_launched", "new_group",
           "new_subgroups", "new_subgroups_by_enumeration",
           "split_group"]


class World:
    """The groups that this process is in."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.default: ProcessGroup | None = None
        self.groups: dict[str, ProcessGroup] = {}           # by name
        self.count = 0                                      # groups made so far, by all ranks: names of new ones
        self.local: dict[str, int] = {}                     # how often the members alone made a group of these ranks
        self.coalescing: dict[ProcessGroup, list[Any]] = {}
        self.hook: _Hook | None = None


_world = World()


class _WorldMeta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The default group."""
        return _world.default

    @WORLD.setter
    def WORLD(cls, group: ProcessGroup | None) -> None:
        _set_default(group)


class GroupMember(metaclass=_WorldMeta):
    """The group of all ranks, WORLD, and what stands for a group that this rank is not in.

    https://pytorch.org/docs → torch.distributed.GroupMember
    """

    NON_GROUP_MEMBER = -100


group = GroupMember


def _set_default(found: ProcessGroup | None) -> None:
    """Make a group the default one, for `nn.parallel` too."""
    _world.default = processes.default_group = found


def is_initialized() -> bool:
    """Return True after `init_process_group`. https://pytorch.org/docs → torch.distributed.is_initialized"""
    return _world.default is not None


def is_torchelastic_launched() -> bool:
    """Return True if torchrun started this process.

    https://pytorch.org/docs → torch.distributed.is_torchelastic_launched
    """
    return "TORCHELASTIC_RUN_ID" in os.environ


# ── made and destroyed ────────────────────────────────────────────────────────────────────────────────────────────────


def init_process_group(backend: str | None = None, init_method: str | None = None, timeout: timedelta | None = None,
                       world_size: int = -1, rank: int = -1, store: Any = None, group_name: str = "",
                       pg_options: Any = None, device_id: Any = None, _ranks: Any = None) -> None:
    """Join the other ranks in the default group.

    Args:
        backend: "gloo" for the ranks of one machine, "mpi" for those that mpiexec or srun started, "nccl" for CUDA
            tensors, or "cpu:mpi,cuda:nccl"; by default "mpi" where mpiexec or srun started this process, else "gloo"
            for the CPU and "nccl" for CUDA
        init_method: "env://", which asks the variables MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE,
            "tcp://host:port", or "file:///path"
        timeout: how long a collective may take: 30 minutes
        store, rank, world_size: instead of a method
    Errors: ValueError if a default group is there, or a variable is missing; RuntimeError for a backend that is not
        installed.

    https://pytorch.org/docs → torch.distributed.init_process_group

    >>> import tensorgrad.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    >>> dist.get_world_size()
    1
    >>> dist.destroy_process_group()
    """
    if _world.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None:
        _check_with_store(init_method, world_size, rank)
    device_id = _device(device_id)
    if backend is None:
        backend = _default_backend(device_id, store is None and init_method is None)
    timeout = _checked(TIMEOUT if timeout is None else timeout)
    named = Backend(backend)
    if ":" not in named and named not in Backend.backend_list:
        raise AssertionError(f"Unknown backend type {named}")
    config = BackendConfig(named)
    backends.check(config)
    used = set(config.device_backend_map.values())
    if Backend.MPI in used and (world_size != -1 or rank != -1):
        warnings.warn(f"For MPI backend, world_size ({world_size}) and rank ({rank}) are ignored since they are "
                      f"assigned by the MPI runtime.", stacklevel=2)
        rank = world_size = -1
    if Backend.MPI not in used or not used <= {Backend.MPI, Backend.NCCL}:
        if Backend.GLOO in used:
            check_one_machine(init_method, world_size)
        if store is None:
            store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout=timeout))
            store.set_timeout(timeout)
        if not rank < world_size:
            raise RuntimeError(f"rank {rank} of {world_size} cannot be: ranks count from 0")
        # a store may outlive the group that ranks met at it for
        again = (store.add("default_pg", 1) - 1) // world_size if world_size > 1 else 0
        store = PrefixStore(f"default_pg/{again}", store)
    name = str(_world.count)
    found = _made(config, store, rank, world_size, timeout, name, None, "default_pg")
    found.backend, found.config, found.store, found.bound_device_id = named, config, store, device_id
    _world.count += 1
    _world.groups[name] = found
    _set_default(found)
    if Backend.MPI not in used:     # whose transport says more, and ends the job
        _world.hook = _Hook.put(found.rank())


def _check_with_store(init_method: str | None, world_size: int, rank: int) -> None:
    """Raise AssertionError if a group that is given a store is not told which rank of how many this is."""
    if init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if not world_size > 0:
        raise AssertionError("world_size must be positive if using store")
    if not rank >= 0:
        raise AssertionError("rank must be non-negative if using store")


def _device(device: Any) -> Any:
    """The device that a rank is bound to. Errors: ValueError for one that is not there."""
    if device is None or isinstance(device, Device) and device.type == "cpu":
        return device
    from .. import cuda
    if not cuda.is_available():
        said = ("device_id is an int, but no accelerator support is found from" if isinstance(device, int)
                else f"device_id {device} does not match")
        raise ValueError(f"{said} the current compilation. Please use a different compiled version that supports your "
                         f"accelerator.")
    found = Device("cuda", device) if isinstance(device, int) else device
    if found.index is None:
        raise ValueError("Please use a device_id with index.")
    if found.index >= cuda.device_count():
        raise ValueError(f"device_id {found} is out of range. Please use a device index less than the number of "
                         f"accelerators available: {cuda.device_count()}.")
    return found


def _default_backend(device: Any, from_environment: bool) -> str:
    """The backend where a program names none: that of its device, or "mpi" for what mpiexec or srun started, or one for
    each kind of device.
    """
    if device is not None:
        return Backend.default_device_backend_map.get(device.type, Backend.UNDEFINED)
    if from_environment and launched_by_mpi() and backends.is_mpi_available():
        return "cpu:mpi,cuda:nccl" if backends.is_nccl_available() else "mpi"
    return Backend.UNDEFINED


class _Hook:
    """Names the rank in each line of an uncaught error, for the ranks of a job write to one terminal."""

    def __init__(self, rank: int, before: Any) -> None:
        self.rank, self.before = rank, before

    @classmethod
    def put(cls, rank: int) -> _Hook | None:
        """Put it in the place of `sys.excepthook`, unless a thread is the rank."""
        if threading.current_thread() is not threading.main_thread():
            return None
        hook = sys.excepthook = cls(rank, sys.excepthook)
        return hook

    def __call__(self, *error: Any) -> None:
        said, stderr = io.StringIO(), sys.stderr
        if stderr is None:                      # a process without a terminal
            return
        sys.stderr = said
        try:
            self.before(*error)
        finally:
            sys.stderr = stderr
        lines = said.getvalue().split("\n")
        stderr.write("\n".join(f"[rank{self.rank}]: {line}" if line else "" for line in lines))
        stderr.flush()

    def remove(self) -> None:
        """Put back what was there, unless somebody else has come after it."""
        if sys.excepthook is self:
            sys.excepthook = self.before


def _checked(timeout: Any) -> timedelta:
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    return timeout


def _made(config: BackendConfig, store: Any, rank: int, size: int, timeout: timedelta, name: str,
          ranks: list[int] | None, desc: str) -> ProcessGroup:
    """A group with a transport for each kind of device. The one for CUDA is made when a CUDA tensor first comes."""
    made: dict[str, Any] = {}
    transports: dict[str, Any] = {}
    for kind, backend in config.device_backend_map.items():
        if backend in made:
            transports[kind] = made[backend]
        elif backend != Backend.NCCL:
            found = _alone_or(backend, kind, store, rank, size, timeout, name, ranks)
            if not isinstance(found, Transport):
                return Plugged(found, rank, size, ranks, {}, name, timeout, desc, _log(rank))
            rank, size = found.rank, found.size
            transports[kind] = made[backend] = found
    for kind, backend in config.device_backend_map.items():
        if backend == Backend.NCCL:
            transports[kind] = lambda kind=kind, backend=backend: _alone_or(backend, kind, store, rank, size, timeout,
                                                                            name, ranks)
    return ProcessGroup(rank, size, ranks, transports, name, timeout, desc, _log(rank))


def _log(rank: int) -> flight_recorder.Log:
    """The log that all groups of this process share."""
    return flight_recorder.Log(rank) if _world.default is None else _world.default.log


def _alone_or(backend: str, kind: str, store: Any, rank: int, size: int, timeout: timedelta, name: str,
              ranks: list[int] | None) -> Any:
    """The transport of a backend for a new group; of one rank it needs nothing."""
    parent = _world.default
    if size == 1 and backend in backends.MODULES:
        return Alone(backend, "cpu" if backend != Backend.NCCL else kind, timeout)
    if ranks is not None and parent is not None and kind in parent._ready and parent._ready[kind].name == backend:
        found = parent._ready[kind].split(ranks, name)
        found.timeout = timeout
        return found
    prefixed = None if store is None else PrefixStore(f"{name}/{kind}", store)
    found = backends.creator(backend)(prefixed, rank, size, timeout, name, ranks)
    return found


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave a group; the default group with all others.

    https://pytorch.org/docs → torch.distributed.destroy_process_group
    """
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    found = _world.default if group is None else group
    if found is None:
        raise AssertionError("Process group cannot be None")
    if not isinstance(found, ProcessGroup) or _world.groups.get(found.group_name) is not found:
        raise ValueError("Invalid process group specified")
    if found is _world.default:
        for one in reversed(_world.groups.values()):
            one.shutdown()
        if _world.hook is not None:
            _world.hook.remove()
        _world.clear()
        _set_default(None)
    else:
        found.shutdown()
        del _world.groups[found.group_name]


def _abort_process_group(group: ProcessGroup | None = None) -> None:
    """End all work of a group, or of all groups, on all its ranks, and leave it.

    https://pytorch.org/docs → torch.distributed.distributed_c10d
    """
    found = _world.default if group is None else group
    for one in list(_world.groups.values()):
        if found is _world.default or one is found:
            one.abort()
    destroy_process_group(group)


def new_group(ranks: Sequence[int] | None = None, timeout: timedelta | None = None, backend: str | None = None,
              pg_options: Any = None, use_local_synchronization: bool = False, group_desc: str | None = None,
              device_id: Any = None,
              sort_ranks: bool = True) -> Any:
    """Make a group of some of the ranks.

    All ranks call it in one order, or with `use_local_synchronization` the members alone.

    Others get `GroupMember.NON_GROUP_MEMBER`. https://pytorch.org/docs → torch.distributed.new_group
    """
    parent = _group(None)
    size, own = parent.size(), parent.rank()
    named = parent.backend if not backend else Backend(backend)
    timeout = _checked(TIMEOUT if timeout is None else timeout)
    if use_local_synchronization:
        if named == Backend.MPI:
            raise ValueError("MPI backend doesn't support use_local_synchronization=True")
        if ranks is not None and own not in ranks:
            return None
    members = list(range(size)) if ranks is None else sorted(ranks) if sort_ranks else list(ranks)
    if len(set(members)) != len(members):
        raise ValueError(f"ranks list must not contain duplicate entries, got {members}")
    if len(members) > size:
        raise ValueError("the new group's world size should be less or equal to the world size set by "
                         "init_process_group")
    for rank in members:
        if not 0 <= rank < size:
            raise ValueError(f"Rank {rank} is out of range. Valid ranks are 0 to {size - 1} (world_size={size})")
    config = parent.config if not backend else BackendConfig(named)
    backends.check(config)
    name = _new_name(members, use_local_synchronization)
    if own not in members:
        return GroupMember.NON_GROUP_MEMBER
    return _among(members, named, config, timeout, name, group_desc or "undefined")


def _among(members: list[int], backend: Backend, config: BackendConfig, timeout: timedelta, name: str,
           desc: str) -> ProcessGroup:
    """The group of these ranks of the world, of which this is one."""
    parent = _group(None)
    found = _made(config, parent.store, members.index(parent.rank()), len(members), timeout, name, members, desc)
    found.backend, found.config, found.store = backend, config, parent.store
    _world.groups[name] = found
    return found


def _new_name(members: list[int], local: bool) -> str:
    """A name that all ranks, or the members alone, come to without a message."""
    if not local:
        _world.count += 1
        return str(_world.count - 1)
    key = hashlib.sha256("_".join(map(str, members)).encode()).hexdigest()[:24]
    _world.local[key] = _world.local.get(key, 0) + 1
    return f"{key}_{_world.local[key]}"


def new_subgroups(group_size: int | None = None, group: ProcessGroup | None = None, timeout: timedelta | None = None,
                  backend: str | None = None,
                  pg_options: Any = None, group_desc: str | None = None) -> tuple[Any, list[Any]]:
    """Make groups of `group_size` ranks that follow each other: (that of this rank, all).

    https://pytorch.org/docs → torch.distributed.new_subgroups
    """
    if group_size is None:
        from .. import cuda
        if not cuda.is_available():
            raise ValueError("Default group size only takes effect when CUDA is available.If your subgroup using a "
                             "backend that does not depend on CUDA,please pass in 'group_size' correctly.")
        group_size = cuda.device_count()
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    size = get_world_size(group)
    if size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size != 0:
        raise ValueError(f"The world size ({size}) must be divisible by 'group_size={group_size!r}'")
    ranks = get_process_group_ranks(group)
    parts = [ranks[i:i + group_size] for i in range(0, size, group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(ranks_per_subgroup_list: Any, timeout: timedelta | None = None,
                                 backend: str | None = None, pg_options: Any = None,
                                 group_desc: str | None = None) -> tuple[Any, list[Any]]:
    """Make groups of these ranks: (that of this rank, all).

    https://pytorch.org/docs → torch.distributed.new_subgroups_by_enumeration
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    own, groups, home = None, [], {}  # type: Any, list[Any], dict[int, Any]
    for ranks in ranks_per_subgroup_list:
        groups.append(new_group(ranks, timeout, backend, pg_options, group_desc=group_desc))
        for rank in ranks:
            if rank in home:
                raise ValueError(f"Rank {rank} has appeared in both subgroup {home[rank]} and {ranks}")
            home[rank] = ranks
        if get_rank() in ranks:
            own = groups[-1]
    return own, groups


def split_group(parent_pg: ProcessGroup | None = None, split_ranks: Any = None, timeout: timedelta | None = None,
                pg_options: Any = None,
                group_desc: str | None = None, backend: str | None = None) -> ProcessGroup | None:
    """Split a group into parts, given as lists of its ranks; the part that this rank is in.

    https://pytorch.org/docs → torch.distributed.split_group

    PyTorch does so with NCCL alone; here all backends can.
    """
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    parent = _group(parent_pg)
    mine = None
    for part in split_ranks:
        if len(part) == 0:
            raise ValueError("the split group cannot be empty")
        if len(part) > get_world_size():
            raise ValueError("the split group's size should be less or equal to the world_size set by "
                             "init_process_group")
        if len(part) != len(set(part)):
            raise ValueError("the split group cannot have duplicate ranks")
        if parent.rank() in part:
            mine = sorted(part)
    if mine is None:
        return None
    members = [parent.ranks[rank] for rank in mine]
    named = Backend(backend) if backend else parent.backend
    config = BackendConfig(named) if backend else parent.config
    desc = group_desc or f"{parent.group_desc}:split"
    return _among(members, named, config, _checked(timeout or TIMEOUT), _new_name(members, local=True), desc)


def group_over(store: Any, rank: int, size: int, backend: str = "gloo", timeout: timedelta = TIMEOUT,
               name: str = "own") -> ProcessGroup:
    """Make a group of one's own, which is neither the default group nor known to any function that asks about
    groups.
    """
    config = BackendConfig(Backend(backend))
    backends.check(config)
    found = _made(config, store, rank, size, timeout, name, None, "undefined")
    found.backend, found.config, found.store = Backend(backend), config, store
    return found


# ── asked about ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _outside(group: Any) -> bool:
    """Return True if this rank is not in the group."""
    return group is not None and group == GroupMember.NON_GROUP_MEMBER


def _warn_outside(name: str) -> None:
    rank = -1 if _world.default is None else _world.default.rank()
    warnings.warn(f"Running {name} on global rank {rank} which does not belong to the given group.",
                  stacklevel=flight_recorder.level())


def _group(group: Any) -> Any:
    """The group, or the default one. Errors: ValueError if there is none, or it is no group."""
    found = _world.default if group is None else group
    if found is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    if not isinstance(found, ProcessGroup) and not _outside(found):
        raise ValueError(f"Process group {found} is not initialized in the world group map. Please initialize the "
                         f"group first.")
    return found


def _registered(group: Any) -> ProcessGroup:
    if (group is not _world.default and (not isinstance(group, ProcessGroup)
                                         or _world.groups.get(group.group_name) is not group)):
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    return group


def get_rank(group: ProcessGroup | None = None) -> int:
    """Return this rank in a group; -1 if it is not in it. https://pytorch.org/docs → torch.distributed.get_rank"""
    if _outside(group):
        return -1
    default = _group(None)
    return default.rank() if group is None else get_group_rank(group, default.rank())


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Return the number of ranks in a group; -1 if this one is not in it.

    https://pytorch.org/docs → torch.distributed.get_world_size
    """
    return -1 if _outside(group) else _group(group).size()


def _member(group: Any) -> ProcessGroup:
    found = _group(group)
    if _outside(found):
        raise ValueError("Invalid process group specified")
    if not isinstance(found, ProcessGroup) or _world.groups.get(found.group_name) is not found:
        raise ValueError(f"Process group {found} is not initialized in the world group map. Please initialize the "
                         f"group first.")
    return found


def get_backend(group: ProcessGroup | None = None) -> Backend:
    """Return the backend of a group as it was asked for. https://pytorch.org/docs → torch.distributed.get_backend"""
    return _member(group).backend


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """Return which backend of a group serves which kind of device: "cpu:gloo,cuda:gloo".

    https://pytorch.org/docs → torch.distributed.get_backend_config
    """
    return str(_member(group).config)


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """Return the ranks in the world of a group's members.

    https://pytorch.org/docs → torch.distributed.get_process_group_ranks
    """
    return list(_group(group).ranks)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Return the rank in a group of a rank in the world. https://pytorch.org/docs → torch.distributed.get_group_rank"""
    if group is _world.default:
        return global_rank
    ranks = _registered(group).ranks
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Return the rank in the world of a rank in a group.

    https://pytorch.org/docs → torch.distributed.get_global_rank
    """
    if group is _world.default:
        return group_rank
    ranks = _registered(group).ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_pg_count() -> int:
    """Return how many groups were made. https://pytorch.org/docs → torch.distributed.get_pg_count"""
    return _world.count


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return the rank among those of this machine, LOCAL_RANK.

    https://pytorch.org/docs → torch.distributed.get_node_local_rank
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
                           "`get_node_local_rank` to work, assuming you are not running in a multi-device context and "
                           "want the code to run locally instead.")
    return int(fallback_rank)


def _place(found: ProcessGroup, global_rank: int | None, group_rank: int | None) -> int:
    """The rank in a group that one of two arguments names."""
    if group_rank is None:
        if global_rank is None:
            raise ValueError("Must specify global_rank or group_rank")
        return get_group_rank(found, global_rank)
    if global_rank is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    return group_rank
