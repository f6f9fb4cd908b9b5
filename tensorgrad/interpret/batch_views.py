"""Batches inside vmap as views of the tensors outside: writes in place, and results that share memory.

A tensor with a hidden axis shares the memory of its parent. The storage of the batch remembers the parent, so that a
recorded write in the batch gives the parent a new history, and a result of vmap that is a view of the batch is a view
of the parent.
"""
from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ..core.dispatch import apply, shared, view_kind
from ..core.inplace import address, adopt
from ..core.mode import mode
from ..core.tape import Origin, node_of, root_of
from ..ops.base import OPS

# the views by which tensors of two dtypes share memory
PARTS = {pair: name for real, whole in ("fF", "dD") for pair, name in (
    ((whole, real), "view_as_real"), ((real, whole), "view_as_complex"))}


class Crossed:
    """The step from a batch to its parent: `show` turns the batch into a tensor of the parent's shape."""

    __slots__ = ("parent", "axis", "batch", "show")

    def __init__(self, parent: Any, axis: int, batch: Any, show: Any) -> None:
        self.parent, self.axis, self.batch, self.show = parent, axis, weakref.ref(batch), show

    def adopted(self, batch: Any) -> None:
        """Give the parent the history of its batch after a write."""
        if batch is self.batch():
            adopt(self.parent, self.show(batch))


def parent_of(tensor: Any, axis: int) -> Any:
    """Return (parent, True) if a batch is its parent's, with the hidden axis at this place; (parent, False) if it is
    a view of such a batch; (None, False) otherwise."""
    root = root_of(tensor)
    crossed = root._storage.crossed
    if crossed is None or root is not crossed.batch() or tensor._storage is not root._storage:
        return None, False
    return crossed.parent, tensor is root and crossed.axis == axis


def axis_of(tensor: Any) -> int:
    """Return the axis at which to show a batch: the hidden axis of its parent, if it is that whole, or else 0."""
    crossed = tensor._storage.crossed
    return crossed.axis if crossed is not None and crossed.batch() is tensor else 0


def be_view(out: Any, parent: Any) -> None:
    """Make a tensor in a parent's memory a view of the parent, if strides describe it."""
    array, values = out.array, getattr(out.array, "values", out.array)
    if type(values) is np.ndarray and (parts := PARTS.get((parent.array.dtype.char, array.dtype.char))):
        if parts == "view_as_complex" and parent.array.shape[-1:] != (2,) or node_of(parent) is not None:
            return          # with a history, a write to the result is none to the parent
        parent = apply(OPS[parts], parent)          # as the numbers that complex numbers are made of, or as these
    if type(values) is not np.ndarray or array.dtype != parent.array.dtype:
        return
    memory, item = shared(parent).memory, array.itemsize
    if any(step < 0 or step % item for step in (*array.strides, *parent.array.strides)):
        return
    steps, here = [tuple(step // item for step in each.strides) for each in (array, parent.array)], address(memory)
    offset, start = ((address(each) - here) // item if each.size else 0 for each in (array, parent.array))
    out.origin = Origin(parent, OPS["as_strided"], (parent,), {
        "size": tuple(array.shape), "stride": steps[0], "offset": offset,
        "layout": (tuple(parent.array.shape), steps[1], start), "length": memory.nbytes // item},
        None if mode.grad else view_kind())
    if node_of(parent) is not None:
        out._storage.watched = True
