"""Steps of the tape that go from one device to several, and back.

Each function gathers what its counterpart sends out: each is the gradient of another.
"""
from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ... import api as tg
from ...autograd.function import Function

if TYPE_CHECKING:
    from ..._tensor import Tensor


class Broadcast(Function):
    """Copies of a tensor on several devices; their gradients are added up, in the order of the devices."""

    @staticmethod
    def forward(ctx: Any, devices: Any, input: Tensor) -> Tensor:
        ctx.device = input.device
        ctx.set_materialize_grads(False)            # a copy that nobody used has nothing to add
        return tuple(input if device == input.device else input.to(device) for device in devices)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        first, *rest = [g.to(ctx.device) for g in gradients if g is not None]
        for g in rest:
            first = first + g
        return None, first


class Scatter(Function):
    """Chunks of a tensor along an axis, each on a device of its own."""

    @staticmethod
    def forward(ctx: Any, devices: Any, sizes: Any, dim: Any, input: Tensor) -> Tensor:
        ctx.device, ctx.dim = input.device, dim
        chunks = input.chunk(len(devices), dim) if sizes is None else input.split(list(sizes), dim)
        return tuple(chunk.to(device) for chunk, device in zip(chunks, devices))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, None, None, Gather.apply(ctx.device, ctx.dim, *gradients)


class Gather(Function):
    """Tensors of several devices on one, side by side along an axis."""

    @staticmethod
    def forward(ctx: Any, device: Any, dim: Any, *inputs: Any) -> Tensor:
        ctx.devices, ctx.dim = [input.device for input in inputs], dim
        ctx.scalars = dim == 0 and all(input.dim() == 0 for input in inputs)
        if ctx.scalars:
            warnings.warn("Was asked to gather along dimension 0, but all input tensors were scalars; will instead "
                          "unsqueeze and return a vector.",
                          stacklevel=5)
            inputs = [input.view(1) for input in inputs]
        ctx.sizes = [input.size(dim) for input in inputs]
        return tg.cat([input.to(device) for input in inputs], dim)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        parts = Scatter.apply(ctx.devices, ctx.sizes, ctx.dim, gradient)
        return None, None, *((part[0] for part in parts) if ctx.scalars else parts)
