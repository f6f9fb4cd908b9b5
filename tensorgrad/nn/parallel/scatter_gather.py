"""Split inputs among devices and put outputs together again, within any nest of tuples, lists and dicts."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ... import api as tg
from ._functions import Gather, Scatter
from .comm import destination_of, place

if TYPE_CHECKING:
    from ...api._kinds import Device

__all__ = ["gather", "is_namedtuple", "scatter", "scatter_kwargs"]


def is_namedtuple(obj: Any) -> bool:
    """Return True if the object is a namedtuple."""
    return isinstance(obj, tuple) and hasattr(obj, "_fields") and hasattr(obj, "_asdict")


def scatter(inputs: Any, target_gpus: Any, dim: Any = 0) -> Any:
    """Return, for each device, the inputs with a chunk of each tensor; other things go to all devices.

    With fewer elements along `dim` than devices, there are as many results as chunks. See PyTorch's
    `torch.nn.parallel.scatter`.

    >>> from tensorgrad.nn.parallel import scatter
    >>> scatter({"scale": 2}, [0, 1])
    [{'scale': 2}, {'scale': 2}]
    """
    return scattered(inputs, [place(device) for device in target_gpus], dim)


def scattered(inputs: Any, devices: Any, dim: Any) -> Any:
    """Like `scatter`, but to devices of any kind."""
    if isinstance(inputs, tg.Tensor):
        return Scatter.apply(devices, None, dim, inputs)
    if isinstance(inputs, (tuple, list, dict)) and inputs:
        parts = zip(*(scattered(part, devices, dim)
                      for part in (inputs.items() if isinstance(inputs, dict) else inputs)))
        if is_namedtuple(inputs):
            return [type(inputs)(*part) for part in parts]
        return [part if isinstance(inputs, tuple) else type(inputs)(part) if isinstance(inputs, dict) else list(part)
                for part in parts]
    return [inputs for _ in devices]


def scatter_kwargs(inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[int | Device],
                   dim: int = 0) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Scatter the arguments of a call; return a tuple of argument tuples and an equally long one of keyword dicts."""
    args = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    count = max(len(args), len(named))
    return (*args, *[() for _ in range(count - len(args))]), (*named, *[{} for _ in range(count - len(named))])


def gather(outputs: Any, target_device: Any, dim: Any = 0) -> Any:
    """Concatenate the outputs of several devices along `dim` on the target device.

    Tensors may be nested in tuples, lists and dicts; None stays None. See PyTorch's `torch.nn.parallel.gather`.

    Errors: AssertionError for tensors on the CPU, ValueError for dicts of unlike size, TypeError for strings.
    """
    return gathered(outputs, destination_of(target_device), dim)


def gathered(outputs: Any, device: Any, dim: Any, cpu: bool = False) -> Any:
    """Like `gather`; with `cpu`, also from the CPU."""
    first = outputs[0]
    if isinstance(first, tg.Tensor):
        if not cpu and any(output.device.type == "cpu" for output in outputs):
            raise AssertionError("Gather function not implemented for CPU tensors")
        return Gather.apply(device, dim, *outputs)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(output) != len(first) for output in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, gathered([output[key] for output in outputs], device, dim, cpu)) for key in first)
    if isinstance(first, str):
        raise TypeError("'str' object cannot be gathered")
    parts = [gathered(part, device, dim, cpu) for part in zip(*outputs, strict=True)]
    return type(first)._make(parts) if is_namedtuple(first) else type(first)(parts)
