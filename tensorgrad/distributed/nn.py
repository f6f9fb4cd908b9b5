"""torch.distributed.nn: what processes do together, with gradients. https://pytorch.org/docs → torch.distributed.nn"""
from __future__ import annotations

from typing import Any

from .. import api as tg
from .. import distributed as dist
from ..autograd.function import Function
from .operations import ReduceOp

__all__ = ["all_gather", "all_reduce", "broadcast"]


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Any) -> Any:
        ctx.op, ctx.group = op, group
        out = tensor.clone()
        dist.all_reduce(out, op, group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, g)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Any) -> Any:
        ctx.group = group
        outs = [tg.empty_like(tensor) for _ in range(dist.get_world_size(group))]
        dist.all_gather(outs, tensor.contiguous(), group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        g = tg.stack([g.contiguous() for g in gradients])
        dist.all_reduce(g, ReduceOp.SUM, ctx.group)
        return None, g[dist.get_rank(ctx.group)]


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Any) -> Any:
        ctx.src, ctx.group = src, group
        out = tensor.clone()
        dist.broadcast(out, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        g = g.clone()
        dist.reduce(g, ctx.src, ReduceOp.SUM, ctx.group)
        return None, None, g if dist.get_rank() == ctx.src else tg.zeros_like(g)


def all_reduce(tensor: Any, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Any:
    """The tensors of all processes, joined. https://pytorch.org/docs → torch.distributed.nn.functional.all_reduce"""
    return _AllReduce.apply(op, group, tensor)


def all_gather(tensor: Any, group: Any = None) -> Any:
    """The tensors of all processes. https://pytorch.org/docs → torch.distributed.nn.functional.all_gather"""
    return _AllGather.apply(group, tensor)


def broadcast(tensor: Any, src: int, group: Any = None) -> Any:
    """The tensor of one process. https://pytorch.org/docs → torch.distributed.nn.functional.broadcast"""
    return _Broadcast.apply(src, group, tensor)
