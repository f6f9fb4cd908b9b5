"""States of GPUs' random number generators, for code that runs a part of a program again."""
from __future__ import annotations

import warnings
from typing import Any

from .. import api as tg
from ._pytree import tree_leaves


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """Return the GPUs of the tensors among the arguments, and the states of their generators."""
    indices = [x.device.index for x in tree_leaves(args) if isinstance(x, tg.Tensor) and x.device.type == "cuda"]
    if not indices:
        return [], []
    from .. import cuda
    return indices, [cuda.get_rng_state(index) for index in indices]


class DefaultDeviceType:
    """The type of device whose random number generators are saved if no argument tells.
    https://pytorch.org/docs → torch.utils.checkpoint.DefaultDeviceType
    """

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set the device type."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """Return the device type that was set, or else that of the GPUs, or else "cpu"."""
        if DefaultDeviceType._default_device_type is None:
            from ..accelerator import current_accelerator
            found = current_accelerator(True)
            DefaultDeviceType._default_device_type = "cpu" if found is None else found.type
        return DefaultDeviceType._default_device_type


def infer_device_type(*args: Any) -> str:
    """Return the type of the device of the tensors among the arguments; if that is the CPU, the default type."""
    kinds = sorted({x.device.type for x in tree_leaves(args) if isinstance(x, tg.Tensor) and not x.is_cpu})
    if len(kinds) > 1:
        warnings.warn("Tensor arguments, excluding CPU tensors, are detected on at least two types of devices. Device "
                      "state will only be saved for devices of a single device type, and the remaining devices will "
                      "be ignored. Consequently, if any checkpointed functions involve randomness, this may result in "
                      "incorrect gradients. (Note that if CUDA devices are among the devices detected, it will be "
                      f"prioritized; otherwise, the first device encountered will be selected.)\nDevice types: {kinds} "
                      f"first device type: {kinds[0]}", stacklevel=2)
    if not kinds:
        return DefaultDeviceType.get_device_type()
    return "cuda" if "cuda" in kinds else kinds[0]


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Set the states of the generators of GPUs."""
    for index, state in zip(devices, states):
        from .. import cuda
        cuda.set_rng_state(state, index)
