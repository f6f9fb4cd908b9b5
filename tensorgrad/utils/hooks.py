"""Handles of hooks (PyTorch: ``torch.utils.hooks``)."""
from __future__ import annotations

from typing import Any

from .._tensor.copying import warn_if_has_hooks
from ..core.node import RemovableHandle
from ..nn.modules._backward_hooks import BackwardHook

__all__ = ['BackwardHook', 'RemovableHandle', 'unserializable_hook', 'warn_if_has_hooks']


def unserializable_hook(f: Any) -> Any:
    """Mark a tensor's hook as not serializable, so that saving the tensor without it does not warn."""
    f.__torch_unserializable__ = True
    return f
