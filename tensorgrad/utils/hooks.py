"""Handles of hooks (PyTorch: ``torch.utils.hooks``)."""
import warnings

from ..core.node import RemovableHandle

__all__ = ['RemovableHandle', 'unserializable_hook', 'warn_if_has_hooks']


def unserializable_hook(f):
    """Mark a hook of a tensor as one that nobody expects in a file: no warning says that it is missing there."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor) -> None:
    """Warn of the hooks of a tensor, which are not saved with it."""
    hooks = getattr(tensor._node, 'hooks', None)
    for hook in [] if hooks is None else hooks.tensor.values():
        if not hasattr(hook, '__torch_unserializable__'):
            warnings.warn(f'backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the function with '
                          '@torch.utils.hooks.unserializable_hook to suppress this warning', stacklevel=2)
