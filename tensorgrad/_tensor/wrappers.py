"""Wrapper subclasses: tensors that hold other tensors as attributes, and have a shape, a dtype and a device alone.

https://pytorch.org/docs → Extending PyTorch → Subclassing torch.Tensor
"""
from __future__ import annotations

from typing import Any

from .. import dtype as dtypes
from ..core.class_hooks import CLASSES, hooks
from ..device import get_default_device


def _make_wrapper_subclass(cls: Any, size: Any, strides: Any = None, storage_offset: Any = None,
                           memory_format: Any = None, dtype: Any = None, layout: Any = dtypes.strided,
                           device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                           dispatch_sizes_strides_policy: Any = None, dispatch_device: bool = False,
                           dispatch_layout: bool = False, _extra_dispatch_keys: Any = None,
                           storage_size: Any = None) -> Any:
    """Return a tensor of a class that defines `__torch_dispatch__`, with a shape, a dtype and a device, and no memory.

    >>> import tensorgrad as torch
    >>> class Boxed(torch.Tensor):
    ...     @staticmethod
    ...     def __new__(cls, held):
    ...         self = torch.Tensor._make_wrapper_subclass(cls, held.size(), dtype=held.dtype)
    ...         self.held = held
    ...         return self
    ...     @classmethod
    ...     def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         args = [a.held if type(a) is cls else a for a in args]
    ...         return cls(func(*args, **(kwargs or {})))
    >>> (Boxed(torch.ones(2)) * 3).held
    aten.mul.Tensor
    tensor([3., 3.])
    """
    if cls not in CLASSES:
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    kind = dtypes.get_default_dtype() if dtype is None else dtype
    if requires_grad and not (kind.is_floating_point or kind.is_complex):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return hooks.wrapper(cls, size, strides, kind, get_default_device() if device is None else device, requires_grad)
