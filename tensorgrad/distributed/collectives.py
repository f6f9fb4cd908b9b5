"""Collective functions, which all ranks of a group call together.

https://pytorch.org/docs/stable/distributed.html#collective-functions

Each function takes `group`, by default all ranks, and `async_op`: with it, it gives a `Work` at once, and its tensors
are not to be touched before `Work.wait()`. Ranks call the same collectives in the same order, on tensors of equal
shapes and dtypes. On a rank that is not in the group nothing happens, but for a warning. Results are written to the
memory of tensors; autograd does not see it: `distributed.nn` has collectives with gradients.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import wraps
from typing import Any

from .. import api as tg
from .._tensor import torch_function
from ..overrides import handle_torch_function, has_torch_function
from . import flight_recorder, world
from .group import TIMEOUT, ProcessGroup
from .operations import ReduceOp
from .work import Work
from .world import _group, _outside, _place, _warn_outside

__all__ = ["all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_single", "all_reduce",
           "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "broadcast", "gather",
           "monitored_barrier", "reduce", "reduce_scatter",
           "reduce_scatter_single",
           "reduce_scatter_tensor", "scatter"]

Tensor = tg.Tensor
SUM = ReduceOp.SUM
HOME = f"{__package__}.distributed_c10d"        # the module of these functions that PyTorch names


def _check(tensor: Any, name: str) -> None:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n             "
                        f"but got {type(tensor)} instead.")


def _check_list(tensors: Any, name: str) -> None:
    begins = (f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n             but "
              f"got {type(tensors)}")
    if not isinstance(tensors, list):
        raise TypeError(f"{begins} instead.")
    if not all(isinstance(t, Tensor) for t in tensors):
        raise TypeError(f"{begins} with elements of type {[type(t) for t in tensors]}.")


def _check_dtypes(*tensors: Any) -> None:
    """Check that tensors have one dtype; a complex one goes with that of its parts."""
    last = None
    for tensor in tensors:
        dtype = tensor.dtype.to_real()
        if last is not None and dtype is not last:
            raise ValueError(f"Invalid usage of tensors with different dtypesFound {last} and  {tensor.dtype}")
        last = dtype


def overridable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Ask classes of tensors and modes that override functions first."""
    @wraps(function)
    def asking(*args: Any, **kwargs: Any) -> Any:
        if torch_function.ASKING and has_torch_function((*args, *kwargs.values())):
            return handle_torch_function(asking, (*args, *kwargs.values()), *args, **kwargs)
        return function(*args, **kwargs)
    asking.__module__ = HOME
    return asking


# ── one tensor ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _homed(function: Callable[..., Any]) -> Callable[..., Any]:
    function.__module__ = HOME
    return function


@_homed
def all_reduce(tensor: Any, op: ReduceOp = SUM, group: ProcessGroup | None = None,
               async_op: bool = False) -> Work | Any:
    """Replace the tensor of each rank by the reduction of all, in place.

    https://pytorch.org/docs → torch.distributed.all_reduce

    >>> import tensorgrad as torch
    >>> import tensorgrad.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    >>> x = torch.tensor([1., 2.])
    >>> dist.all_reduce(x, dist.ReduceOp.SUM)
    >>> x
    tensor([1., 2.])
    >>> dist.destroy_process_group()
    """
    if torch_function.ASKING and has_torch_function((tensor,)):
        return handle_torch_function(all_reduce, (tensor,), tensor, op=op, group=group, async_op=async_op)
    if not isinstance(tensor, Tensor):
        _check(tensor, "tensor")
    found: Any = world._world.default if group is None else group
    if found.__class__ is not ProcessGroup:
        if _outside(found):
            return _warn_outside("all_reduce")
        found = _group(group)
    if world._world.coalescing and found in world._world.coalescing:
        return _remember(found, all_reduce, (tensor, op), async_op)
    work = found.allreduce(tensor, op, later=async_op)
    return work if async_op else None


@overridable
def broadcast(tensor: Any, src: int | None = None, group: ProcessGroup | None = None, async_op: bool = False,
              group_src: int | None = None) -> Work | Any:
    """Replace the tensor of each rank by that of one: rank `src` of the world, or `group_src` of the group.

    https://pytorch.org/docs → torch.distributed.broadcast
    """
    found = _group(group)
    root = _place(found, src, group_src)
    _check(tensor, "tensor")
    if _outside(found):
        return _warn_outside("broadcast")
    work = found.broadcast(tensor, root, later=async_op)
    return work if async_op else None


