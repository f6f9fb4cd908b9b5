"""The first `vmap`, at the path that programs import it from. https://pytorch.org/docs → torch.vmap"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

from ._tensor import Tensor
from .func.batching import arguments, name_of, result
from .interpret.batching import hidden, level
from .utils._pytree import tree_unflatten

__all__ = ["vmap"]
in_dims_t = out_dims_t = Any


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """Return `torch.vmap(func)`, with PyTorch's warning to use that instead."""
    warnings.warn("Please use torch.vmap instead of torch._vmap_internals.vmap.", FutureWarning, stacklevel=2)
    return _vmap(func, in_dims, out_dims)


def _vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0,
          allow_none_pass_through: bool = False) -> Callable[..., Any]:
    """Return `torch.vmap(func)`, but let func call autograd.Functions that have no `setup_context`.

    func returns tensors, alone or in a tuple; with `allow_none_pass_through` also None, as it is.
    """
    @wraps(func, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def batched(*args: Any) -> Any:
        if not all(isinstance(dim, int) for dim in (out_dims if isinstance(out_dims, tuple) else (out_dims,))):
            raise ValueError(f"vmap({name_of(func)}, ..., out_dims={out_dims}): `out_dims` must be an int or a tuple "
                             "of int representing where in the outputs the vmapped dimension should appear.")
        size, dims, leaves, spec = arguments(func, in_dims, args, negative=False)
        with level(size, first=True) as depth:
            found = func(*tree_unflatten([x if dim is None else hidden(x, dim, depth)
                                          for x, dim in zip(leaves, dims, strict=True)], spec))
            parts, places = _parts(name_of(func), found, out_dims, allow_none_pass_through)
            shown = tuple(None if part is None else result(func, part, place, depth, size)
                          for part, place in zip(parts, places, strict=True))
            return shown if isinstance(found, tuple) else shown[0]
    return batched


def _parts(name: str, found: Any, out_dims: Any, none_passes: bool) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """Return the results as a tuple, and the axis of each; ValueError if they are not tensors, or out_dims not as many.
    """
    parts = found if isinstance(found, tuple) else (found,)
    for i, part in enumerate(parts):
        if not isinstance(part, Tensor) and not (none_passes and part is None):
            where = f"for return {i}" if isinstance(found, tuple) else "as the return"
            raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(part)} {where}.")
    places = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(parts)
    if len(places) != len(parts):
        raise ValueError(f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must have one dim per output (got "
                         f"{len(parts)} outputs) of {name}.")
    return parts, places
