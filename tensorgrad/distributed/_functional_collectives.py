"""Collectives that give new tensors, with gradients, over any kind of group.

https://pytorch.org/docs → torch.distributed._functional_collectives

PyTorch's compiler rewrites programs into these, and programs of tensor parallelism call them. A group is a
ProcessGroup, its name, a DeviceMesh of one axis, a pair of a mesh and the number of an axis, or a list of ranks.
Results are there when a function returns, so `wait_tensor` gives its argument.
"""
from __future__ import annotations

from typing import Any

from .. import api as tg
from .. import distributed as dist
from . import world
from .device_mesh import DeviceMesh
from .nn import functional
from .operations import ReduceOp

__all__ = ["AsyncCollectiveTensor", "all_gather_into_tensor_coalesced", "all_gather_single",
           "all_gather_single_autograd", "all_gather_tensor", "all_gather_tensor_autograd", "all_reduce",
           "all_reduce_coalesced", "all_to_all_single", "all_to_all_single_autograd", "broadcast", "permute_tensor",
           "reduce_scatter_single", "reduce_scatter_single_autograd", "reduce_scatter_tensor",
           "reduce_scatter_tensor_autograd",
           "reduce_scatter_tensor_coalesced", "wait_tensor"]

REDUCE_OP_TO_STR = {ReduceOp.SUM: "sum", ReduceOp.AVG: "avg", ReduceOp.PRODUCT: "product", ReduceOp.MIN: "min",
                    ReduceOp.MAX: "max", ReduceOp.BAND: "band",
                    ReduceOp.BOR: "bor", ReduceOp.BXOR: "bxor"}
OPS = {name: op for op, name in REDUCE_OP_TO_STR.items()}


class AsyncCollectiveTensor(tg.Tensor):
    """The class of results that are still under way in PyTorch: no tensor is one here."""


def _resolve_group(group: Any, tag: str = "") -> Any:
    """Return the process group that something stands for. ValueError for what does not."""
    if isinstance(group, dist.ProcessGroup):
        return group
    if isinstance(group, str) and group in world._world.groups:
        return world._world.groups[group]
    if isinstance(group, DeviceMesh):
        if group.ndim != 1:
            raise AssertionError("Only 1D mesh is supported, pass in (DeviceMesh, int) together if mesh > 1D")
        return group.get_group()
    if isinstance(group, tuple):
        if len(group) == 2 and isinstance(group[0], DeviceMesh) and isinstance(group[1], int):
            return group[0].get_group(group[1])
        raise ValueError(f"Invalid tuple for group must be (DeviceMesh, int). Instead got {tuple(map(type, group))}")
    if isinstance(group, list):
        lines = [list(line) for line in group] if group and isinstance(group[0], (list, tuple)) else [group]
        own = next((line for line in lines if dist.get_rank() in line), None)
        if own is None:
            raise ValueError(f"this rank, {dist.get_rank()}, is in none of the groups {lines}")
        known = [found for found in world._world.groups.values() if found.ranks == sorted(own)]
        return known[0] if known else dist.split_group(dist.group.WORLD, [own])
    raise ValueError(f"Unsupported group type: {type(group)}, {group}")


def _op(name: Any) -> ReduceOp:
    found = OPS.get(str(name).lower())
    if found is None:
        raise ValueError(f"Unsupported reduce operation: {name}. The reductions are {', '.join(OPS)}.")
    return found


def wait_tensor(tensor: Any) -> Any:
    """Return the tensor: it is there. https://pytorch.org/docs → torch.distributed._functional_collectives"""
    return tensor


def broadcast(self: Any, src: int, group: Any, tag: str = "") -> Any:
    """Return the tensor of the rank `src` of the whole program, on each rank."""
    return functional.broadcast(self, src, _resolve_group(group, tag))


