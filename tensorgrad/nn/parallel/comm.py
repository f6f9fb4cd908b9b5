"""Copies between devices: the plain functions below replicate, scatter and gather.

https://pytorch.org/docs → torch.cuda.comm
"""
from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ... import api as tg

if TYPE_CHECKING:
    from ..._tensor import Tensor

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]


def place(device: Any, *, cpu: bool = False) -> Any:
    """A device from a number, a name, a device, or None (the current CUDA device); with `cpu`, the CPU is one, too, and
    -1 stands for it.
    """
    from ...cuda import current_device
    if isinstance(device, int):
        return tg.device("cpu") if device < 0 and cpu else tg.device("cuda", device)
    found = tg.device("cuda" if device is None else device)
    if found.type == "cpu" and not cpu:
        raise ValueError(f"Expected a non cpu device, but got: {device}")
    return tg.device("cuda", current_device()) if found.type == "cuda" and found.index is None else found


def destination_of(device: Any) -> Any:
    """The device to gather on: the CPU, too."""
    if device == -1:
        warnings.warn("Using -1 to represent CPU tensor is deprecated. Please use a device object or string instead, "
                      "e.g., \"cpu\".", FutureWarning,
                      stacklevel=3)
    return place(device, cpu=True)


def broadcast(tensor: Tensor, devices: Any = None, *, out: Any = None) -> Any:
    """Copies of a tensor, on `devices` or in the tensors `out`; the tensor itself where it is there already.

    >>> import tensorgrad as torch
    >>> first, second = torch.empty(2), torch.empty(2)
    >>> torch.cuda.comm.broadcast(torch.ones(2), out=[first, second])
    (tensor([1., 1.]), tensor([1., 1.]))
    """
    if (devices is None) == (out is None):
        raise RuntimeError(f"Exactly one of 'devices' and 'out' must be specified, but got devices={devices} and "
                           f"out={out}")
    if out is not None:
        return tuple(o.copy_(tensor) for o in out)
    return tuple(tensor.to(place(device)) for device in devices)


def broadcast_coalesced(tensors: Any, devices: Any, buffer_size: Any = 10485760) -> Any:
    """Copies of several tensors on each of the devices: a list for each device.

    Nothing is copied into buffers first.
    """
    devices = [place(device) for device in devices]
    return [[tensor.to(device) for tensor in tensors] for device in devices]


def reduce_add(inputs: Any, destination: Any = None) -> Any:
    """The sum of tensors of several devices, on one of these.

    Errors: AssertionError for tensors on the CPU, ValueError for unlike shapes, RuntimeError if none is on the
        destination.
    """
    for i, input in enumerate(inputs):
        if input.device.type == "cpu":
            raise AssertionError(f"reduce_add expects all inputs to be on GPUs, but input {i} is on CPU")
        if input.shape != inputs[0].shape:
            got, expected = ("x".join(map(str, t.shape)) for t in (input, inputs[0]))
            raise ValueError(f"input {i} has invalid size: got {got}, but expected {expected}")
    device = place(destination)
    if all(input.device != device for input in inputs):
        raise RuntimeError("reduce_add expects destination to be on the same GPU with one of the tensors")
    total = inputs[0].to(device)
    for input in inputs[1:]:
        total = total + input.to(device)
    return total


def reduce_add_coalesced(inputs: Any, destination: Any = None, buffer_size: Any = 10485760) -> Any:
    """The sums of several tensors that each device has one of: `inputs` holds a list for each device."""
    return tuple(reduce_add(same, destination) for same in zip(*inputs, strict=True))


def scatter(tensor: Tensor, devices: Any = None, chunk_sizes: Any = None, dim: Any = 0, streams: Any = None, *,
            out: Any = None) -> Any:
    """Chunks of a tensor along an axis, on `devices` or in the tensors `out`; of `chunk_sizes`, or as equal as can
    be.
    """
    if out is not None:
        for name, value in ("devices", devices), ("chunk_sizes", chunk_sizes):
            if value is not None:
                raise RuntimeError(f"'{name}' must not be specified when 'out' is specified, but got {name}={value}")
        parts = tensor.split([o.size(dim) for o in out], dim)
        return tuple(o.copy_(part) for o, part in zip(out, parts, strict=True))
    devices = [place(device) for device in devices]
    parts = tensor.chunk(len(devices), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    return tuple(part.to(device) for part, device in zip(parts, devices))


def gather(tensors: Any, dim: Any = 0, destination: Any = None, *, out: Any = None) -> Any:
    """Tensors of several devices side by side along an axis, on the device `destination` or in the tensor `out`.

    >>> import tensorgrad as torch
    >>> torch.cuda.comm.gather([torch.ones(1), torch.zeros(2)], out=torch.empty(3))
    tensor([1., 0., 0.])
    """
    if out is not None:
        if destination is not None:
            raise RuntimeError(f"'destination' must not be specified when 'out' is specified, but got "
                               f"destination={destination}")
        return out.copy_(tg.cat([t.to(out.device) for t in tensors], dim))
    device = destination_of(destination)
    return tg.cat([t.to(device) for t in tensors], dim)
