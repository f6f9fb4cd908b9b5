"""Pruning: keep part of a parameter at zero. The parameter becomes `name_orig`, multiplied by the buffer `name_mask`.

A pruning method computes the mask; as a hook, it multiplies before each forward. Pruning again acts on the elements
that are left.
"""
from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ... import api as tg
from .convert_parameters import parameters_to_vector

if TYPE_CHECKING:
    from ..modules.module import Module


class BasePruningMethod(ABC):
    """Base of pruning methods: `compute_mask` selects elements, among the part of the tensor that `PRUNING_TYPE`
    names.
    """

    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> None:
        """Return the new mask, of the mask's shape, from the scores `t` of all elements and the present mask."""

    def apply_mask(self, module: Module) -> Any:
        """Return the pruned tensor: mask · original."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(original.dtype) * original

    @classmethod
    def apply(cls, module: Module, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prune a parameter of a module by the method `cls(*args, **kwargs)`, by its values or by other scores."""
        method = cls._on_top_of_what_is_there(module, name, cls(*args, **kwargs))
        tensor = getattr(module, name)
        scores = _check_scores(importance_scores, tensor, f"parameter {name} of {module}")
        is_first = not isinstance(method, PruningContainer)
        if is_first:
            module.register_parameter(name + "_orig", tensor)
            del module._parameters[name]
            mask = tg.ones_like(tensor)
        else:
            mask = getattr(module, name + "_mask").detach().clone()
        try:
            module.register_buffer(name + "_mask", method.compute_mask(scores, default_mask=mask))
            method(module, ())
            module.register_forward_pre_hook(method)
        except Exception:
            if is_first:
                module.register_parameter(name, module._parameters.pop(name + "_orig"))
            raise
        return method

    @staticmethod
    def _on_top_of_what_is_there(module, name, method):
        """Return the method, or a container of all methods if the parameter was pruned before; not yet as a hook."""
        method._tensor_name = name
        keys = _hooks_on(module, name)
        if len(keys) > 1:
            raise AssertionError(f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. "
                                 "Use a PruningContainer.")
        if not keys:
            return method
        before = module._forward_pre_hooks.pop(keys[0])
        container = before if isinstance(before, PruningContainer) else PruningContainer(before)
        container.add_pruning_method(method)
        return container

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """Return the tensor with the pruned elements set to 0; the method and the tensor do not change."""
        scores = _check_scores(importance_scores, t, "tensor t")
        mask = tg.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Module) -> None:
        """Make the pruned tensor the parameter again."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        pruned = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = pruned.data
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


def _check_scores(scores, tensor, what):
    """Return the scores, by default the tensor's values."""
    if scores is None:
        return tensor
    if scores.shape != tensor.shape:
        raise AssertionError(f"importance_scores should have the same shape as {what}, "
                             f"got {scores.shape} vs {tensor.shape}")
    return scores


def _hooks_on(module, name):
    return [key for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]


class PruningContainer(BasePruningMethod):
    """Several methods on a tensor: each acts on the elements that the others left."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method. TypeError unless it is one, ValueError if it acts on a tensor of another name."""
        if method is not None:
            if not isinstance(method, BasePruningMethod):
                raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
            if self._tensor_name != method._tensor_name:
                raise ValueError(
                    f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to "
                    f"PruningContainer {self}. Found '{method._tensor_name}'")
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the last method's mask where the others have not pruned, and 0 elsewhere."""
        method = self._pruning_methods[-1]
        part = _part_to_prune(method, t, default_mask)
        mask = default_mask.to(t.dtype).clone()
        mask[part] = method.compute_mask(t[part], default_mask=default_mask[part]).to(mask.dtype)
        return mask


def _part_to_prune(method, t, mask):
    """Return an index, into the tensor and its mask, of the elements that a method may prune."""
    kind = method.PRUNING_TYPE
    if kind == "unstructured":
        return mask == 1
    if kind == "global":
        return (slice(None),) * t.ndim
    if kind != "structured":
        raise ValueError(f"Unrecognized PRUNING_TYPE {kind}")
    if not hasattr(method, "dim"):
        raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.')
    if method.dim < -t.ndim:
        raise IndexError(f"Index is out of bounds for tensor with dimensions {t.ndim}")
    dim = method.dim % t.ndim
    has_survivors = mask.sum(_all_dims_but(dim, t)) != 0
    return _at(dim, has_survivors, t)


def _all_dims_but(dim, t):
    return [d for d in range(t.ndim) if d != dim % t.ndim]


def _at(dim, index, t):
    """Return the tuple that selects `index` along a dimension."""
    return tuple(index if d == dim % t.ndim else slice(None) for d in range(t.ndim))


