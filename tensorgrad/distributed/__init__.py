"""torch.distributed: several processes that train one model. https://pytorch.org/docs/stable/distributed.html

What PyTorch does in its backend gloo is done over a store, which the first process serves: this is for training that is correct, on few processes, rather
than for speed. DistributedDataParallel averages gradients with it.

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

import os
from datetime import timedelta
from functools import partial
from typing import Any

from .. import api as _tg
from .groups import ProcessGroup, ReduceOp, Work, from_bytes, packed, to_bytes, unpacked
from .stores import TIMEOUT, DistStoreError, HashStore, PrefixStore, Store, TCPStore

__all__ = ["Backend", "DistError", "DistStoreError", "GroupMember", "HashStore", "PrefixStore", "ProcessGroup", "ReduceOp", "Store", "TCPStore", "Work",
           "all_gather", "all_gather_into_tensor", "all_gather_object", "all_gather_single", "all_reduce", "all_to_all", "all_to_all_single", "barrier",
           "broadcast", "broadcast_object_list", "destroy_process_group", "gather", "gather_object", "get_backend", "get_default_backend_for_device",
           "get_global_rank", "get_group_rank", "get_process_group_ranks", "get_rank", "get_world_size", "group", "init_process_group", "irecv", "is_available",
           "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched",
           "is_ucc_available", "is_xccl_available", "isend", "monitored_barrier", "new_group", "recv", "reduce", "reduce_scatter", "reduce_scatter_single",
           "reduce_scatter_tensor", "scatter", "scatter_object_list", "send"]

default_pg_timeout = TIMEOUT


class DistError(RuntimeError):
    """An error of processes that work together."""


class Backend(str):
    """The name of a way to communicate. https://pytorch.org/docs → torch.distributed.Backend"""

    GLOO, NCCL, MPI, UCC, XCCL, UNDEFINED = "gloo", "nccl", "mpi", "ucc", "xccl", "undefined"

    def __new__(cls, name: str) -> Backend:
        return super().__new__(cls, name.lower())


class GroupMember:
    """The group of all processes, and what stands for a group that this process is not in."""

    WORLD: Any = None
    NON_GROUP_MEMBER = -100


group = GroupMember
_groups = 0


def is_available() -> bool:
    """Whether processes can work together: yes. https://pytorch.org/docs → torch.distributed.is_available"""
    return True


def is_initialized() -> bool:
    """Whether `init_process_group` was called. https://pytorch.org/docs → torch.distributed.is_initialized"""
    return GroupMember.WORLD is not None


def _no() -> bool:
    """No."""
    return False


is_gloo_available, is_nccl_available, is_mpi_available, is_ucc_available, is_xccl_available = is_available, _no, _no, _no, _no


def is_backend_available(backend: str) -> bool:
    """Whether there is a way to communicate of this name."""
    return backend.lower() == "gloo"


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


# ── groups ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def init_process_group(backend: str | None = None, init_method: str | None = None, timeout: timedelta | None = None, world_size: int = -1, rank: int = -1,
                       store: Any = None, group_name: str = "", pg_options: Any = None, device_id: Any = None) -> None:
    """Meet the other processes: over `store`, at `tcp://host:port`, or where the variables MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE say.

    https://pytorch.org/docs → torch.distributed.init_process_group
    """
    if GroupMember.WORLD is not None:
        raise ValueError("trying to initialize the default process group twice!")
    names = [part.rpartition(":")[2].lower() for part in (backend or "gloo").split(",")]
    for name in names:
        if name in ("nccl", "mpi", "ucc", "xccl"):
            raise RuntimeError(f"Distributed package doesn't have {name.upper()} built in")
        if name != "gloo":
            raise AssertionError(f"Unknown backend type {name}")
    if store is None:
        store, rank, world_size = _met(init_method or "env://", rank, world_size, timeout or TIMEOUT)
    GroupMember.WORLD = ProcessGroup(PrefixStore("world", store), rank, world_size)
    _set_default(GroupMember.WORLD)


