"""Collectives as steps of autograd: a gradient goes back to the ranks that its values came from.

https://pytorch.org/docs → torch.distributed.nn.functional

The loss of the whole program is the sum of the losses of all ranks. So the gradient of an all-reduced tensor is the
all-reduced gradient, that of a broadcast is a sum at the source, that of a gather is a scatter, and so on. All ranks
call `backward`, on graphs with the same collectives; their gradients can be differentiated again.

SUM and AVG are linear. MIN, MAX and PRODUCT take the gradient of `amin`, `amax` and `prod` over the ranks, where
PyTorch applies the reduction to the gradients of the ranks, which is the gradient of none of them. Results are the
memory that a caller gave, where there is such an argument.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import api as tg
from ... import distributed as dist
from ...autograd.function import Function
from ..operations import ReduceOp

__all__ = ["all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce",
           "reduce_scatter", "scatter"]

LINEAR = (ReduceOp.SUM, ReduceOp.AVG)
OVER_RANKS = {ReduceOp.MIN: tg.Tensor.amin, ReduceOp.MAX: tg.Tensor.amax, ReduceOp.PRODUCT: tg.Tensor.prod}


def broadcast(tensor: Any, src: int, group: Any = None) -> Any:
    """Return the tensor of the rank `src` on each rank; its gradient is the sum of those of all ranks, there, and 0
    elsewhere.

    https://pytorch.org/docs → torch.distributed.nn.functional.broadcast
    """
    return _Broadcast.apply(src, group, tensor)


def gather(tensor: Any, dst: int = 0, group: Any = None) -> tuple[Any, ...]:
    """Return the tensors of all ranks in a tuple at the rank `dst`, and zeros elsewhere.

    https://pytorch.org/docs → torch.distributed.nn.functional.gather
    """
    return _Gather.apply(dst, group, tensor)  # type: ignore[no-any-return]


def scatter(tensors: Sequence[Any], src: int = 0, group: Any = None) -> Any:
    """Return the i-th tensor of the rank `src` at the i-th rank.

    https://pytorch.org/docs → torch.distributed.nn.functional.scatter
    """
    return _Scatter.apply(src, group, *tensors)


def reduce(tensor: Any, dst: int, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the reduction of the tensors of all ranks at the rank `dst`; elsewhere the values mean nothing.

    https://pytorch.org/docs → torch.distributed.nn.functional.reduce
    """
    return _Reduce.apply(dst, op, group, tensor) if op in LINEAR else _over_ranks(op, gather(tensor, dst, group))