@overridable
def reduce(tensor: Any, dst: int | None = None, op: ReduceOp = SUM, group: ProcessGroup | None = None,
           async_op: bool = False,
           group_dst: int | None = None) -> Work | Any:
    """Replace the tensor of one rank by the reduction of all; others keep theirs.

    https://pytorch.org/docs → torch.distributed.reduce
    """
    found = _group(group)
    root = _place(found, dst, group_dst)
    _check(tensor, "tensor")
    if _outside(found):
        return _warn_outside("reduce")
    work = found.reduce(tensor, root, op, later=async_op)
    return work if async_op else None


# ── lists of tensors ──────────────────────────────────────────────────────────────────────────────────────────────────


@overridable
def all_gather(tensor_list: list[Any], tensor: Any, group: ProcessGroup | None = None,
               async_op: bool = False) -> Work | Any:
    """Fill a list of tensors, one for each rank, with the tensors of all ranks.

    https://pytorch.org/docs → torch.distributed.all_gather
    """
    _check_list(tensor_list, "tensor_list")
    _check(tensor, "tensor")
    _check_dtypes(*tensor_list, tensor)
    if _outside(group):
        return _warn_outside("all_gather")
    work = _group(group).allgather(tensor_list, tensor, later=async_op)
    return work if async_op else None


@overridable
def gather(tensor: Any, gather_list: list[Any] | None = None, dst: int | None = None, group: ProcessGroup | None = None,
           async_op: bool = False,
           group_dst: int | None = None) -> Work | Any:
    """Fill a list of tensors on one rank, by default the first, with the tensors of all ranks.

    https://pytorch.org/docs → torch.distributed.gather
    """
    _check(tensor, "tensor")
    if gather_list:
        _check_list(gather_list, "gather_list")
    _check_dtypes(tensor, *(gather_list or ()))
    found = _group(group)
    if _outside(found):
        return _warn_outside("gather")
    root = _place(found, 0 if dst is None and group_dst is None else dst, group_dst)
    _check_owner(found.rank() == root, gather_list, "gather_list", "destination")
    work = found.gather(gather_list, tensor, root, later=async_op)
    return work if async_op else None


@overridable
def scatter(tensor: Any, scatter_list: list[Any] | None = None, src: int | None = None,
            group: ProcessGroup | None = None, async_op: bool = False,
            group_src: int | None = None) -> Work | Any:
    """Fill the tensor of each rank from a list on one rank, by default the first.

    https://pytorch.org/docs → torch.distributed.scatter
    """
    _check(tensor, "tensor")
    if scatter_list:
        _check_list(scatter_list, "scatter_list")
    _check_dtypes(tensor, *(scatter_list or ()))
    found = _group(group)
    root = _place(found, 0 if src is None and group_src is None else src, group_src)
    if _outside(found):
        return _warn_outside("scatter")
    _check_owner(found.rank() == root, scatter_list, "scatter_list", "source")
    work = found.scatter(tensor, scatter_list, root, later=async_op)
    return work if async_op else None


def _check_owner(own: bool, tensors: Any, name: str, owner: str) -> None:
    """Check that a list is given on the rank that owns it, and on no other."""
    if own and not tensors:
        raise ValueError(f"Argument ``{name}`` must be specified on {owner} rank.")
    if tensors and not own:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{owner} ranks.")


@overridable
def reduce_scatter(output: Any, input_list: list[Any], op: ReduceOp = SUM, group: ProcessGroup | None = None,
                   async_op: bool = False) -> Work | Any:
    """Fill the tensor of rank i with the reduction of the i-th tensors of all lists.

    https://pytorch.org/docs → torch.distributed.reduce_scatter
    """
    _check(output, "output")
    _check_list(input_list, "input_list")
    _check_dtypes(output, *input_list)
    if _outside(group):
        return _warn_outside("reduce_scatter")
    work = _group(group).reduce_scatter(output, input_list, op, later=async_op)
    return work if async_op else None


@overridable
def all_to_all(output_tensor_list: list[Any], input_tensor_list: list[Any], group: ProcessGroup | None = None,
               async_op: bool = False) -> Work | Any:
    """Send the i-th tensor of a list to rank i, and fill the i-th of another with what rank i sent. Sizes may differ.

    https://pytorch.org/docs → torch.distributed.all_to_all
    """
    if _outside(group):
        return _warn_outside("all_to_all")
    _check_list(output_tensor_list, "output_tensor_list")
    _check_list(input_tensor_list, "input_tensor_list")
    _check_dtypes(*output_tensor_list, *input_tensor_list)
    work = _group(group).alltoall(output_tensor_list, input_tensor_list, later=async_op)
    return work if async_op else None


