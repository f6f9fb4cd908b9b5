"""Networks whose parts run on devices of their own, in the words of the first PyTorch: Split, ParallelApply, Join,
GPUReplicate.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import api as tg
from ..modules import Module
from .comm import place
from .parallel_apply import applied, get_a_var
from .replicate import replicas
from .scatter_gather import gathered, scattered

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ...api._kinds import Device

__all__ = ["GPUReplicate", "Join", "ParallelApply", "Split"]


def devices_for(devices: Any) -> Any:
    """The devices that are named, or all CUDA devices, or the CPU."""
    from ...cuda import device_count
    return [place(device, cpu=True) for device in (range(device_count()) or ["cpu"] if devices is None else devices)]


def Split(input: Tensor, devices: Any = None, dim: Any = 0) -> Any:
    """A list of chunks of the input along an axis, each on a device of its own.

    >>> from tensorgrad.nn.parallel import Split, Join
    >>> import tensorgrad as torch
    >>> parts = Split(torch.tensor([1., 2., 3.]), devices=["cpu", "cpu"])
    >>> parts, Join(parts)
    ([tensor([1., 2.]), tensor([3.])], tensor([1., 2., 3.]))
    """
    return list(scattered(input, devices_for(devices), dim))


def ParallelApply(modules: Any, inputs: Any) -> Any:
    """A list of what each module makes of its input (a tensor, or a tuple of arguments); all are at work at the same
    time, in threads.

    Each works on the device of its input. Errors: AssertionError for lists of unlike length; those of a module, with
        its traceback in the message.
    """
    modules, inputs = list(modules), list(inputs)
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    found = [get_a_var(input) for input in inputs]
    return applied(modules, inputs, None, [tg.device("cpu") if tensor is None else tensor.device for tensor in found])


def Join(outputs: Any, device: Device | None = None, dim: Any = 0) -> Any:
    """Outputs of several devices, which may be lists such as ParallelApply gives, on one device: that of the first
    unless said otherwise.
    """
    outputs = list(outputs)
    device = get_a_var(outputs).device if device is None else place(device, cpu=True)
    return gathered(outputs, device, dim, cpu=True)


class GPUReplicate(Module):
    """A list of copies of a module, one for each device.

    Gradients of the copies are added up in the module, whose parameters they follow.

    Called, it splits the input, applies the copies and joins their outputs.

    >>> import tensorgrad as torch
    >>> from tensorgrad.nn.parallel import GPUReplicate
    >>> copies = GPUReplicate(torch.nn.Linear(2, 1), ["cpu", "cpu"])
    >>> len(copies), copies(torch.ones(3, 2)).shape
    (2, torch.Size([3, 1]))
    """

    def __init__(self, module: Module, devices: Any = None) -> None:
        super().__init__()
        self.module, self.devices = module, devices_for(devices)
        self.__dict__["_made"] = None, []

    def __len__(self) -> int:
        return len(self.devices)

    def __getitem__(self, index: int) -> Any:
        return self.copies()[index]

    def __iter__(self) -> Any:
        return iter(self.copies())

    def copies(self) -> Any:
        """The copies, made anew if the module has changed since."""
        state = tg.is_grad_enabled(), [module.training for module in self.module.modules()], [
            (id(t), t.data_ptr(), t._version, t.requires_grad)
            for t in (*self.module.parameters(), *self.module.buffers())]
        if self._made[0] != state:
            self.__dict__["_made"] = state, replicas(self.module, self.devices, not tg.is_grad_enabled())
        return self._made[1]

    def forward(self, input: Tensor) -> Tensor:
        parts = Split(input, self.devices)
        return Join(ParallelApply(self.copies()[:len(parts)], parts))