def _met(url: str, rank: int, world_size: int, timeout: timedelta) -> tuple[Store, int, int]:
    """The store at a URL, and this process's number and how many there are."""
    kind, _, rest = url.partition("://")
    address, _, query = rest.partition("?")
    if kind not in ("env", "tcp"):
        raise RuntimeError(f"No rendezvous handler for {kind}://")
    given = dict(part.split("=") for part in query.split("&") if part)

    def known(name: str, value: int) -> int:
        if value >= 0:
            return value
        if kind == "tcp":
            if name.lower() not in given:
                raise ValueError(f"Error initializing torch.distributed using tcp:// rendezvous: {name.lower().replace('_', ' ')} parameter missing")
            return int(given[name.lower()])
        return int(variable(name))

    def variable(name: str) -> str:
        if name not in os.environ:
            raise ValueError(f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, but not set")
        return os.environ[name]
    rank, world_size = known("RANK", rank), known("WORLD_SIZE", world_size)
    host, _, port = address.rpartition(":") if kind == "tcp" else (variable("MASTER_ADDR"), "", variable("MASTER_PORT"))
    if world_size == 1:
        return HashStore(), rank, world_size
    return TCPStore(host, int(port), world_size, rank == 0, timeout), rank, world_size


def _set_default(world: Any) -> None:
    from ..nn import processes
    processes.default_group = world


def destroy_process_group(group: Any = None) -> None:
    """Leave a group, or all of them. https://pytorch.org/docs → torch.distributed.destroy_process_group"""
    if GroupMember.WORLD is None:
        raise AssertionError("Process group cannot be None")
    if group is None or group is GroupMember.WORLD:
        GroupMember.WORLD = None
        _set_default(None)


def new_group(ranks: Any = None, timeout: Any = None, backend: Any = None, pg_options: Any = None, use_local_synchronization: bool = False,
              group_desc: Any = None, device_id: Any = None) -> Any:
    """A group of some of the processes; all of them must make it. https://pytorch.org/docs → torch.distributed.new_group"""
    global _groups
    world, _groups = _group(None), _groups + 1
    ranks = sorted(range(world.size()) if ranks is None else ranks)
    for rank in ranks:
        if not 0 <= rank < world.size():
            raise ValueError(f"Rank {rank} is out of range. Valid ranks are 0 to {world.size() - 1} (world_size={world.size()})")
    if world.rank() not in ranks:
        return GroupMember.NON_GROUP_MEMBER
    return ProcessGroup(PrefixStore(f"group{_groups}", world._store), ranks.index(world.rank()), len(ranks), ranks)


def _group(group: Any) -> Any:
    group = GroupMember.WORLD if group is None else group
    if group is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return group


def get_rank(group: Any = None) -> int:
    """The number of this process; -1 if it is not in the group. https://pytorch.org/docs → torch.distributed.get_rank"""
    return -1 if _outside(group) else _group(group).rank()  # type: ignore[no-any-return]


def get_world_size(group: Any = None) -> int:
    """How many processes there are; -1 if this one is not in the group. https://pytorch.org/docs → torch.distributed.get_world_size"""
    return -1 if _outside(group) else _group(group).size()  # type: ignore[no-any-return]


def get_backend(group: Any = None) -> str:
    """The name of the way to communicate. https://pytorch.org/docs → torch.distributed.get_backend"""
    return _group(group).name()  # type: ignore[no-any-return]


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The numbers, among all processes, of those of a group."""
    return list(_group(group).ranks)


def get_group_rank(group: Any, global_rank: int) -> int:
    """The number in a group of one of all processes."""
    return _group(group).ranks.index(global_rank)  # type: ignore[no-any-return]


def get_global_rank(group: Any, group_rank: int) -> int:
    """The number among all processes of one of a group."""
    return _group(group).ranks[group_rank]  # type: ignore[no-any-return]


def get_default_backend_for_device(device: Any) -> str:
    """The name of the way to communicate that a device has in PyTorch."""
    return "nccl" if str(device).startswith("cuda") else "gloo"


def _outside(group: Any) -> bool:
    return group is not None and group == GroupMember.NON_GROUP_MEMBER


# ── what processes do together ────────────────────────────────────────────────────────────────────────────────────────


def _done(work: Work, async_op: bool) -> Any:
    if async_op:
        return work
    work.wait()
    return None


def _check(tensor: Any, name: str = "tensor") -> None:
    if not isinstance(tensor, _tg.Tensor):
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n             but got {type(tensor)} instead.")


def _place(group: Any, rank: Any, group_rank: Any) -> int:
    return get_group_rank(group, 0 if rank is None else rank) if group_rank is None and rank in group.ranks else group_rank if rank is None else rank


def all_reduce(tensor: Any, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """The tensors of all processes, joined, in each of them. https://pytorch.org/docs → torch.distributed.all_reduce"""
    _check(tensor)
    return None if _outside(group) else _done(_group(group).allreduce(tensor, op), async_op)


def broadcast(tensor: Any, src: Any = None, group: Any = None, async_op: bool = False, group_src: Any = None) -> Any:
    """The tensor of one process in all of them. https://pytorch.org/docs → torch.distributed.broadcast"""
    _check(tensor)
    if _outside(group):
        return None
    found = _group(group)
    return _done(found.broadcast(tensor, _place(found, src, group_src)), async_op)


def reduce(tensor: Any, dst: Any = None, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False, group_dst: Any = None) -> Any:
    """The tensors of all processes, joined, in one of them. https://pytorch.org/docs → torch.distributed.reduce"""
    found = _group(group)
    target = _place(found, dst, group_dst)
    arrived = found.exchanged({target: packed(tensor)}, range(found.size()) if found.rank() == target else [])
    return _done(Work(lambda: tensor.copy_(found.joined(arrived(), tensor, op)) if found.rank() == target else None), async_op)


def all_gather(tensor_list: Any, tensor: Any, group: Any = None, async_op: bool = False) -> Any:
    """The tensors of all processes, in a list in each of them. https://pytorch.org/docs → torch.distributed.all_gather"""
    found = _group(group)
    if len(tensor_list) != found.size():
        raise RuntimeError(f"ProcessGroupGloo::allgather: invalid output tensor list at index 0 (expected length {found.size()}, got {len(tensor_list)})")
    for i, out in enumerate(tensor_list):
        if out.shape != tensor.shape:
            said = [", ".join(map(str, t.shape)) for t in (tensor, out)]
            raise RuntimeError(f"ProcessGroupGloo::allgather: invalid tensor size at index {i} (expected ({said[0]}), got ({said[1]}))")
    return _done(Work(partial(_placed, found.to_all(packed(tensor)), list(tensor_list))), async_op)


def _placed(arrived: Any, outputs: list[Any]) -> None:
    for other, data in arrived().items():
        outputs[other].copy_(unpacked(data, outputs[other]))


def all_gather_into_tensor(output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False) -> Any:
    """The tensors of all processes, one after the other, in each of them. https://pytorch.org/docs → torch.distributed.all_gather_into_tensor"""
    size = _group(group).size()
    return all_gather(list(output_tensor.view(size, *input_tensor.shape).unbind()), input_tensor, group, async_op)


def _check_owner(own: bool, tensors: Any, name: str, owner: str) -> None:
    """A list is given in the process that owns it, and in no other."""
    if own and not tensors:
        raise ValueError(f"Argument ``{name}`` must be specified on {owner} rank.")
    if tensors and not own:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{owner} ranks.")


def gather(tensor: Any, gather_list: Any = None, dst: Any = None, group: Any = None, async_op: bool = False, group_dst: Any = None) -> Any:
    """The tensors of all processes, in a list in one of them. https://pytorch.org/docs → torch.distributed.gather"""
    found = _group(group)
    target = _place(found, 0 if dst is None and group_dst is None else dst, group_dst)
    own = found.rank() == target
    _check_owner(own, gather_list, "gather_list", "destination")
    return _done(Work(partial(_placed, found.exchanged({target: packed(tensor)}, range(found.size()) if own else []), gather_list)), async_op)


def scatter(tensor: Any, scatter_list: Any = None, src: Any = None, group: Any = None, async_op: bool = False, group_src: Any = None) -> Any:
    """One process's list of tensors, one for each process. https://pytorch.org/docs → torch.distributed.scatter"""
    found = _group(group)
    source = _place(found, 0 if src is None and group_src is None else src, group_src)
    own = found.rank() == source
    _check_owner(own, scatter_list, "scatter_list", "source")
    arrived = found.exchanged({i: packed(t) for i, t in enumerate(scatter_list)} if own else {}, [source])
    return _done(Work(lambda: tensor.copy_(unpacked(arrived()[source], tensor))), async_op)


def reduce_scatter(output: Any, input_list: Any, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """The i-th tensors of all processes' lists, joined, in the i-th process. https://pytorch.org/docs → torch.distributed.reduce_scatter"""
    found = _group(group)
    arrived = found.exchanged({i: packed(t) for i, t in enumerate(input_list)}, range(found.size()))
    return _done(Work(lambda: output.copy_(found.joined(arrived(), output, op))), async_op)


def reduce_scatter_tensor(output: Any, input: Any, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """`reduce_scatter` of the pieces of one tensor. https://pytorch.org/docs → torch.distributed.reduce_scatter_tensor"""
    return reduce_scatter(output, list(input.view(_group(group).size(), *output.shape).unbind()), op, group, async_op)


all_gather_single, reduce_scatter_single = all_gather_into_tensor, reduce_scatter_tensor


def all_to_all(output_tensor_list: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False) -> Any:
    """The i-th tensor of each process's list goes to the i-th process. https://pytorch.org/docs → torch.distributed.all_to_all"""
    found = _group(group)
    arrived = found.exchanged({i: packed(t) for i, t in enumerate(input_tensor_list)}, range(found.size()))
    return _done(Work(partial(_placed, arrived, list(output_tensor_list))), async_op)


def all_to_all_single(output: Any, input: Any, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None,
                      async_op: bool = False) -> Any:
    """`all_to_all` of the pieces of one tensor. https://pytorch.org/docs → torch.distributed.all_to_all_single"""
    size = _group(group).size()
    pieces = [list(t.split(sizes or [len(t) // size] * size)) for t, sizes in ((output, output_split_sizes), (input, input_split_sizes))]
    return all_to_all(*pieces, group, async_op)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Any:
    """Until all processes are here. https://pytorch.org/docs → torch.distributed.barrier"""
    return None if _outside(group) else _done(_group(group).barrier(), async_op)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """`barrier`. https://pytorch.org/docs → torch.distributed.monitored_barrier"""
    barrier(group)


# ── objects ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """The objects of all processes, which are pickled, in a list in each. https://pytorch.org/docs → torch.distributed.all_gather_object"""
    for other, data in _group(group).to_all(to_bytes(obj))().items():
        object_list[other] = from_bytes(data)


def gather_object(obj: Any, object_gather_list: Any = None, dst: Any = None, group: Any = None, group_dst: Any = None) -> None:
    """The objects of all processes in a list in one of them. https://pytorch.org/docs → torch.distributed.gather_object"""
    found = _group(group)
    target = _place(found, 0 if dst is None and group_dst is None else dst, group_dst)
    for other, data in found.exchanged({target: to_bytes(obj)}, range(found.size()) if found.rank() == target else [])().items():
        object_gather_list[other] = from_bytes(data)


def broadcast_object_list(object_list: list[Any], src: Any = None, group: Any = None, device: Any = None, group_src: Any = None) -> None:
    """One process's objects in all of them. https://pytorch.org/docs → torch.distributed.broadcast_object_list"""
    found = _group(group)
    source = _place(found, 0 if src is None and group_src is None else src, group_src)
    parts = dict.fromkeys(range(found.size()), to_bytes(object_list)) if found.rank() == source else {}
    object_list[:] = from_bytes(found.exchanged(parts, [source])()[source])


def scatter_object_list(scatter_object_output_list: list[Any], scatter_object_input_list: Any = None, src: Any = None, group: Any = None,
                        group_src: Any = None) -> None:
    """One process's objects, one for each process. https://pytorch.org/docs → torch.distributed.scatter_object_list"""
    found = _group(group)
    source = _place(found, 0 if src is None and group_src is None else src, group_src)
    parts = {i: to_bytes(o) for i, o in enumerate(scatter_object_input_list)} if found.rank() == source else {}
    scatter_object_output_list[0] = from_bytes(found.exchanged(parts, [source])()[source])


# ── from one process to another ───────────────────────────────────────────────────────────────────────────────────────


def isend(tensor: Any, dst: Any = None, group: Any = None, tag: int = 0, group_dst: Any = None) -> Work:
    """Send a tensor, without waiting. https://pytorch.org/docs → torch.distributed.isend"""
    found = _group(group)
    target = _place(found, dst, group_dst)
    if target == found.rank():
        raise ValueError("Invalid destination rank: destination rank should not be the same as the rank of the current process.")
    found._store.post(found.letter(found.rank(), target, tag), packed(tensor), 1)
    return Work()


def send(tensor: Any, dst: Any = None, group: Any = None, tag: int = 0, group_dst: Any = None) -> None:
    """Send a tensor. https://pytorch.org/docs → torch.distributed.send"""
    isend(tensor, dst, group, tag, group_dst)


def irecv(tensor: Any, src: Any = None, group: Any = None, tag: int = 0, group_src: Any = None) -> Work:
    """Receive a tensor, without waiting. https://pytorch.org/docs → torch.distributed.irecv"""
    found = _group(group)
    key = found.letter(_place(found, src, group_src), found.rank(), tag)
    return Work(lambda: tensor.copy_(unpacked(found._store.take(key), tensor)))


def recv(tensor: Any, src: Any = None, group: Any = None, tag: int = 0, group_src: Any = None) -> int:
    """Receive a tensor; the number of the process that sent it. https://pytorch.org/docs → torch.distributed.recv"""
    irecv(tensor, src, group, tag, group_src).wait()
    return int(src if src is not None else group_src)

from . import _names, algorithms, device_mesh, rpc  # noqa: E402, F401

_names.make()
