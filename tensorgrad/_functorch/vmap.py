"""vmap, and its parts that programs use. https://pytorch.org/docs → torch.vmap"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from ..func import vmap
from ..interpret.batch_views import axis_of
from ..interpret.batching import hidden, level, shown
from ..utils._pytree import broadcast_prefix, tree_flatten, tree_unflatten

__all__ = ["restore_vmap", "vmap"]
in_dims_t = out_dims_t = Any


def restore_vmap(func: Callable[..., Any], in_dims: Any, batch_size: int, randomness: str
                 ) -> Callable[..., tuple[Any, Any]]:
    """Return a function that runs `func` in a vmap over a batch of a given size, and returns (results, their axes).

    Results may be of any type; the axis of one that does not depend on the batch is None.

    >>> import tensorgrad as torch
    >>> restore_vmap(lambda x, y: (x * y, y), (0, None), 2, "error")(torch.ones(2), torch.ones(3))[1]
    (0, None)
    """
    def inner(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        leaves, spec = tree_flatten(args)
        dims = broadcast_prefix(in_dims, spec)
        if dims is None:
            raise AssertionError("flat_bdims must not be None")
        with level(batch_size, randomness) as depth:
            args = tree_unflatten([x if dim is None else hidden(x, dim % x.dim(), depth)
                                   for x, dim in zip(leaves, dims, strict=True)], spec)
            found, spec = tree_flatten(func(*args, **kwargs))
            places = [axis_of(x) if isinstance(x, Tensor) and type(x._storage).rank == depth else None
                      for x in found]
            results = [x if place is None else shown(x, place, depth, batch_size)
                       for x, place in zip(found, places, strict=True)]
        return tree_unflatten(results, spec), tree_unflatten(places, spec)
    return inner
