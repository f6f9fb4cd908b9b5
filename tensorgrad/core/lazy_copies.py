"""Copies on write: `torch._lazy_clone` shares memory until one of the tensors is written to.

The arrays of both sides are read-only. A write, and `numpy()`, first gives one side memory of its own, and the tensors
of that side arrays there; the last side keeps the memory. A storage does not know its tensors: the garbage collector
does, so that only these copies pay for looking them up.
"""
from __future__ import annotations

import gc
from typing import Any
from weakref import WeakSet

import numpy as np

from ..ops.base import OPS
from ..storage.base import Storage
from ..storage.cpu import NumpyStorage
from .dispatch import apply, wrap
from .mode import mode
from .plan import plans_of
from .tape import TensorBase, node_of


class Side:
    """The storages of one of the copies: more than one if `x.data` made others of the same memory."""

    __slots__ = ("storages", "sides", "block", "__weakref__")

    def __init__(self, storage: Storage, sides: WeakSet[Side], block: np.ndarray[Any, Any]) -> None:
        self.storages, self.sides, self.block = WeakSet([storage]), sides, block
        sides.add(self)

    def join(self, storage: Storage) -> None:
        """Add a storage of the same memory."""
        self.storages.add(storage)
        storage.lazy = self

    def freeze(self) -> None:
        """Make the arrays of the side's tensors read-only."""
        for holder, name in self._holders():
            getattr(holder, name).flags.writeable = False

    def part(self) -> None:
        """Copy the memory for this side, unless no other side uses it any more."""
        self.sides.discard(self)
        start, old = self.block.ctypes.data, self.block
        block = old.copy(order="K") if self.sides else old
        block.flags.writeable = True
        for holder, name in self._holders():
            array = getattr(holder, name)
            offset = array.ctypes.data - start
            if 0 <= offset < max(old.nbytes, 1):            # otherwise the tensor has other memory by now
                setattr(holder, name, np.ndarray(array.shape, array.dtype, block, offset, array.strides))
        for storage in self.storages:
            storage.lazy = None

    def _holders(self) -> list[tuple[Any, str]]:
        tensors = [(t, "array") for storage in self.storages for t in gc.get_referrers(storage)
                   if isinstance(t, TensorBase) and t._storage is storage]
        return tensors + [(storage, "memory") for storage in self.storages if storage.memory is not None]


def lazy_clone(tensor: Any) -> Any:
    """Return a copy that shares the memory until a write; copy at once if writes to the memory can go unseen."""
    storage = tensor._storage
    if (block := _block(storage, tensor.array)) is None:
        return apply(OPS["clone"], tensor)
    if storage.lazy is None:
        storage.lazy = Side(storage, WeakSet(), block)
    other = NumpyStorage()
    other.lazy, other.memory = Side(other, storage.lazy.sides, block), storage.memory
    if storage.memory is None:
        tensor.array.flags.writeable = False
    else:
        storage.lazy.freeze()           # of its views, too
    out = wrap(tensor.array.view(), other)
    if mode.record and (node := node_of(tensor)) is not None:
        mode.record(plans_of(OPS["clone"])[1], (tensor,), (node,), {}, out)
    return out


def _block(storage: Any, array: Any) -> Any:
    """Return the array that owns the memory; None unless tensors of this storage alone write to it."""
    if (type(storage) is not NumpyStorage or storage.fixed or storage.shared is not None or storage.block is not None
            or storage.__dict__.get("bytes", lambda: None)() is not None or gc.get_freeze_count()):
        return None
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array if array.flags.owndata and type(array) is np.ndarray and array.dtype.kind != "O" else None
