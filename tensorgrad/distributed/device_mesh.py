"""Devices of several processes in rows and columns: there is one process here."""
from __future__ import annotations

from typing import Any

from .._unsupported import unsupported

_NAMES = "init_device_mesh"
__all__ = ["DeviceMesh", *_NAMES.split()]


class DeviceMesh:
    """Devices of several processes: NotImplementedError. https://pytorch.org/docs → torch.distributed.device_mesh.DeviceMesh"""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("tensorgrad has no torch.distributed.device_mesh.DeviceMesh: there is no backend for several processes")


globals().update(unsupported(_NAMES, "torch.distributed.device_mesh", "there is no backend for several processes"))
