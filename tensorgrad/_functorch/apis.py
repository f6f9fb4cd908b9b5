"""`vmap`, `grad` and `grad_and_value` of torch.func, and `chunk_vmap`. https://pytorch.org/docs/stable/func.html"""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..func import grad, grad_and_value, vmap
from ..func.batching import arguments

__all__ = ["chunk_vmap", "grad", "grad_and_value", "vmap"]


def chunk_vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error",
               chunks: int = 2) -> Callable[..., Any]:
    """Return `vmap(func)` that runs on this many parts of the batch, one after the other.

    >>> import tensorgrad as torch
    >>> chunk_vmap(torch.sum, chunks=2)(torch.ones(3, 4))
    tensor([4., 4., 4.])
    """
    if chunks == 1:
        return vmap(func, in_dims, out_dims, randomness)  # type: ignore[no-any-return]

    @wraps(func)
    def chunked(*args: Any, **kwargs: Any) -> Any:
        size = arguments(func, in_dims, args)[0]
        return vmap(func, in_dims, out_dims, randomness, chunk_size=max(-(-size // chunks), 1))(*args, **kwargs)
    return chunked