# ── the methods ───────────────────────────────────────────────────────────────────────────────
class Identity(BasePruningMethod):
    """Prune nothing, but bring the parameter into the form of a pruned one."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> Any:
        return super().apply(module, name)


class _Unstructured(BasePruningMethod):
    """Prune single elements: `amount` of them, or that fraction."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        _validate_pruning_amount(self.amount, t.numel())
        count = _compute_nparams_toprune(self.amount, t.numel())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[self.choose(t, count)] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prune elements at random."""

    def choose(self, t: Any, count: Any) -> Any:
        return tg.topk(tg.rand_like(t).view(-1), k=count).indices

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any) -> Any:
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prune the elements that are smallest in magnitude."""

    def choose(self, t: Any, count: Any) -> Any:
        return tg.topk(tg.abs(t).view(-1), k=count, largest=False).indices

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any, importance_scores: Any = None) -> Any:
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(BasePruningMethod):
    """Prune whole channels along one dimension: `amount` of them, or that fraction."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: Any = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if t.ndim <= 1:
            raise ValueError("Structured pruning can only be applied to multidimensional tensors. Found tensor of "
                             f"shape {t.shape} with {t.ndim} dims")
        if self.dim >= t.ndim:
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        channels = t.shape[self.dim]
        _validate_pruning_amount(self.amount, channels)
        count = _compute_nparams_toprune(self.amount, channels)
        if not count:
            return default_mask
        mask = tg.zeros_like(t)
        mask[_at(self.dim, self.survivors(t, channels, count), t)] = 1
        return mask * default_mask.to(mask.dtype)


class RandomStructured(_Structured):
    """Prune channels at random."""

    def survivors(self, t: Any, channels: Any, count: Any) -> Any:
        draws = tg.rand(channels)
        return (draws > tg.kthvalue(draws, k=count).values).to(t.device)

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any, dim: Any = -1) -> Any:
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prune the channels with the smallest n-norms."""

    def __init__(self, amount: Any, n: Any, dim: Any = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def survivors(self, t: Any, channels: Any, count: Any) -> Any:
        norms = tg.norm(t, p=self.n, dim=_all_dims_but(self.dim, t))
        return tg.topk(norms, k=channels - count, largest=True).indices

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any, n: Any, dim: Any, importance_scores: Any = None) -> Any:
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prune where a given mask is 0."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}")
        return default_mask * self.mask.to(default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Any) -> Any:
        return super().apply(module, name, mask=mask)


def _validate_pruning_amount_init(amount):
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (not isinstance(amount, numbers.Integral) and amount > 1):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount, tensor_size):
    if isinstance(amount, numbers.Integral) and amount > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _compute_nparams_toprune(amount, tensor_size):
    """Return the number of units to prune from an amount: an int, or a fraction of them."""
    return amount if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


# ── functions, which return the module ────────────────────────────────────────────────────────
def identity(module: Module, name: str) -> Any:
    """Bring a parameter into the form of a pruned one, with a mask of ones."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: Any) -> Any:
    """Prune elements at random. See PyTorch's `torch.nn.utils.prune.random_unstructured`."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prune the elements that are smallest in magnitude. See PyTorch's `torch.nn.utils.prune.l1_unstructured`.

    >>> import tensorgrad as torch
    >>> layer = torch.nn.utils.prune.l1_unstructured(torch.nn.Linear(4, 2), "weight", amount=0.25)
    >>> int((layer.weight == 0).sum())
    2
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: Any, dim: Any) -> Any:
    """Prune channels at random. See PyTorch's `torch.nn.utils.prune.random_structured`."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Module, name: str, amount: Any, n: Any, dim: Any, importance_scores: Any = None) -> Any:
    """Prune the channels with the smallest n-norms. See PyTorch's `torch.nn.utils.prune.ln_structured`."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Any) -> Any:
    """Prune where the mask is 0. See PyTorch's `torch.nn.utils.prune.custom_from_mask`."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any) -> None:
    """Prune several parameters by a common ranking of their elements: `parameters` are pairs (module, name).

    See PyTorch's `torch.nn.utils.prune.global_unstructured`.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    importance_scores = {} if importance_scores is None else importance_scores
    if not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    parameters = list(parameters)
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError('Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. '
                        f"Found method {pruning_method} of type {method.PRUNING_TYPE}")
    tensors = [getattr(module, name) for module, name in parameters]
    scores = parameters_to_vector(
        [importance_scores.get(key, tensor) for key, tensor in zip(parameters, tensors, strict=True)])
    masks = parameters_to_vector([getattr(module, name + "_mask", tg.ones_like(tensor))
                                  for (module, name), tensor in zip(parameters, tensors, strict=True)])
    method._tensor_name = "all"
    mask = PruningContainer(method).compute_mask(scores, masks)
    parts = mask.split([tensor.numel() for tensor in tensors])
    for (module, name), tensor, part in zip(parameters, tensors, parts, strict=True):
        custom_from_mask(module, name, mask=part.view_as(tensor))


def remove(module: Module, name: str) -> Any:
    """Make the pruned tensor the parameter again. See PyTorch's `torch.nn.utils.prune.remove`."""
    keys = _hooks_on(module, name)
    if not keys:
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    module._forward_pre_hooks.pop(keys[0]).remove(module)
    return module


def is_pruned(module: Module) -> bool:
    """Return True if any parameter of the module, or below it, is pruned."""
    return any(isinstance(hook, BasePruningMethod)
               for submodule in module.modules() for hook in submodule._forward_pre_hooks.values())
