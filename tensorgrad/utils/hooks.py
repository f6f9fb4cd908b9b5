"""Handles of hooks (PyTorch: ``torch.utils.hooks``)."""
from .._copying import warn_if_has_hooks
from ..core.node import RemovableHandle

__all__ = ['RemovableHandle', 'unserializable_hook', 'warn_if_has_hooks']


def unserializable_hook(f):
    """Mark a hook of a tensor as one that nobody expects in a file: no warning says that it is missing there."""
    f.__torch_unserializable__ = True
    return f
