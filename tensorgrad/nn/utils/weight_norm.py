"""Weight normalization by hooks: w = g · v / ‖v‖, recomputed before each forward (deprecated; see parametrizations)."""
from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ... import api as tg
from ..parameter import Parameter, is_lazy

if TYPE_CHECKING:
    from ..modules.module import Module

__all__ = ["WeightNorm", "weight_norm", "remove_weight_norm"]


def norm_except_dim(v: Any, dim: Any) -> Any:
    """Return the 2-norm of v over all dimensions but `dim`, with size 1 in these; `dim=-1`: the norm over all
    dimensions."""
    if dim == -1:
        return tg.linalg.vector_norm(v)
    others = [d for d in range(v.ndim) if d != dim % v.ndim]
    return tg.linalg.vector_norm(v, dim=others, keepdim=True) if others else v.abs()


def normalized_weight(v: Any, g: Any, dim: Any) -> Any:
    """g · v / ‖v‖."""
    return v * (g / norm_except_dim(v, dim))


class WeightNorm:
    """The hook that sets the weight from `g` and `v` before each forward."""

    def __init__(self, name: str, dim: int) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Any:
        """Compute the weight from the present parameters."""
        return normalized_weight(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int) -> Any:
        """Replace a parameter by two, and register the hook on the module."""
        warnings.warn("`torch.nn.utils.weight_norm` is deprecated in favor of "
                      "`torch.nn.utils.parametrizations.weight_norm`.", FutureWarning, stacklevel=3)
        if find_hook(module, WeightNorm, name) is not None:
            raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError("The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run "
                             "the dummy forward before applying weight normalization")
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, hook.dim).data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        hook(module)
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"], module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs: Any = ()) -> None:
        setattr(module, self.name, self.compute_weight(module))


def find_hook(module: Module, kind: Any, name: str) -> Any:
    """Return the key of the forward pre-hook of this class for the parameter of this name, or None."""
    return next((key for key, hook in module._forward_pre_hooks.items()
                 if type(hook) is kind and hook.name == name), None)


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Any:
    """Train direction and length of a weight separately. Deprecated: use `parametrizations.weight_norm`."""
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Any:
    """Undo `weight_norm`, keeping the present weight."""
    key = find_hook(module, WeightNorm, name)
    if key is None:
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    module._forward_pre_hooks.pop(key).remove(module)
    return module