# ── one tensor with a part for each rank ──────────────────────────────────────────────────────────────────────────────


@overridable
def all_gather_single(output_tensor: Any, input_tensor: Any, group: ProcessGroup | None = None,
                      async_op: bool = False) -> Work | Any:
    """Fill one tensor with the tensors of all ranks: `(n * rows, …)` or `(n, rows, …)` of n tensors `(rows, …)`.

    https://pytorch.org/docs → torch.distributed.all_gather_into_tensor
    """
    _check(input_tensor, "input_tensor")
    _check(output_tensor, "output_tensor")
    if _outside(group):
        return _warn_outside("all_gather_single")
    found = _group(group)
    if found in world._world.coalescing:
        return _remember(found, all_gather_single, (output_tensor, input_tensor), async_op)
    work = found._allgather_base(output_tensor, input_tensor, later=async_op)
    return work if async_op else None


@overridable
def reduce_scatter_single(output: Any, input: Any, op: ReduceOp = SUM, group: ProcessGroup | None = None,
                          async_op: bool = False) -> Work | Any:
    """Fill the tensor of rank i with the i-th part of the reduction of all inputs, which are as long as all outputs
    together.

    https://pytorch.org/docs → torch.distributed.reduce_scatter_tensor
    """
    _check(output, "output")
    _check(input, "input")
    if _outside(group):
        return _warn_outside("reduce_scatter_single")
    found = _group(group)
    if found in world._world.coalescing:
        return _remember(found, reduce_scatter_single, (output, input, op), async_op)
    work = found._reduce_scatter_base(output, input, op, later=async_op)
    return work if async_op else None


def all_gather_into_tensor(output_tensor: Any, input_tensor: Any, group: ProcessGroup | None = None,
                           async_op: bool = False) -> Work | Any:
    """Do as `all_gather_single`, under its old name.

    https://pytorch.org/docs → torch.distributed.all_gather_into_tensor
    """
    _renamed("all_gather_into_tensor", "all_gather_single")
    return all_gather_single(output_tensor, input_tensor, group, async_op)


def reduce_scatter_tensor(output: Any, input: Any, op: ReduceOp = SUM, group: ProcessGroup | None = None,
                          async_op: bool = False) -> Work | Any:
    """Do as `reduce_scatter_single`, under its old name.

    https://pytorch.org/docs → torch.distributed.reduce_scatter_tensor
    """
    _renamed("reduce_scatter_tensor", "reduce_scatter_single")
    return reduce_scatter_single(output, input, op, group, async_op)


def _renamed(old: str, new: str) -> None:
    warnings.warn(f"`torch.distributed.{old}` is deprecated. Please use `torch.distributed.{new}` instead.",
                  FutureWarning, stacklevel=flight_recorder.level())


def _all_gather_base(output_tensor: Any, input_tensor: Any, group: ProcessGroup | None = None,
                     async_op: bool = False) -> Work | Any:
    """Do as `all_gather_single`, under an older name."""
    return all_gather_single(output_tensor, input_tensor, group, async_op)


def _reduce_scatter_base(output: Any, input: Any, op: ReduceOp = SUM, group: ProcessGroup | None = None,
                         async_op: bool = False) -> Work | Any:
    """Do as `reduce_scatter_single`, under an older name."""
    return reduce_scatter_single(output, input, op, group, async_op)


@overridable
def all_to_all_single(output: Any, input: Any, output_split_sizes: Sequence[int] | None = None,
                      input_split_sizes: Sequence[int] | None = None,
                      group: ProcessGroup | None = None, async_op: bool = False) -> Work | Any:
    """Send the i-th part of a tensor's rows to rank i, and fill the i-th part of another with what rank i sent.

    Parts are equal, or have the numbers of rows that are given. https://pytorch.org/docs →
    torch.distributed.all_to_all_single
    """
    if _outside(group):
        return _warn_outside("all_to_all_single")
    _check(output, "output")
    _check(input, "input")
    _check_dtypes(output, input)
    work = _group(group).alltoall_base(output, input, output_split_sizes, input_split_sizes, later=async_op)
    return work if async_op else None


# ── barriers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def barrier(group: ProcessGroup | None = None, async_op: bool = False, device_ids: Any = None,
            timeout: timedelta | None = None) -> Work | Any:
    """Wait until all ranks are here. https://pytorch.org/docs → torch.distributed.barrier"""
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    if _outside(group):
        return _warn_outside("barrier")
    work = _group(group).barrier(later=async_op, timeout=timeout)
    return work if async_op else None


