"""Replicate modules on the devices of a scope, and in several processes."""
from __future__ import annotations

from typing import Any

from .. import nn
from .scope import device_to_int, get_scope_device_dtype

__all__ = ["DataParallel", "DistributedDataParallel"]


def DataParallel(module: Any, output_device: Any = None, dim: int = 0) -> Any:
    """Replicate the module on the devices of the scope, each of which computes a part of the batch:
    `torch.nn.DataParallel`; on the CPU the module itself.

    The module is moved to the first device. Outputs are gathered on `output_device`, by default the first; tensors are
    split along `dim`.

    >>> import tensorgrad as torch
    >>> from tensorgrad.layers.scope import device_scope
    >>> model = torch.nn.Linear(2, 1)
    >>> with device_scope("cpu"):
    ...     print(DataParallel(model) is model)
    True
    """
    devices, _ = get_scope_device_dtype()
    if devices[0].type != "cuda":
        return module
    return nn.DataParallel(module.to(devices[0]), device_ids=devices, output_device=output_device, dim=dim)


def DistributedDataParallel(module: Any, dim: int = 0) -> Any:
    """Wrap the module in `torch.nn.parallel.DistributedDataParallel`, which averages gradients over the processes of
    the default group.

    The module is moved to the device of the scope. Errors: AssertionError unless the scope has exactly one; ValueError
        without a process group.
    """
    devices, _ = get_scope_device_dtype()
    if len(devices) != 1:
        raise AssertionError(f"each process trains on one device, the scope has {len(devices)}: "
                             f"{', '.join(map(str, devices))}")
    index = device_to_int(devices[0])
    return nn.parallel.DistributedDataParallel(module.to(devices[0]), device_ids=None if index < 0 else [index],
                                               dim=dim)