def all_reduce(self: Any, reduceOp: str, group: Any, tag: str = "") -> Any:
    """Return the reduction ("sum", "avg", "min", …) of the tensors of all ranks.

    >>> import tensorgrad as torch, tensorgrad.distributed as dist
    >>> from tensorgrad.distributed._functional_collectives import all_reduce
    >>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    >>> all_reduce(torch.ones(2), "sum", dist.group.WORLD)
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    return functional.all_reduce(self, _op(reduceOp), _resolve_group(group, tag))


def all_gather_single(self: Any, gather_dim: int, group: Any, tag: str = "") -> Any:
    """Return the tensors of all ranks, one after the other along an axis."""
    return tg.cat(functional.all_gather(self, _resolve_group(group, tag)), gather_dim)


def reduce_scatter_single(self: Any, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Any:
    """Return this rank's part, along an axis, of the reduction of the tensors of all ranks.

    AssertionError if the parts are not equal.
    """
    found, op = _resolve_group(group, tag), _op(reduceOp)
    size = dist.get_world_size(found)
    if self.shape[scatter_dim] % size:
        raise AssertionError(f"input dimension {scatter_dim} ({self.shape[scatter_dim]}) must be a multiple of "
                             f"group_size {size}")
    parts = self.chunk(size, scatter_dim)
    return functional.reduce_scatter(tg.empty_like(parts[0], memory_format=tg.contiguous_format), parts, op, found)


def all_to_all_single(self: Any, output_split_sizes: list[int] | None, input_split_sizes: list[int] | None, group: Any,
                      tag: str = "") -> Any:
    """Return the parts of a tensor, along its first axis, that each rank has for this one: equal ones, or of the sizes
    given.
    """
    length = len(self) if output_split_sizes is None else sum(output_split_sizes)
    return functional.all_to_all_single(self.new_empty(length, *self.shape[1:]), self, output_split_sizes,
                                        input_split_sizes, _resolve_group(group, tag))


def permute_tensor(self: Any, src_dst: list[int], group: Any, tag: str = "") -> Any:
    """Return the tensor of the rank m for which src_dst[m] is this one; empty if there is none.

    Shapes are alike on all ranks.
    """
    found = _resolve_group(group, tag)
    rank, count = dist.get_rank(found), self.numel()
    received = [count if to == rank else 0 for to in src_dst]
    sent = [count if to == src_dst[rank] else 0 for to in range(len(src_dst))]
    flat = all_to_all_single(self.reshape(-1), received, sent, found)
    return flat.reshape(self.shape) if any(received) else flat


def all_reduce_coalesced(self: list[Any], reduceOp: str, group: Any, tag: str = "") -> list[Any]:
    """Do `all_reduce` of each of several tensors."""
    found = _resolve_group(group, tag)
    return [all_reduce(tensor, reduceOp, found) for tensor in self]


def all_gather_into_tensor_coalesced(self: list[Any], group: Any, tag: str = "") -> list[Any]:
    """Do `all_gather_single`, along the first axis, of each of several tensors."""
    found = _resolve_group(group, tag)
    return [all_gather_single(tensor, 0, found) for tensor in self]


def reduce_scatter_tensor_coalesced(inputs: list[Any], reduceOp: str, scatter_dim: list[int], group: Any,
                                    tag: str = "") -> list[Any]:
    """Do `reduce_scatter_single` of each of several tensors, along an axis for each."""
    found = _resolve_group(group, tag)
    return [reduce_scatter_single(tensor, reduceOp, dim, found)
            for tensor, dim in zip(inputs, scatter_dim, strict=True)]


def all_gather_tensor_inplace(output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False,
                              tag: str = "", gather_dim: int = 0) -> Any:
    """Do `all_gather_single` into a tensor that is given."""
    return output_tensor.copy_(all_gather_single(input_tensor, gather_dim, group or dist.group.WORLD, tag))


def reduce_scatter_tensor_inplace(output: Any, input: Any, op: str = "sum", group: Any = None, async_op: bool = False,
                                  scatter_dim: int = 0,
                                  tag: str = "") -> Any:
    """Do `reduce_scatter_single` into a tensor that is given."""
    return output.copy_(reduce_scatter_single(input, op, scatter_dim, group or dist.group.WORLD, tag))


all_gather_tensor = all_gather_tensor_autograd = all_gather_single_autograd = all_gather_single
reduce_scatter_tensor = reduce_scatter_tensor_autograd = reduce_scatter_single_autograd = reduce_scatter_single
all_to_all_single_autograd, all_gather_single_coalesced, reduce_scatter_single_coalesced = (
    all_to_all_single, all_gather_into_tensor_coalesced, reduce_scatter_tensor_coalesced)
