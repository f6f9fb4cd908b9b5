"""Utilities around modules: clipping gradients, packing sequences, reparametrizing, pruning, fusing."""
from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any

from ...messages.missing_names import MissingName as _MissingName
from . import rnn
from .spectral_norm import remove_spectral_norm, spectral_norm
from .weight_norm import remove_weight_norm, weight_norm

_LAZY = ("clip_grad", "convert_parameters", "fusion", "init", "memory_format", "parametrizations", "parametrize",
         "prune", "stateless")
_ELSEWHERE = {name: module for module, names in {
    "clip_grad": "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm",
    "convert_parameters": "parameters_to_vector vector_to_parameters",
    "fusion": "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights",
    "init": "skip_init",
    "memory_format": "convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format",
}.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import a utility module on first access; most models run without."""
    module = name if name in _LAZY else _ELSEWHERE.get(name)
    if module is None:
        raise _MissingName(__name__, name)
    found = _import_module(f"{__name__}.{module}")
    return found if module == name else getattr(found, name)


def __dir__() -> Any:
    return sorted({*globals(), *_LAZY, *_ELSEWHERE})


__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]
