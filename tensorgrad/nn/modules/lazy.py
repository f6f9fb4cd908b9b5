"""Modules that learn the shapes of their parameters from the first input they see."""
from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from ... import api as tg
from ...core.mode import mode
from ..parameter import UninitializedParameter, is_lazy

if TYPE_CHECKING:
    from .module import Module

__all__ = ["LazyModuleMixin"]


def declare_later(module: Module, device: Any, dtype: Any, *names: Any) -> None:
    """Register uninitialized parameters, which have no shape yet."""
    for name in names:
        setattr(module, name, UninitializedParameter(device=device, dtype=dtype))


class LazyModuleMixin:
    """Makes a module lazy until its first call (torch.nn.modules.lazy.LazyModuleMixin).

    A subclass names `cls_to_become`, registers `UninitializedParameter`s and `UninitializedBuffer`s, and gives them
    their shapes in `initialize_parameters`, which gets the arguments of the first call.

    Parameters:
        as the module it is mixed into
    Input: as the module
    Output: as the module
    Weights: uninitialised until the first call, or until a state_dict with the weights is loaded

    >>> import tensorgrad as torch
    >>> layer = torch.nn.LazyLinear(2)
    >>> layer(torch.ones(4, 3)).shape, layer
    (torch.Size([4, 2]), Linear(in_features=3, out_features=2, bias=True))
    """

    cls_to_become = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> Any:
        return any(map(is_lazy, chain(self._parameters.values(), self._buffers.values())))

    def _infer_parameters(self, module, args, kwargs=None):
        """Initialize the parameters in a forward pre-hook, which runs once and turns the module into an ordinary
        one.
        """
        # draw weights from the usual stream even when only shapes are inferred
        quiet, mode.quiet = mode.quiet, None
        try:
            module.initialize_parameters(*args, **(kwargs or {}))
        finally:
            mode.quiet = quiet
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        for hook in ("_initialize_hook", "_load_hook"):
            getattr(module, hook).remove()
            delattr(module, hook)
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _lazy_load_hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """Give each uninitialized parameter the shape of its loaded value, before loading."""
        for name, value in chain(self._parameters.items(), self._buffers.items()):
            loaded = state_dict.get(prefix + name)
            if is_lazy(value) and loaded is not None and not is_lazy(loaded):
                with tg.no_grad():
                    value.materialize(loaded.shape)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Like `Module`'s, but save uninitialized tensors themselves, because they cannot be detached."""
        buffers = ((n, b) for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set)
        for name, value in chain(self._parameters.items(), buffers):
            if value is not None:
                destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()

    def _replicate_for_data_parallel(self):
        raise RuntimeError("Modules with uninitialized parameters can't be used with `DataParallel`. "
                           "Run a dummy forward pass to correctly initialize the modules")
