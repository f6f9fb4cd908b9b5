"""A module's state as a dictionary: save it, load it, and import it from other libraries."""
from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ... import api as tg
from ...messages.escaping import escaped
from ..parameter import Parameter, is_lazy
from ._convert import conversion
from ._hooks import BoundHook, add_hook

if TYPE_CHECKING:
    from ...core.node import RemovableHandle
    from .module import Module

EXTRA_STATE = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """The keys that `load_state_dict` did not find, and those that it did not use."""

    __slots__ = ()

    def __repr__(self) -> str:
        return super().__repr__() if any(self) else "<All keys matched successfully>"

    __str__ = __repr__


class StateMixin:
    """The part of `Module` that saves and loads."""

    _version = 1                                    # subclasses increase it when the layout of their state changes
    dump_patches = False
    T_destination = TypeVar("T_destination", bound=dict[str, Any])

    # ── saving ────────────────────────────────────────────────────────────────────────────────
    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str,
                                                                                                                 Any]:
        """Every parameter and persistent buffer by its full name. See PyTorch's `torch.nn.Module.state_dict`.

        The tensors share the module's memory, detached unless `keep_vars`. `prefix` is put before each name.

        >>> import tensorgrad as torch
        >>> list(torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU()).state_dict())
        ['0.weight', '0.bias']
        """
        if args:
            destination, prefix, keep_vars = _positional_arguments(args, destination, prefix, keep_vars)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, child in self._modules.items():
            if child is not None:
                child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        return self._run_state_dict_hooks(destination, prefix, metadata)

    def _run_state_dict_hooks(self, destination, prefix, metadata):
        for hook in self._state_dict_hooks.values():
            answer = hook(self, destination, prefix, metadata)
            if answer is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = answer
        return destination

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Write this module's own tensors, not its children's. Subclasses may extend it."""
        for name, tensor in self._local_state().items():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if type(self).get_extra_state is not StateMixin.get_extra_state:
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def _local_state(self):
        """This module's own parameters and persistent buffers, by name."""
        transient = self._non_persistent_buffers_set
        state = {name: tensor for name, tensor in self._parameters.items() if tensor is not None}
        state.update((name, tensor) for name, tensor in self._buffers.items()
                     if tensor is not None and name not in transient)
        return state

    def get_extra_state(self) -> Any:
        """Return additional state for the `state_dict`; override together with `set_extra_state`."""
        raise RuntimeError(_NEVER_CALLED.format("get"))

    def set_extra_state(self, state: Any) -> None:
        """Restore the state that `get_extra_state` returned."""
        raise RuntimeError(_NEVER_CALLED.format("set"))

    # ── loading ───────────────────────────────────────────────────────────────────────────────
    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True,
                        assign: bool = False) -> _IncompatibleKeys:
        """Copy tensors into the parameters and buffers of the same names, here and below.

        With `assign`, the given tensors take the place of the module's own. Returns `missing_keys` and
        `unexpected_keys`; if `strict`, RuntimeError when there are any.
        See PyTorch's `torch.nn.Module.load_state_dict`.

        >>> import tensorgrad as torch
        >>> layer = torch.nn.Linear(1, 1)
        >>> layer.load_state_dict({"weight": torch.ones(1, 1), "bias": torch.zeros(1)})
        <All keys matched successfully>
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        loading = _Loading(getattr(state_dict, "_metadata", None), assign)
        own_copy = OrderedDict(state_dict)          # hooks and _load_from_state_dict may change it
        if loading.metadata is not None:
            own_copy._metadata = loading.metadata
        loading.load(self, own_copy, prefix="")
        loading.raise_errors(self, strict)
        return loading.incompatible_keys

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict,
                              missing_keys, unexpected_keys, error_msgs):
        """Read this module's own tensors, not its children's. Subclasses may extend it.

        Problems are reported through the three lists; `local_metadata` is what `state_dict` saved with this module.
        """
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        local_state = self._local_state()
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, tensor in local_state.items():
            key = prefix + name
            if key in state_dict:
                if problem := _load_tensor(self, name, tensor, key, state_dict[key], assign):
                    error_msgs.append(problem)
            elif strict:
                missing_keys.append(key)
        self._load_extra_state(state_dict, prefix + EXTRA_STATE, strict, missing_keys, unexpected_keys)
        if strict:
            unexpected_keys += self._unexpected_keys(state_dict, prefix, local_state)

    def _load_extra_state(self, state_dict, key, strict, missing_keys, unexpected_keys):
        is_wanted = type(self).set_extra_state is not StateMixin.set_extra_state
        if is_wanted and key in state_dict:
            self.set_extra_state(state_dict[key])
        elif is_wanted and strict:
            missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)

    def _unexpected_keys(self, state_dict, prefix, local_state):
        """Return the keys under the prefix that belong neither to a tensor of this module nor to a child."""
        for key in state_dict:
            if key.startswith(prefix) and key != prefix + EXTRA_STATE:
                name, dot, _ = key.removeprefix(prefix).partition(".")
                if name not in (self._modules if dot else local_state):
                    yield key

    def init_from_torch(self, module: Module) -> Any:
        """Take over, in place, the state of a module of the same structure from PyTorch, or from anything like it.

        `module.state_dict()` must give values with `detach().cpu().numpy()`; PyTorch itself is never imported.
        Parameters keep their identity, dtype and device; buffers are copied too, and submodules at any depth.
        Returns the module; RuntimeError names all keys that are missing, unexpected or of another shape.

        >>> import tensorgrad as torch
        >>> source = torch.nn.Linear(2, 1)
        >>> layer = torch.nn.Linear(2, 1).init_from_torch(source)
        >>> torch.equal(layer.weight, source.weight)
        True
        """
        foreign = module.state_dict()
        state = OrderedDict((key, _from_foreign(value)) for key, value in foreign.items())
        if hasattr(foreign, "_metadata"):
            state._metadata = foreign._metadata
        self.load_state_dict(state)
        return self

    # ── hooks ─────────────────────────────────────────────────────────────────────────────────
    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict` collects."""
        return add_hook(hook, self._state_dict_pre_hooks)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)`, which may change the dictionary in place."""
        hook._from_public_api = True
        return add_hook(hook, self._state_dict_hooks)

    def _register_state_dict_hook(self, hook):
        """Like `register_state_dict_post_hook`, but the hook's return value replaces the dictionary."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError("Cannot register the same function as the state dict post hook that was previously "
                               "registered via register_state_dict_post_hook")
        return add_hook(hook, self._state_dict_hooks)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, …)` with the arguments of `_load_from_state_dict`; it may change any of them in place."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        return add_hook(BoundHook(hook, self if with_module else None), self._load_state_dict_pre_hooks)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)`, which may change both lists in place."""
        return add_hook(hook, self._load_state_dict_post_hooks)


