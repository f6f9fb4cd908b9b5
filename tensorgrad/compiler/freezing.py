"""Freeze a compiled module: free tensors that its graph no longer needs because they were packed or folded."""
from __future__ import annotations

import ctypes
import sys
from math import prod
from typing import Any

import numpy as np

from .._tensor import Tensor
from ..graph.node import Node
from ..nn.modules.module import Module
from ..runtime.native import empty_memory
from .packed import WIDE, PackedWeight
from .tracing import Trace

FROZEN = ("Trying to run Pytorch Eager Module after Dynamo Freezing. The original parameters have been discarded for "
          "memory efficiency. Found in op {} for erased parameter {} of {}")


LARGE = 4 << 20         # bytes of a weight that is packed where it is: NumPy asks for large pages for it, too


class Erased(Tensor):
    """The replacement of a freed tensor: has its shape and dtype, and refuses all operations."""

    _is_param = True

    @staticmethod
    def __new__(cls, tensor: Any, name: str, owner: str) -> Any:
        made = Tensor._make_wrapper_subclass(cls, tensor.shape, dtype=tensor.dtype)
        made.erased, made.owner = name, owner
        return made

    def __init__(self, *args: Any) -> None:
        pass

    def __repr__(self) -> str:                      # type: ignore[override]
        return f"Erased({self.owner}.{self.erased}, {list(self.shape)})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError(FROZEN.format("pickle", self.erased, self.owner))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        first = next((arg for arg in args if isinstance(arg, cls)), None)
        raise RuntimeError(FROZEN.format(func, getattr(first, "erased", "a parameter"), getattr(first, "owner", "it")))


def trim() -> int:
    """Give freed memory back to the system, also where the C library keeps it (glibc), and return 0."""
    empty_memory()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        pass
    return 0


def is_large(node: Node) -> bool:
    """Return True if a node packs a large parameter, whose memory may serve."""
    if not isinstance(node.target, PackedWeight) or not node.target.transposed or len(node.args) > 1:
        return False
    whole = node.args[0].op == "get_attr" and node.args[0].meta["shape"][0] % WIDE == 0
    return whole and prod(node.meta["shape"]) * node.meta["dtype"].itemsize >= LARGE


def packed_over(node: Node, ended: list[Node], values: dict[Node, Any]) -> Any:
    """Return a large weight that was packed in its own memory, or None: the packed one needs memory of its own.

    That is so if anything else may read the weight: another node, a tensor, a view, the program's NumPy array.
    """
    source = node.args[0] if is_large(node) else None
    if source not in ended:
        return None
    holder = [values.pop(source)]
    found = node.target.over(holder[0]) if holders(holder) <= holders([np.empty(1)]) else None
    if found is None:
        values[source] = holder[0]
    return found


def holders(holder: list[Any]) -> int:
    """Return how many objects hold the array in a list, or memory that it is a view of; huge if that is unknown."""
    array = holder[0]
    count, owner = sys.getrefcount(array), array.base
    if owner is None:
        return count
    if type(owner) is not np.ndarray or not owner.flags.owndata:
        return sys.maxsize
    return max(count, sys.getrefcount(owner))


def erase(module: Module, trace: Trace) -> None:
    """Replace the parameters and buffers that a module's trace read, so that only its graph holds them."""
    read = {id(tensor) for tensor in trace.tensors.values()}
    for path, child in module.named_modules():
        for table in (child._parameters, child._buffers):
            for name, tensor in list(table.items()):
                if id(tensor) in read:
                    table[name] = Erased(tensor, name, f"{type(child).__name__} {path}".rstrip())
    trace.surroundings.forget_tensors()
    if trace.graph is not None:
        trace.graph.relied = ()


__all__ = ["Erased", "erase"]
