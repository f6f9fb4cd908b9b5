"""Run a module on several devices, each on a part of the batch."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import chain
from types import GenericAlias
from typing import TYPE_CHECKING, Any

from ... import api as tg
from ..modules import Module
from .comm import place
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter_kwargs

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ...api._kinds import Device

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Runs a module on several CUDA devices: the batch is split among them, and the outputs are put together on one of
    them.

    In each forward the module is copied to all devices; gradients of the copies are added up in the module. The
    module's parameters and buffers are
    on the first device, whose copy shares them: running statistics are those of the first part of the batch. Without
        CUDA devices it is the module
    itself. See PyTorch's `torch.nn.DataParallel`.

    Args:
        module: the module
        device_ids: list of devices, all of them by default
        output_device: where the outputs go, the first of them by default
        dim: int, along which tensors are split and put together
    Input: what the module takes; tensors in nests of tuples, lists and dicts are split, other things go to all devices
    Output: what the module returns

    >>> import tensorgrad as torch
    >>> model = torch.nn.DataParallel(torch.nn.Linear(4, 2))
    >>> list(model.state_dict())
    ['module.weight', 'module.bias']
    """

    __class_getitem__ = classmethod(GenericAlias)        # DataParallel[Net], for type checkers

    def __init__(self, module: Module, device_ids: Sequence[int | Device] | None = None,
                 output_device: int | Device | None = None, dim: int = 0) -> None:
        super().__init__()
        from ...cuda import device_count
        self.module, self.device_ids = module, []
        if not device_count():
            return
        devices = [place(device) for device in (range(device_count()) if device_ids is None else device_ids)]
        self.dim, self.device_ids = dim, [device.index for device in devices]
        self.output_device = (self.device_ids[0] if output_device is None else output_device if output_device == -1
                              else place(output_device).index)
        self.src_device_obj = devices[0]
        warn_of_imbalance(self.device_ids)
        if len(devices) == 1:
            self.module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        check_placement(self.module, self.src_device_obj)
        inputs, kwargs = self.scatter(inputs, kwargs, self.device_ids)
        inputs, kwargs = (inputs, kwargs) if inputs or kwargs else (((),), ({},))
        if len(self.device_ids) == 1:
            return self.module(*inputs[0], **kwargs[0])
        replicas = self.replicate(self.module, self.device_ids[:len(inputs)])
        return self.gather(self.parallel_apply(replicas, inputs, kwargs), self.output_device)

    # the four steps of forward, which subclasses may override ─────────────────────────────────

    def replicate(self, module: Module, device_ids: Sequence[int | Device]) -> Any:
        return replicate(module, device_ids, not tg.is_grad_enabled())

    def scatter(self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None,
                device_ids: Sequence[int | Device]) -> Any:
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(self, replicas: Any, inputs: Sequence[Any], kwargs: Any) -> list[Any]:
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[:len(replicas)])

    def gather(self, outputs: Any, output_device: int | Device) -> Any:
        return gather(outputs, output_device, dim=self.dim)


def data_parallel(module: Module, inputs: Any, device_ids: Sequence[int | Device] | None = None,
                  output_device: int | Device | None = None, dim: int = 0,
                  module_kwargs: Any | None = None) -> Tensor:
    """Return the output of a module computed on several CUDA devices. See PyTorch's `torch.nn.parallel.data_parallel`.

    Args are those of DataParallel, with the inputs (a tensor or a tuple of arguments) and the keyword arguments of the
    call.
    Errors: RuntimeError without CUDA devices, or if the module is not on the first of them.
    """
    from ...cuda import device_count
    inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    if not device_count():
        raise RuntimeError("device type could not be determined")
    devices = [place(device) for device in (range(device_count()) if device_ids is None else device_ids)]
    check_placement(module, devices[0])
    inputs, kwargs = scatter_kwargs(inputs, module_kwargs, devices, dim)
    inputs, kwargs = (inputs, kwargs) if inputs or kwargs else (((),), ({},))
    if len(devices) == 1:
        return module(*inputs[0], **kwargs[0])
    used = devices[:len(inputs)]
    outputs = parallel_apply(replicate(module, used), inputs, kwargs, used)
    return gather(outputs, devices[0] if output_device is None else output_device, dim)


def check_placement(module: Module, device: Any) -> None:
    """Raise unless all of the module is on the device."""
    for tensor in chain(module.parameters(), module.buffers()):
        if tensor.device != device:
            raise RuntimeError(f"module must have its parameters and buffers on device {device} (device_ids[0]) but "
                               f"found one of them on device: {tensor.device}")


def warn_of_imbalance(device_ids: Any) -> None:
    """Warn of a device that has less than three quarters of another's memory, or else of another's processors."""
    from ...cuda import get_device_properties
    found = [get_device_properties(i) for i in device_ids]
    for what in ("total_memory", "multi_processor_count"):
        values = [getattr(properties, what) for properties in found]
        if min(values) < 0.75 * max(values):
            least, most = (device_ids[values.index(pick(values))] for pick in (min, max))
            warnings.warn(f"\n    There is an imbalance between your GPUs. You may want to exclude GPU {least} which\n "
                          f"   has less than 75% of the memory or cores of GPU {most}. You can do so by setting\n    "
                          "the device_ids argument to DataParallel, or by setting the CUDA_VISIBLE_DEVICES\n    "
                          "environment variable.",
                          stacklevel=3)
            return