class _Loading:
    """A run of `load_state_dict`: the arguments of every module, and the problems reported."""

    def __init__(self, metadata: Any, assign: Any) -> None:
        self.metadata, self.assign = metadata, assign
        self.error_msgs = []
        self.incompatible_keys = _IncompatibleKeys([], [])

    def load(self, module: Module, state_dict: Any, prefix: str) -> None:
        """Load a module and its children, each from its own part of the dictionary, which its hooks may change."""
        local_metadata = {} if self.metadata is None else self.metadata.get(prefix[:-1], {})
        if self.assign:
            local_metadata = {**local_metadata, "assign_to_params_buffers": True}
        module._load_from_state_dict(
            state_dict, prefix, local_metadata, True, *self.incompatible_keys, self.error_msgs)
        for name, child in module._modules.items():
            if child is not None:
                below = f"{prefix}{name}."
                self.load(child, {key: value for key, value in state_dict.items() if key.startswith(below)}, below)
        for hook in module._load_state_dict_post_hooks.values():
            if hook(module, self.incompatible_keys) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                    "values, if incompatible_keys need to be modified, it should be done inplace.")

    def raise_errors(self, module: Module, strict: Any) -> None:
        problems = self.error_msgs
        if strict:
            missing, unexpected = (", ".join(f'"{escaped(key)}"' for key in keys) for keys in self.incompatible_keys)
            problems[:0] = [f"{kind} key(s) in state_dict: {keys}. "
                            for kind, keys in (("Missing", missing), ("Unexpected", unexpected)) if keys]
        if problems:
            raise RuntimeError("Error(s) in loading state_dict for {}:\n\t{}".format(
                type(module).__name__, "\n\t".join(problems)))


