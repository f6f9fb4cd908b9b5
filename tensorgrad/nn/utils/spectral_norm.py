"""Spectral normalization by hooks: w = w_orig / σ(w_orig), recomputed before each forward (see parametrizations).

σ, the largest singular value, is u · W v; each training step improves the vectors u and v by power iteration.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import api as tg
from .. import functional as F
from ..parameter import Parameter, is_lazy
from .weight_norm import find_hook

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ..modules.module import Module

__all__ = ["SpectralNorm", "SpectralNormLoadStateDictPreHook", "SpectralNormStateDictHook", "spectral_norm",
           "remove_spectral_norm"]


def channel_dim(module: Module) -> Any:
    """Return the dimension of a layer's weight that counts its outputs."""
    from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
    return 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0


class SpectralNorm:
    """The hook that sets the weight before each forward."""

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError("Expected n_power_iterations to be positive, but got "
                             f"n_power_iterations={n_power_iterations}")
        self.name, self.dim, self.eps = name, dim, eps
        self.n_power_iterations = n_power_iterations

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """Return the weight as a matrix with a row for each output."""
        return weight.movedim(self.dim, 0).flatten(1)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """Compute the weight from the present parameter. u and v are updated in place, then copied, so that several
        forward passes may precede a backward pass."""
        weight, u, v = (getattr(module, self.name + suffix) for suffix in ("_orig", "_u", "_v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with tg.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(self.normalize(tg.mv(matrix.t(), u)))
                    u.copy_(self.normalize(tg.mv(matrix, v)))
                u, v = u.clone(), v.clone()
        return weight / tg.dot(u, tg.mv(matrix, v))

    def normalize(self, vector: Any) -> Any:
        return F.normalize(vector, dim=0, eps=self.eps)

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        with tg.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> Any:
        """Replace a parameter by `name_orig` and two buffers, and register the hooks on the module."""
        if find_hook(module, SpectralNorm, name) is not None:
            raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError("The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to "
                             "run the dummy forward before applying spectral normalization")
        with tg.no_grad():
            rows, columns = hook.reshape_weight_to_matrix(weight).shape
            u = hook.normalize(weight.new_empty(rows).normal_(0, 1))
            v = hook.normalize(weight.new_empty(columns).normal_(0, 1))
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)          # a plain attribute, for reads before the first call
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook


class SpectralNormStateDictHook:
    """Records the version of the state in its metadata."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn

    def __call__(self, module: Module, state_dict: Any, prefix: str, local_metadata: Any) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


class SpectralNormLoadStateDictPreHook:
    """Converts states of version 0, which have the normalized weight instead of v."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn

    def __call__(self, state_dict: Any, prefix: str, local_metadata: Any, strict: Any, missing_keys: Any,
                 unexpected_keys: Any, error_msgs: Any) -> None:
        version = local_metadata.get("spectral_norm", {}).get(self.fn.name + ".version")
        key = prefix + self.fn.name
        is_complete = key not in state_dict and all(key + suffix in state_dict for suffix in ("_orig", "_u", "_v"))
        if version is None and is_complete or version is not None and version >= 1:
            return
        missing = [key + suffix for suffix in ("_orig", "", "_u") if key + suffix not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else ())
            return
        with tg.no_grad():
            self.add_v(state_dict, key)

    def add_v(self, state_dict: Any, key: Any) -> None:
        """Add v, the solution of W v = c u, with c such that u · W v is the σ by which the weight had been divided."""
        original, u = state_dict[key + "_orig"], state_dict[key + "_u"]
        sigma = (original / state_dict.pop(key)).mean()
        matrix = self.fn.reshape_weight_to_matrix(original)
        v = tg.mv(tg.linalg.pinv(matrix), u)
        state_dict[key + "_v"] = v * (sigma / tg.dot(u, tg.mv(matrix, v)))


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Module:
    """Keep the largest singular value of a weight at 1. See PyTorch's `torch.nn.utils.spectral_norm`.

    >>> import tensorgrad as torch
    >>> sorted(torch.nn.utils.spectral_norm(torch.nn.Linear(2, 3)).state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    SpectralNorm.apply(module, name, n_power_iterations, channel_dim(module) if dim is None else dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Any:
    """Undo `spectral_norm`, keeping the present weight."""
    key = find_hook(module, SpectralNorm, name)
    if key is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    hook = module._forward_pre_hooks.pop(key)
    hook.remove(module)
    for table in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for key, other in list(table.items()):
            if getattr(getattr(other, "hook", other), "fn", None) is hook:
                del table[key]
    return module
