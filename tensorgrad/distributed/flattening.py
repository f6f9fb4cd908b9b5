"""Tensors as transports want them: flat arrays in one piece, in the tensors' own memory wherever that is possible."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ..core.inplace import address, check_writeable
from .transport.base import Transport

__all__ = ["gathered", "memory", "read", "room", "spread"]

ENOUGH = 16 << 10       # bytes from which on it pays to look whether a copy can be saved


def read(tensor: Any, transport: Transport) -> Any:
    """A tensor's values, flat: its own memory where that is contiguous.

    A transport of the host gets those of other devices there.
    """
    array = tensor.array
    if transport.device == "cpu" and tensor._storage.device.type != "cpu":
        array = tensor._storage.host(array)
    return array if array.ndim == 1 and array.flags.c_contiguous else array.ravel()


def memory(tensor: Any, transport: Transport) -> tuple[Any, Callable[[], None] | None]:
    """Flat memory that a transport may write to, and the function, if any, that puts it into the tensor afterwards."""
    array = tensor.array
    flags = array.flags
    if flags.c_contiguous and (transport.device != "cpu" or tensor._storage.device.type == "cpu"):
        if getattr(flags, "writeable", True):
            return (array if array.ndim == 1 else array.reshape(-1)), None
    check_writeable(tensor)
    flat = read(tensor, transport)
    if not getattr(flat.flags, "writeable", True):
        flat = flat.copy()
    return flat, lambda: _put(tensor, flat)


def gathered(tensors: Sequence[Any], transport: Transport) -> Any:
    """The values of several tensors, one after the other."""
    arrays = [read(t, transport) for t in tensors]
    return arrays[0] if len(arrays) == 1 else _module(tensors[0], transport).concatenate(arrays)


def room(tensors: Sequence[Any], transport: Transport) -> tuple[Any, Callable[[], None] | None]:
    """Flat memory for several tensors, and the function, if any, that puts it into them."""
    if len(tensors) == 1:
        return memory(tensors[0], transport)
    for tensor in tensors:
        check_writeable(tensor)
    if transport.device == "cpu" and (whole := _adjacent(tensors)) is not None:
        return whole, None
    flat = _module(tensors[0], transport).empty(sum(t.array.size for t in tensors), tensors[0].array.dtype)
    return flat, lambda: spread(tensors, flat)


def spread(tensors: Sequence[Any], flat: Any) -> None:
    """Copy flat values into several tensors, one after the other."""
    start = 0
    for tensor in tensors:
        _put(tensor, flat[start:start + tensor.array.size])
        start += tensor.array.size


def _put(tensor: Any, flat: Any) -> None:
    """Copy flat values into a tensor's memory, from the host if need be."""
    storage, values = tensor._storage, flat.reshape(tensor.array.shape)
    storage.assign(tensor.array, values if type(values) is type(tensor.array) else type(storage).asarray(values))


def _module(tensor: Any, transport: Transport) -> Any:
    """Return the array module of a transport: NumPy, or that of the tensor's device."""
    return numpy if transport.device == "cpu" else tensor._storage.module


def _adjacent(tensors: Sequence[Any]) -> Any:
    """The memory of tensors that follow each other in one block, such as the parts of `split`; None if they do not, or
    are too small to matter.
    """
    head = tensors[0].array
    block = tensors[0]._storage.memory
    if (block is None or head.nbytes < ENOUGH or type(block) is not numpy.ndarray or block.dtype != head.dtype
            or not block.flags.c_contiguous):
        return None
    flat, start = block.reshape(-1), address(head) - address(block)
    place = start = start // head.itemsize
    for tensor in tensors:
        array = tensor.array
        if (not array.flags.c_contiguous or tensor._storage.memory is not block
                or address(array) != address(block) + place * head.itemsize):
            return None
        place += array.size
    return flat[start:place]
