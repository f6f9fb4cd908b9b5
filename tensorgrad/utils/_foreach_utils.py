"""Which devices have functions of lists of tensors, and lists by device and dtype, under PyTorch's names."""
from __future__ import annotations

from typing import Any

from .. import api as tg

_foreach_supported_types = [tg.Tensor]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Return the types of devices that optimizers choose `foreach` on."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Return the types of devices that optimizers accept `fused` on."""
    from ..optim.rule import FUSED
    return [*FUSED]


def _device_has_foreach_support(device: Any) -> bool:
    """Return True if functions of lists of tensors run on the device."""
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: list[Any], device: Any) -> bool:
    """Return True if functions of lists of tensors accept these."""
    return _device_has_foreach_support(device) and all(
        t is None or type(t) in _foreach_supported_types for t in tensors)


def _group_tensors_by_device_and_dtype(tensorlistlist: list[list[Any]], with_indices: bool = False) -> dict[Any, Any]:
    """Return {(device, dtype): (the lists, with the tensors of both in the first list; their indices)}.

    The lists have entries for the same parameters; those after the first may contain None.
    """
    groups: dict[Any, list[int]] = {}
    for place, tensor in enumerate(tensorlistlist[0]):
        groups.setdefault((tensor.device, tensor.dtype), []).append(place)
    return {key: ([[tensors[i] for i in places] if tensors else [] for tensors in tensorlistlist],
                  places if with_indices else []) for key, places in groups.items()}
