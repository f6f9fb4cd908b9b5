"""Looking at tensors inside transforms, and at functions without their writes in place.

https://pytorch.org/docs/stable/func.api.html
"""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from .._tensor import Tensor
from ..core.mode import mode
from ..interpret.batching import shown
from ..utils._pytree import tree_map_only


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
    """The batch that vmap hides in a tensor, in front: for a look in the middle of a function.

    https://pytorch.org/docs → torch.func.debug_unwrap

    >>> import tensorgrad as torch
    >>> def show(x):
    ...     print(torch.func.debug_unwrap(x))
    ...     return x
    >>> _ = torch.vmap(show)(torch.arange(3))
    tensor([0, 1, 2])
    """
    while depth := type(tensor._storage).rank:
        tensor = shown(tensor, 0, depth, tensor.array.hidden[-1])
        if not recurse:
            break
    return tensor


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """`func`, which may write to its arguments, as a function that computes everything on copies and writes at the end.
    https://pytorch.org/docs → torch.func.functionalize

    >>> import tensorgrad as torch
    >>> x = torch.zeros(2)
    >>> torch.func.functionalize(lambda x: x.add_(1) * 2)(x), x
    (tensor([2., 2.]), tensor([1., 1.]))
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program, and replaced "
            "with their out-of-place equivalents.\n"
            "     remove='mutations_and_views': In addition to the above, all aliasing operators {view} will be "
            "replaced with their non-aliasing counterparts, {view}_copy.\n")

    @wraps(func, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def functional(*args: Any, **kwargs: Any) -> Any:
        copies: dict[int, tuple[Any, Any, int]] = {}

        def copied(x: Any) -> Any:
            if id(x) not in copies:
                copy = x.clone()
                copies[id(x)] = x, copy, copy._version
            return copies[id(x)][1]
        args, kwargs = tree_map_only(Tensor, copied, (args, kwargs))
        mode.transforms += 1
        try:
            results = func(*args, **kwargs)
        finally:
            mode.transforms -= 1
        originals = {}
        for x, copy, version in copies.values():
            originals[id(copy)] = x
            if copy._version != version:
                x.copy_(copy)
        return tree_map_only(Tensor, lambda y: originals.get(id(y), y), results)
    return functional