def reduce_scatter(output: Any, input_list: Sequence[Any], op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the reduction of the i-th tensors of all ranks at the i-th rank.

    https://pytorch.org/docs → torch.distributed.nn.functional.reduce_scatter
    """
    if op in LINEAR:
        return _ReduceScatter.apply(op, group, output.detach(), *input_list)
    return _over_ranks(op, all_to_all([tg.empty_like(output) for _ in input_list], input_list, group))


def all_gather(tensor: Any, group: Any = None) -> tuple[Any, ...]:
    """Return the tensors of all ranks in a tuple on each; a tensor's gradient is the sum of what each rank has for it.

    https://pytorch.org/docs → torch.distributed.nn.functional.all_gather
    """
    return _AllGather.apply(group, tensor)  # type: ignore[no-any-return]


def _all_gather_base(output_tensor: Any, input_tensor: Any, group: Any = None) -> Any:
    """Do `all_gather` into one tensor, along its first axis."""
    return _AllGatherInto.apply(group, output_tensor.detach(), input_tensor)


def all_to_all(output_tensor_list: Sequence[Any], input_tensor_list: Sequence[Any], group: Any = None) -> tuple[Any,
                                                                                                                ...]:
    """Return, at the j-th rank, the j-th tensors of all ranks in a tuple.

    https://pytorch.org/docs → torch.distributed.nn.functional.all_to_all
    """
    return _AllToAll.apply(group, [out.detach() for out in output_tensor_list], *input_tensor_list)  # type: ignore[no-any-return]


def all_to_all_single(output: Any, input: Any, output_split_sizes: Any = None, input_split_sizes: Any = None,
                      group: Any = None) -> Any:
    """Do `all_to_all` of the parts of one tensor along its first axis: equal ones, or of the sizes given.

    https://pytorch.org/docs → torch.distributed.nn.functional.all_to_all_single
    """
    return _AllToAllSingle.apply(group, output.detach(), output_split_sizes, input_split_sizes, input)


def all_reduce(tensor: Any, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the reduction of the tensors of all ranks on each of them.

    https://pytorch.org/docs → torch.distributed.nn.functional.all_reduce

    >>> import tensorgrad as torch, tensorgrad.distributed as dist
    >>> from tensorgrad.distributed.nn.functional import all_reduce
    >>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> all_reduce(x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    >>> dist.destroy_process_group()
    """
    return _AllReduce.apply(op, group, tensor) if op in LINEAR else _over_ranks(op, all_gather(tensor, group))


# ── steps ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _over_ranks(op: ReduceOp, tensors: tuple[Any, ...]) -> Any:
    """Return the reduction of the tensors of all ranks, by an op that has a gradient."""
    if op not in OVER_RANKS:
        raise RuntimeError(f"the reduction {op} has no gradient: use torch.distributed.all_reduce, which records none")
    return OVER_RANKS[op](tg.stack(tensors), 0)


def _here(rank: int, group: Any) -> bool:
    """Return True if this process is the rank with this number among all."""
    return dist.get_process_group_ranks(group)[dist.get_rank(group)] == rank


def _shared(op: ReduceOp, group: Any, g: Any) -> Any:
    """Return the gradient of a summand: all of it, or its share of a mean."""
    return g / dist.get_world_size(group) if op is ReduceOp.AVG else g


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Any) -> Any:
        ctx.src, ctx.group = src, group
        out = tensor.clone()
        dist.broadcast(out, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        summed = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, g)
        return None, None, summed if _here(ctx.src, ctx.group) else tg.zeros_like(summed)


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: ReduceOp, group: Any, tensor: Any) -> Any:
        ctx.dst, ctx.op, ctx.group = dst, op, group
        out = tensor.clone()
        dist.reduce(out, dst, op, group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, None, None, _shared(ctx.op, ctx.group, _Broadcast.apply(ctx.dst, ctx.group, g))


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Any) -> Any:
        ctx.dst, ctx.group = dst, group
        outs = [tg.zeros_like(tensor) for _ in range(dist.get_world_size(group))]
        dist.gather(tensor, outs if _here(dst, group) else None, dst, group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *gradients)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Any) -> Any:
        ctx.src, ctx.group = src, group
        out = tg.zeros_like(tensors[0])
        dist.scatter(out, list(tensors) if _here(src, group) else None, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, None, *_Gather.apply(ctx.src, ctx.group, g)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: ReduceOp, group: Any, output: Any, *tensors: Any) -> Any:
        ctx.op, ctx.group = op, group
        dist.reduce_scatter(output, list(tensors), op, group)
        return output

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, None, None, *(_shared(ctx.op, ctx.group, part) for part in _AllGather.apply(ctx.group, g))


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Any) -> Any:
        ctx.group = group
        outs = [tg.empty_like(tensor) for _ in range(dist.get_world_size(group))]
        dist.all_gather(outs, tensor, group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, tg.empty_like(gradients[0]), *gradients)


class _AllGatherInto(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, output: Any, tensor: Any) -> Any:
        ctx.group = group
        dist.all_gather_single(output, tensor, group)
        ctx.shape = tensor.shape
        return output

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        parts = g.reshape(dist.get_world_size(ctx.group), *ctx.shape).unbind()
        return None, None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, tg.empty_like(parts[0]), *parts)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, outs: list[Any], *tensors: Any) -> Any:
        ctx.group, ctx.shapes = group, [tensor.shape for tensor in tensors]
        dist.all_to_all(outs, list(tensors), group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        outs = [tg.empty(shape, dtype=gradients[0].dtype, device=gradients[0].device) for shape in ctx.shapes]
        return None, None, *_AllToAll.apply(ctx.group, outs, *gradients)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, output: Any, output_sizes: Any, input_sizes: Any, tensor: Any) -> Any:
        ctx.group, ctx.shape, ctx.sizes = group, tensor.shape, (input_sizes, output_sizes)
        dist.all_to_all_single(output, tensor, output_sizes, input_sizes, group)
        return output

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        out = tg.empty(ctx.shape, dtype=g.dtype, device=g.device)
        return None, None, None, None, _AllToAllSingle.apply(ctx.group, out, *ctx.sizes, g)


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: ReduceOp, group: Any, tensor: Any) -> Any:
        ctx.op, ctx.group = op, group
        out = tensor.clone()
        dist.all_reduce(out, op, group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, g)
