"""Memory of frozen modules: large weights are packed in their own memory, and what is freed goes back to the system."""
from __future__ import annotations

import ctypes
import sys
from math import prod
from typing import Any

import numpy as np

from ..graph.node import Node
from ..runtime.native import empty_memory
from .blocked import BlockedWeight
from .packed import PackedWeight

LARGE = 4 << 20         # bytes of a weight that is packed where it is: NumPy asks for large pages for it, too


def trim() -> int:
    """Give freed memory back to the system, also where the C library keeps it (glibc), and return 0."""
    empty_memory()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        pass
    return 0


def is_large(node: Node) -> bool:
    """Return True if a node packs one large parameter, whose memory may serve."""
    target, source = node.target, node.args[0] if node.args else None
    if not isinstance(target, (PackedWeight, BlockedWeight)) or source.op != "get_attr" or (
            isinstance(target, PackedWeight) and len(node.args) > 1):
        return False
    return target.stays(source.meta["shape"]) and prod(node.meta["shape"]) * node.meta["dtype"].itemsize >= LARGE


def packed_over(node: Node, ended: list[Node], values: dict[Node, Any]) -> Any:
    """Return a large weight that was packed in its own memory, or None: the packed one needs memory of its own.

    This is the case if anything else may read the weight: another node, a tensor, a view, the program's NumPy array.
    """
    if not is_large(node) or node.args[0] not in ended:
        return None
    source, *others = node.args
    holder = [values.pop(source)]
    if holder[0].flags.carray and holders(holder) <= holders([np.empty(1)]):
        return node.target.over(holder[0], *[values[other] for other in others])
    values[source] = holder[0]
    return None


def holders(holder: list[Any]) -> int:
    """Return how many objects hold the array in a list, or memory that it is a view of; huge if that is unknown."""
    array = holder[0]
    count, owner = sys.getrefcount(array), array.base
    if owner is None:
        return count
    if type(owner) is not np.ndarray or not owner.flags.owndata:
        return sys.maxsize
    return max(count, sys.getrefcount(owner))
