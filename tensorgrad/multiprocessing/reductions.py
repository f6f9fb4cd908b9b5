"""Memory that processes share, and how tensors in it are sent to a process that starts."""
from __future__ import annotations

from multiprocessing.context import assert_spawning
from multiprocessing.reduction import ForkingPickler
from multiprocessing.sharedctypes import RawArray
from typing import Any

import numpy as np

from ..api import Tensor
from ..dispatch import fresh
from ..nn.parameter import Parameter
from ..storage.cpu import NumpyStorage


class Block:
    """A block of shared memory, as bytes."""

    def __init__(self, raw: Any) -> None:
        self.raw, self.array = raw, np.frombuffer(raw, np.uint8)

    def view(self, dtype: Any, offset: int, shape: Any, strides: Any) -> Any:
        """An array in it."""
        return np.ndarray(shape, dtype, self.array.data, offset, strides)


def share(tensor: Any) -> Any:
    """Move a tensor of the CPU to memory that processes share; views of what it was before stay behind."""
    storage, array = tensor.storage, tensor.array
    if type(storage) is not NumpyStorage or storage.shared is not None:
        return tensor
    block = Block(RawArray("B", max(array.nbytes, 1)))
    dense = array if array.flags.c_contiguous or array.flags.f_contiguous else np.ascontiguousarray(array)
    moved = block.view(array.dtype, 0, array.shape, dense.strides)
    moved[...] = array
    new = _wrapped(moved, block)
    tensor.data = new
    tensor.storage.shared = block
    return tensor


def _wrapped(array: Any, block: Block) -> Any:
    tensor = fresh(array, NumpyStorage)
    tensor.storage.shared = block
    return tensor


def _reduced(tensor: Any) -> Any:
    block = tensor.storage.shared
    if block is not None and tensor.is_leaf:
        try:
            assert_spawning(block)
        except RuntimeError:
            block = None            # through a queue, a copy
    if block is None:
        return tensor.__reduce_ex__(4)
    offset = tensor.array.__array_interface__["data"][0] - block.array.__array_interface__["data"][0]
    array = tensor.array
    return _rebuilt, (type(tensor), block.raw, array.dtype.str, offset, array.shape, array.strides, tensor.requires_grad, dict(tensor.__dict__))


def _rebuilt(kind: Any, raw: Any, dtype: str, offset: int, shape: Any, strides: Any, requires_grad: bool, attributes: Any) -> Any:
    block = Block(raw)
    tensor = _wrapped(block.view(dtype, offset, shape, strides), block)
    if kind is Parameter:
        tensor = Parameter(tensor, requires_grad)
        tensor.storage.shared = block
    else:
        tensor.requires_grad_(requires_grad)
    tensor.__dict__.update(attributes)
    return tensor


def init_reductions() -> None:
    """Tell the standard library how tensors are sent."""
    ForkingPickler.register(Tensor, _reduced)
    ForkingPickler.register(Parameter, _reduced)
