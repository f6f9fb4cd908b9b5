"""The first `vmap`, at the path that programs import it from. https://pytorch.org/docs → torch.vmap"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

from .func.batching import arguments, check_out_dims, once

__all__ = ["vmap"]
in_dims_t = out_dims_t = Any


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """Return `torch.vmap(func)`, with PyTorch's warning: use that instead."""
    warnings.warn("Please use torch.vmap instead of torch._vmap_internals.vmap.", FutureWarning, stacklevel=2)
    return _vmap(func, in_dims, out_dims)


def _vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0,
          allow_none_pass_through: bool = False) -> Callable[..., Any]:
    """Return `torch.vmap(func)`, but let func call autograd.Functions that have no `setup_context`."""
    @wraps(func, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def batched(*args: Any) -> Any:
        check_out_dims(func, out_dims)
        size, dims, leaves, spec = arguments(func, in_dims, args)
        return once(func, size, dims, leaves, spec=spec, out_dims=out_dims, randomness="error", kwargs={}, first=True)
    return batched
