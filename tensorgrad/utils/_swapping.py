"""Swap the contents of two tensors, each of which remains the object that it is."""
from __future__ import annotations

import copyreg
import weakref
from typing import Any

from ..core.tape import Leaf, TensorBase

__all__ = ["swap_tensors"]
CONTENTS = "array", "_storage", "_node", "_grad", "origin"
POISONED = (
    "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when you try to run "
    "backward on a tensor that was swapped. For a module m with "
    "`torch.__future__.set_swap_module_params_on_conversion(True)` you should not change the device or dtype of the "
    "module (e.g. `m.cpu()` or `m.half()`) between running forward and backward. To resolve this, please only change "
    "the device/dtype before running forward (or after both forward and backward).")


def swap_tensors(t1: Any, t2: Any) -> None:
    """Swap two tensors: class, attributes, data, gradient and history. References to one then refer to the other.

    Errors: RuntimeError if a weak reference refers to one of them, or if their classes have unlike slots; later, if
    backward reaches a step that was recorded with a leaf among them.
    Source: https://pytorch.org/docs → torch.utils.swap_tensors

    >>> import tensorgrad as torch
    >>> a, b = torch.tensor([1.]), torch.tensor([2, 3])
    >>> torch.utils.swap_tensors(a, b)
    >>> a, b
    (tensor([2, 3]), tensor([1.]))
    """
    for name, tensor in ("t1", t1), ("t2", t2):
        _check(tensor, name)
    slots = [set(copyreg._slotnames(type(tensor))) for tensor in (t1, t2)]      # type: ignore[attr-defined]
    if slots[0] != slots[1]:
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    for name in ("__class__", "__dict__", *(slots[0] - set(CONTENTS)), *CONTENTS):
        _swap(t1, t2, name)
    for tensor in t1, t2:
        if type(tensor._node) is Leaf:
            _renew(tensor)


def _check(tensor: Any, name: str) -> None:
    """Raise RuntimeError if anything but the tape has a weak reference to the tensor."""
    node = tensor._node
    own = 1 if type(node) is Leaf and node.tensor is tensor else 0
    if len(weakref.getweakrefs(tensor)) > own:
        raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")


def _swap(t1: TensorBase, t2: TensorBase, name: str) -> None:
    """Swap an attribute, which one of the two or both may lack."""
    missing = object()
    values = [getattr(tensor, name, missing) for tensor in (t1, t2)]
    for tensor, value in zip((t2, t1), values, strict=True):
        if value is not missing:
            setattr(tensor, name, value)
        elif hasattr(tensor, name):
            delattr(tensor, name)


def _poison(*_: Any) -> None:
    raise RuntimeError(POISONED)


def _renew(tensor: Any) -> None:
    """Give the tensor a new leaf, so that no gradient arrives at the leaf that it had as another object."""
    before = tensor._node
    tensor._node = Leaf(tensor)
    if before.hooks is not None:
        tensor._node.hooks, before.hooks = before.hooks, None
    before.register_prehook(_poison)
