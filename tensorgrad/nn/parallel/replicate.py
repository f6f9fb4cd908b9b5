"""Copies of a module on several devices, for one forward pass."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ... import api as tg
from ._functions import Broadcast
from .comm import place

if TYPE_CHECKING:
    from ...api._kinds import Device

__all__ = ["replicate"]


def replicate(network: Any, devices: Sequence[int | Device], detach: bool = False) -> Any:
    """A copy of the module for each device.

    Gradients that reach the copies' parameters are added up in the module's own.

    The copies' parameters are results of a step of the tape, hence no parameters of theirs. The copy on the module's
    own device shares its parameters' memory and has its buffers, so what the forward writes to these lasts; other
    copies are forgotten with what was written to them. See PyTorch's `torch.nn.parallel.replicate`.

    Errors: AssertionError if the module is on the CPU.
    """
    devices = [place(device) for device in devices]
    if devices and any(t.device.type == "cpu" for t in [*network.parameters(), *network.buffers()]):
        raise AssertionError("Broadcast function not implemented for CPU tensors")
    return replicas(network, devices, detach)


def replicas(network: Any, devices: Any, detach: bool = False) -> Any:
    """`replicate` for devices of any kind."""
    modules = list(network.modules())
    copies = {module: [module._replicate_for_data_parallel() for _ in devices] for module in modules}
    tensors = {}                    # of each parameter and buffer its copies: shared ones stay shared

    def copies_of(tensor, buffer):
        if tensor not in tensors:
            tensors[tensor] = _copies(tensor, devices, detach, buffer)
        return tensors[tensor]

    for module in modules:
        for i, replica in enumerate(copies[module]):
            replica._former_parameters = OrderedDict()
            for name, child in module._modules.items():
                replica._modules[name] = None if child is None else copies[child][i]
            for name, parameter in module._parameters.items():
                if parameter is None:
                    replica._parameters[name] = None
                else:
                    replica.__dict__[name] = replica._former_parameters[name] = copies_of(parameter, False)[i]
            for name, buffer in module._buffers.items():
                replica._buffers[name] = None if buffer is None else copies_of(buffer, True)[i]
    return copies[network]


def _copies(tensor, devices, detach, buffer):
    if tensor.requires_grad and not detach and tg.is_grad_enabled():
        return Broadcast.apply(devices, tensor)
    detached = tensor if buffer and not tensor.requires_grad else tensor.detach()
    return [detached if device == tensor.device else detached.to(device) for device in devices]