_NEVER_CALLED = "Reached a code path in Module.{}_extra_state() that should never be called."


def _load_tensor(module, name, tensor, key, value, assign):
    """Put the value into (or, with `assign`, in place of) one parameter or buffer. Returns a problem or None."""
    if not isinstance(value, tg.Tensor):
        return (f'While copying the parameter named "{escaped(key)}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(value)}")
    if not is_lazy(tensor):
        if tensor.ndim == 0 and value.shape == (1,):         # old files store scalars with shape (1,)
            value = value[0]
        if value.shape != tensor.shape:
            return (f"size mismatch for {escaped(key)}: copying a param with shape {value.shape} from checkpoint, the "
                    f"shape in current model is {tensor.shape}.")
    if tensor.is_meta and not value.is_meta and not assign:
        warnings.warn(f"for {escaped(key)}: copying from a non-meta parameter in the checkpoint to a meta parameter in "
                      "the current model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the "
                      "state dictionary to their corresponding key in the module instead of copying them in place?)",
                      stacklevel=2)
    try:
        with tg.no_grad():
            if conversion.swap:
                _swap(tensor, tensor.module_load(value, assign=assign), value)
            elif assign:
                setattr(module, name, _like(tensor, value))
            else:
                tensor.copy_(value)
    except Exception as error:
        return (f'While {"swapping" if conversion.swap else "copying"} the parameter named "{escaped(key)}", '
                f"whose dimensions in the model are {tensor.size()} and whose dimensions in the checkpoint are "
                f"{value.size()}, an exception occurred : {error.args}.")
    return None


def _swap(tensor, loaded, value):
    """Swap the tensor with what its `module_load` made of the value."""
    from ...utils._swapping import swap_tensors
    if loaded is value or loaded is tensor:
        raise RuntimeError("module_load returned one of self or other, please .detach() the result if returning one of "
                           "the inputs in module_load")
    swap_tensors(tensor, _like(tensor, loaded))


def _like(tensor, value):
    """Return the value, as a Parameter if `tensor`, which it replaces, is one."""
    if not isinstance(tensor, Parameter):
        return value
    if isinstance(value, Parameter):
        return value.requires_grad_(tensor.requires_grad)
    return Parameter(value, requires_grad=tensor.requires_grad)


def _from_foreign(value):
    """Convert a tensor of another library by way of NumPy, which has no bfloat16; anything else passes through."""
    if not hasattr(value, "detach"):
        return value
    value = value.detach().cpu()
    if str(getattr(value, "dtype", "")).endswith("bfloat16"):
        value = value.float()
    return tg.as_tensor(value.numpy())


def _positional_arguments(args, destination, prefix, keep_vars):
    """Merge the deprecated positional arguments of `state_dict` with its keywords, which take precedence."""
    warnings.warn(
        "Positional args are being deprecated, use kwargs instead. Refer to "
        "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
        FutureWarning, stacklevel=3)
    given = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
    return (given.get("destination") if destination is None else destination,
            prefix or given.get("prefix", ""), keep_vars or given.get("keep_vars", False))
