"""Accumulation of gradients in leaves: .grad owns its memory, in the memory order of the tensor."""
from __future__ import annotations

import os
from threading import RLock
from typing import Any

from ..storage.sparse import add_into, joined
from .class_hooks import is_own
from .dispatch import wrap, xp
from .tape import TensorBase, node_of
from .unbroadcast import added

# Held while a leaf's .grad is read and written: several threads may sweep at once, and a hook may begin another sweep
# in this one.
one_at_a_time = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=one_at_a_time._at_fork_reinit)  # type: ignore[attr-defined]


def accumulate(tensor: Any, g: Any, owned: bool = False) -> None:
    """Add a gradient to a tensor's .grad, which never shares memory with other tensors."""
    with one_at_a_time:
        before = tensor._grad
        if isinstance(g, TensorBase):
            if before is not None and is_own(before) and node_of(g) is node_of(before) is None:
                before.add_(g)          # the class keeps its object
            else:
                tensor._grad = copied(g) if before is None else plus(before, g)
            return
        array, backend = tensor.array, type(tensor._storage)
        if type(g) in backend.layouts or before is not None and before._storage.dense is not None:
            tensor._grad = _summed(before, g, backend, owned)
            return
        shape = array.shape
        # the leaf got axes of length 1 in place, after it was recorded
        if g.shape != shape and g.size == array.size:
            g, owned = g.reshape(shape), False
        if before is None:
            # the gradient fills its memory in the order of the tensor's
            if g.shape == shape and _inner_strides(array):
                laid = backend.xp.empty_like(array)
                backend.assign(laid, g)
                g, owned = laid, True
            elif owned and not getattr(getattr(g, "flags", None), "c_contiguous", True):
                owned = False           # .grad of a contiguous tensor is contiguous, too
            tensor._grad = owning(g, backend, owned)
        elif before.array.shape == g.shape and _writeable(before.array):
            total = before.array
            if total.dtype.kind == "V":         # NumPy does not add bfloat16
                total = added(backend.xp, total, g)
            else:
                total += g
            if total is not before.array:       # no array that adds in place
                backend.assign(before.array, total)
            before._storage.wrote()
        else:
            tensor._grad = before + owning(g, backend)


def copied(g: Any) -> Any:
    """Return a copy of a gradient with a history: as in PyTorch, it was copied to new memory."""
    return xp.clone(g) if is_own(g) or g._storage.dense is not None else xp.copied(wrap(g.array, g._storage), g)


def plus(a: Any, b: Any) -> Any:
    """Return the sum of two gradients, Tensors, of which one may be sparse."""
    return b + a if a._storage.dense is not None and b._storage.dense is None else a + b


def _summed(before: Any, g: Any, backend: Any, owned: bool) -> Any:
    """Return the sum of a gradient and a new one, of which at least one is sparse.

    The sum is in the former's memory, unless that is sparse and the new one dense.
    """
    if before is None:
        return owning(g, backend, owned)
    if type(g) not in backend.layouts:
        return owning(g + before.array, backend)
    if before._storage.dense is None:
        add_into(before.array, g)
    else:
        before.array.become(joined(before.array, g))
    before._storage.wrote()
    return before


def _inner_strides(array: Any) -> bool:
    """Return True if an array fills its memory, but not in C order."""
    flags = getattr(array, "flags", None)
    return flags is not None and not flags.c_contiguous and array.size == _span(array)


def _span(array: Any) -> int:
    """Return the number of elements in memory from an array's first to its last, inclusive."""
    return (1 + sum((n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)) // array.itemsize
            if hasattr(array, "strides") else -1)


def owning(g: Any, backend: Any, owned: bool = False, in_order: bool = False) -> Any:
    """Return a Tensor with the gradient's values, copied unless the memory is `owned`.

    Copies are contiguous, or with `in_order` have their axes in the gradient's order.
    """
    if type(g) is not backend.array_type:
        backend = backend.home(g)
        g, owned = backend.asarray(g), type(g) not in backend.layouts
    copy = backend.xp.clone if in_order and type(g) is backend.array_type else backend.xp.contiguous
    return wrap(g if owned and _writeable(g) else copy(g), backend())


def _writeable(array: Any) -> bool:
    """Return True if an array may be written to: only NumPy's arrays may be read-only."""
    return getattr(getattr(array, "flags", None), "writeable", True)
