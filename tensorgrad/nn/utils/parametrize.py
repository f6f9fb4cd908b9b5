"""Parameters that are computed from others: `module.weight` becomes a function of what is trained.

    register_parametrization(module, "weight", f)

makes `module.weight` a property with the value f(module.parametrizations.weight.original). The module gets its own
class for that, derived from the old one. Assigning to `module.weight` calls `f.right_inverse`, if f has one.
"""
from __future__ import annotations

import copyreg
from collections.abc import Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from ... import api as tg
from ..modules.container import ModuleDict, ModuleList
from ..parameter import Parameter

if TYPE_CHECKING:
    from ..modules.module import Module

__all__ = ["cached", "ParametrizationList", "register_parametrization", "is_parametrized", "remove_parametrizations",
           "type_before_parametrizations", "transfer_parametrizations_and_params"]

Tensor = tg.Tensor


class _Cache:
    """The cached values of parametrized tensors, while any `cached` block is open."""

    depth = 0
    values: dict = {}


@contextmanager
def cached() -> Any:
    """A context manager in which each parametrized tensor is computed at most once.

    >>> import tensorgrad as torch
    >>> parametrize = torch.nn.utils.parametrize
    >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
    >>> with parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    _Cache.depth += 1
    try:
        yield
    finally:
        _Cache.depth -= 1
        if not _Cache.depth:
            _Cache.values = {}


class ParametrizationList(ModuleList):
    """The parametrizations of a tensor, applied in order, and the tensor(s) that they start from.

    `original` is that tensor, or `original0`, `original1`, … if the first one's right_inverse gives several.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor | Parameter, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        self._store(original, self._invert_as_far_as_possible(original))
        if not unsafe:
            _check_parametrized(self(), shape, dtype)

    def _invert_as_far_as_possible(self, value):
        """Apply the right inverses from last to first; a missing one counts as the identity."""
        with tg.no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        value = module.right_inverse(value)
                    except NotImplementedError:
                        pass
        return value

    def _store(self, original, new):
        self.is_tensor = isinstance(new, Tensor)
        if not self.is_tensor and not isinstance(new, Sequence):
            raise ValueError("'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                             f"Got {type(new).__name__}")
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            _check_same("dtype", original.dtype, new.dtype)
            _check_same("device", original.device, new.device)
            original.data = new                     # keep the object, because an optimizer may hold it
            _register(self, "original", original)
            return
        for i, part in enumerate(new):
            if not isinstance(part, Tensor):
                raise ValueError("'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                                 f"Got element {i} of the sequence with type {type(part).__name__}.")
            if isinstance(original, Parameter):
                part = Parameter(part, original.requires_grad)
            _register(self, f"original{i}", part.requires_grad_(original.requires_grad))

    @property
    def _originals(self):
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals such that the parametrized tensor becomes `value`."""
        with tg.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            self._assign(value)

    def _assign(self, value):
        if self.is_tensor:
            if not isinstance(value, Tensor):
                raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
            if value.dtype != self.original.dtype:
                raise ValueError(f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` has "
                                 f"dtype {self.original.dtype}")
            self.original.data = value
            return
        if not isinstance(value, Sequence):
            raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
        if len(value) != self.ntensors:
            raise ValueError(f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. "
                             f"Got a sequence of length {len(value)}.")
        for i, (original, part) in enumerate(zip(self._originals, value, strict=True)):
            if not isinstance(part, Tensor):
                raise ValueError("'right_inverse' must return a sequence of tensors or reference-type opaques. "
                                 f"Got element {i} of type {type(part).__name__}.")
            if part.dtype != original.dtype:
                raise ValueError(f"Tensor {i} returned by `right_inverse` has dtype {part.dtype} while `original{i}` "
                                 f"has dtype {original.dtype}")
            original.data = part

    def forward(self) -> Tensor:
        first, *others = self
        value = first(*self._originals)
        for module in others:
            value = module(value)
        return value


def _check_same(what, old, new):
    if old != new:
        raise ValueError(f"When `right_inverse` outputs one tensor, it may not change the {what}.\n"
                         f"original.{what}: {old}\nright_inverse(original).{what}: {new}")


def _check_parametrized(value, shape, dtype):
    """Raise ValueError unless a parametrization returned a tensor of the replaced tensor's shape and dtype."""
    if not isinstance(value, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(value).__name__}.")
    for what, before, after in (("dtype", dtype, value.dtype), ("shape", shape, value.shape)):
        if before != after:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is "
                f"enabled.\nunparametrized {what}: {before}\nparametrized {what}: {after}")


def _register(module, name, tensor):
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


# ── registering and removing ──────────────────────────────────────────────────────────────────
def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *,
                             unsafe: bool = False) -> Module:
    """Make a parameter or buffer a function of itself; several times for a chain of functions. Returns the module.

    Unless `unsafe`, ValueError if the shape or dtype would change, or the module has no tensor of that name.
    See PyTorch's `torch.nn.utils.parametrize.register_parametrization`.

    >>> import tensorgrad as torch
    >>> class Symmetric(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = torch.nn.Linear(3, 3)
    >>> layer = torch.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    >>> torch.equal(layer.weight, layer.weight.T)
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_next(parametrization, getattr(module, tensor_name), f"module.{tensor_name}")
        chain = module.parametrizations[tensor_name]
        chain.append(parametrization)
        chain.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        chain = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _give_own_class(module)
            module.parametrizations = ModuleDict()
        _add_property(module, tensor_name)
        module.parametrizations[tensor_name] = chain
    else:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
                         f"'{tensor_name}'")
    return module


def _check_next(parametrization, before, name):
    """Raise ValueError unless a further parametrization, and its right inverse, keep shape and dtype."""
    after = parametrization(before)
    if not isinstance(after, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
    for what in ("dtype", "shape"):
        if getattr(after, what) != getattr(before, what):
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` flag is "
                f"enabled.\n{name}.{what}: {getattr(before, what)}\n"
                f"parametrization({name}).{what}: {getattr(after, what)}")
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        inverse = parametrization.right_inverse(after)
    except NotImplementedError:
        return
    if not isinstance(inverse, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(inverse).__name__}")
    for what in ("dtype", "shape"):
        if getattr(inverse, what) != getattr(before, what):
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as {name}, unless "
                f"the `unsafe` flag is enabled.\n{name}.{what}: {getattr(before, what)}\n"
                f"returned {what}: {getattr(inverse, what)}")


def _give_own_class(module):
    """Give the module a class that no other module shares, because properties are attributes of classes."""
    cls = type(module)
    methods = {"__getstate__": _refuse_pickling}
    if not hasattr(cls, "__deepcopy__"):
        methods["__deepcopy__"] = _deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), methods)


def _refuse_pickling(self):
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training")


def _deepcopy(self, memo):
    """Copy as `deepcopy` does by default, without `__getstate__`, which raises."""
    if id(self) not in memo:
        memo[id(self)] = twin = self.__new__(type(self))
        twin.__dict__ = deepcopy(self.__dict__, memo)
        for slot in copyreg._slotnames(type(self)):
            if hasattr(self, slot):
                setattr(twin, slot, deepcopy(getattr(self, slot), memo))
    return memo[id(self)]


def _add_property(module, name):
    def get(self):
        if not _Cache.depth:
            return self.parametrizations[name]()
        key = id(self), name
        if key not in _Cache.values:
            _Cache.values[key] = self.parametrizations[name]()
        return _Cache.values[key]

    def set_original(self, value):
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, set_original))


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return True if any tensor of the module, or the tensor of that name, is parametrized."""
    chains = getattr(module, "parametrizations", None)
    if not isinstance(chains, ModuleDict):
        return False
    return len(chains) > 0 if tensor_name is None else tensor_name in chains


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a tensor ordinary again: with its current value, or its original one unless `leave_parametrized`."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    chain = module.parametrizations[tensor_name]
    if chain.is_tensor:
        tensor = chain.original
        if leave_parametrized:
            with tg.no_grad():
                tensor.data = getattr(module, tensor_name)
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        tensor = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in "
                         "terms of a sequence of tensors.")
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, tensor)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that the module had before anything of it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Module, to_module: Module,
                                         tensor_name: str | None = None) -> Module:
    """Parametrize `to_module` like `from_module`, all tensors or one, and share the originals. Returns `to_module`."""
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        if source.is_tensor:
            target.original = source.original
        else:
            for i, original in enumerate(source._originals):
                setattr(target, f"original{i}", original)
    return to_module