def monitored_barrier(group: ProcessGroup | None = None, timeout: timedelta | None = None,
                      wait_all_ranks: bool = False) -> None:
    """Wait until all ranks are here; after the time-out the first rank names one that is not, or with `wait_all_ranks`
    all of them.

    https://pytorch.org/docs → torch.distributed.monitored_barrier
    """
    if _outside(group):
        return _warn_outside("monitored_barrier")
    found = _group(group)
    if isinstance(timeout, float):
        warnings.warn(f"Please specify timeout arg as a timedelta. Converting current value of {timeout} assuming it "
                      f"represents seconds", stacklevel=2)
        timeout = timedelta(seconds=timeout)
    found.monitored_barrier(world._checked(TIMEOUT if timeout is None else timeout), wait_all_ranks)


# ── several at once ───────────────────────────────────────────────────────────────────────────────────────────────────


class _CoalescingManager:
    """The works of a block; `wait` waits for all."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None = None) -> None:
        """Add a work."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Wait for all."""
        for work in self.works:
            work.wait()


def _remember(group: ProcessGroup, function: Callable[..., Any], arguments: tuple[Any, ...], async_op: bool) -> Any:
    """Keep a collective for the end of the block that it is in."""
    world._world.coalescing[group].append((function, arguments))
    return _IllegalWork() if async_op else None


class _IllegalWork(Work):
    """Stands for work of a block that has not ended: there is nothing to ask it. Errors: ValueError."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name in ("is_success", "exception", "wait", "source_rank", "_source_rank", "result", "synchronize"):
            raise ValueError(f"Illegal to call {name} on IllegalWork object")
        return super().__getattribute__(name)


@contextmanager
def _coalescing_manager(group: ProcessGroup | None = None, device: Any = None,
                        async_ops: bool = False) -> Iterator[_CoalescingManager]:
    """Make one message of the all-reduces, gathers or reduce-scatters of a block; with `async_ops`, `wait` comes
    later.
    """
    found, states = _group(group), world._world.coalescing
    if states.get(found):
        raise ValueError("ProcessGroup has non-empty op list at the start of coalescing")
    states[found], manager = [], _CoalescingManager()
    try:
        yield manager
    finally:
        kept = states.pop(found)
    if kept:
        functions = {function for function, _ in kept}
        if len(functions) > 1:
            raise RuntimeError("Coalescing manager requires all collectives to be the same type, "
                               f"but got mixed types: {({f.__name__ for f in functions})}")
        columns = [list(column) for column in zip(*(arguments for _, arguments in kept))]
        if kept[0][0] is all_reduce:
            work = found.allreduce_coalesced(columns[0], columns[1][0])
        elif kept[0][0] is all_gather_single:
            work = found.allgather_into_tensor_coalesced(columns[0], columns[1])
        else:
            work = found.reduce_scatter_tensor_coalesced(columns[0], columns[1], columns[2][0])
        if async_ops:
            manager.append(work)
        else:
            work.wait()


@overridable
def all_reduce_coalesced(tensors: Any, op: ReduceOp = SUM, group: ProcessGroup | None = None,
                         async_op: bool = False) -> Any:
    """Replace several tensors by their reductions, in one message.

    https://pytorch.org/docs → torch.distributed.all_reduce_coalesced
    """
    _old("all_reduce_coalesced")
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    _check_list(tensors, "tensor")
    _check_dtypes(*tensors)
    if _outside(group):
        return _warn_outside("all_reduce_coalesced")
    work = _group(group).allreduce_coalesced(tensors, op)
    return work.get_future() if async_op else work.wait() and None


@overridable
def all_gather_coalesced(output_tensor_lists: Any, input_tensor_list: Any, group: ProcessGroup | None = None,
                         async_op: bool = False) -> Any:
    """Gather several tensors: one list of them per rank.

    https://pytorch.org/docs → torch.distributed.all_gather_coalesced
    """
    _old("all_gather_coalesced")
    if _outside(group):
        return _warn_outside("all_gather_coalesced")
    _check_list(input_tensor_list, "input_tensor_list")
    _check_dtypes(*input_tensor_list)
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for outputs in output_tensor_lists:
        _check_list(outputs, "output_tensor_lists")
        _check_dtypes(*outputs)
    work = _group(group).allgather_coalesced(output_tensor_lists, input_tensor_list)
    return work.get_future() if async_op else work.wait() and None


def _old(name: str) -> None:
    warnings.warn(f"`torch.distributed.{name}` will be deprecated. If you must use it, please revisit our "
                  "documentation later at https://pytorch.org/docs/main/distributed.html#collective-functions",
                  FutureWarning,
                  stacklevel=flight_recorder.level())
