"""Modules that compute their activations again in backward, or keep them in the host's memory, under the names that
they had before.

https://pytorch.org/docs → torch.distributed.algorithms._checkpoint.checkpoint_wrapper; `torch.utils.checkpoint` does
the work.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Any

from ....autograd.graph import save_on_cpu
from ....nn import Module
from ....utils.checkpoint import checkpoint

__all__ = ["ActivationWrapper", "CheckpointImpl", "CheckpointWrapper", "OffloadWrapper",
           "apply_activation_checkpointing", "checkpoint_wrapper",
           "offload_wrapper"]

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(Enum):
    """The two ways of `torch.utils.checkpoint`."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Module):
    """A module around another one, whose parameters and state dict have the names that they have without it."""

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(_leave_out)
        self.register_load_state_dict_pre_hook(_put_in)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise ValueError("Subclasses should implement forward().")

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == _CHECKPOINT_WRAPPED_MODULE:
                raise
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: Any) -> Any:
        return self._checkpoint_wrapped_module[key]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Return the parameters under the names that they have without wrappers."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter


def _renamed(state_dict: dict[str, Any], old: str, new: str) -> None:
    """Let keys that begin in one way begin in another, and stay in their order."""
    items = list(state_dict.items())
    state_dict.clear()
    state_dict.update((new + key.removeprefix(old) if key.startswith(old) else key, value) for key, value in items)


def _leave_out(module: Any, state_dict: dict[str, Any], prefix: str, *args: Any) -> dict[str, Any]:
    _renamed(state_dict, prefix + _CHECKPOINT_PREFIX, prefix)
    return state_dict


def _put_in(module: Any, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
    _renamed(state_dict, prefix, prefix + _CHECKPOINT_PREFIX)


class OffloadWrapper(ActivationWrapper):
    """Keeps what backward needs in the host's memory."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """Computes its activations again in backward."""

    def __init__(self, mod: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
                 checkpoint_fn: Any = None,
                 **checkpoint_fn_kwargs: Any) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        chosen = (partial(checkpoint, use_reentrant=checkpoint_impl is CheckpointImpl.REENTRANT)
                  if checkpoint_fn is None else checkpoint_fn)
        self.checkpoint_fn = partial(chosen, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self.checkpoint_impl is not CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)
        names, count = list(kwargs), len(args)          # the reentrant way takes no keywords

        def by_place(*inputs: Any) -> Any:
            return self._checkpoint_wrapped_module(*inputs[:count], **dict(zip(names, inputs[count:], strict=True)))
        return self.checkpoint_fn(by_place, *args, *kwargs.values())


def offload_wrapper(module: Module) -> Module:
    """Return a module that keeps its activations in the host's memory."""
    return OffloadWrapper(module)


def checkpoint_wrapper(module: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
                       checkpoint_fn: Any = None,
                       **checkpoint_fn_kwargs: Any) -> Module:
    """Return a module that computes its activations again in backward, by `torch.utils.checkpoint.checkpoint` or
    `checkpoint_fn`, with further keywords for it.

    >>> import tensorgrad as torch
    >>> from tensorgrad.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    >>> list(checkpoint_wrapper(torch.nn.Linear(2, 1)).state_dict())
    ['weight', 'bias']
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(model: Module,
                                   checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper,
                                   check_fn: Callable[[Module], bool] = lambda _: True,
                                   auto_wrap_policy: Any = None) -> None:
    """Wrap the modules within a model that `check_fn` chooses, in place; not the model itself.

    auto_wrap_policy: instead of check_fn, a function of `module`, `recurse`, and `nonwrapped_numel`, the number of
        elements of its parameters that are in no
    wrapped module. With recurse=True it says whether to look into the module, then with recurse=False whether to wrap
    it.
    """
    def asked(module: Module, recurse: bool, count: int) -> bool:
        if auto_wrap_policy is None:
            return recurse or check_fn(module)
        return bool(auto_wrap_policy(module=module, recurse=recurse, nonwrapped_numel=count))

    def visit(module: Module) -> int:
        """Wrap what is in a module, and return how many elements are wrapped then."""
        wrapped = 0
        for name, child in list(module.named_children()):
            count = sum(parameter.numel() for parameter in child.parameters())
            within = visit(child) if asked(child, True, count) else 0
            if asked(child, False, count - within):
                setattr(module, name, checkpoint_wrapper_fn(child))
                within = count
            wrapped += within
        return wrapped
    visit(model)
