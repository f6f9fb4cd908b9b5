"""A loop over an axis that carries values from each element to the next."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..api import FUNCTIONS
from ..utils import _pytree as pytree
from .map import stacked


def scan(combine_fn: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, *, dim: int = 0,
         reverse: bool = False) -> tuple[Any, Any]:
    """Run `carry, y = combine_fn(carry, x)` for each slice x of the tensors along an axis.

    Input: init, the first carry; xs, a tensor or a nested structure of tensors of one length along dim
    Output: (the last carry, the ys stacked along a new first axis); with `reverse`, from the last slice to the first,
        the ys in the order of the slices
    Errors: RuntimeError if combine_fn cannot be called, for no tensors, and for unlike lengths; IndexError for dim
    https://pytorch.org/docs → torch._higher_order_ops.scan

    >>> import tensorgrad as torch
    >>> from tensorgrad._higher_order_ops import scan
    >>> scan(lambda total, x: (total + x, total * x), torch.tensor(0.), torch.tensor([1., 2., 3.]))
    (tensor(6.), tensor([0., 2., 9.]))
    """
    leaves, spec = pytree.tree_flatten(xs)
    if not leaves:
        raise RuntimeError("Expected at least 1 xs leaf")
    moved = [FUNCTIONS["movedim"](leaf, dim, 0) for leaf in leaves]
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if any(len(leaf) != len(moved[0]) for leaf in moved):
        raise RuntimeError("All xs leaves must have the same size of dimension dim")
    order, carry, results = range(len(moved[0])), init, {}
    if not order:
        raise RuntimeError("All xs leaves must at least have 1 element along dim")
    for i in reversed(order) if reverse else order:
        carry, results[i] = combine_fn(carry, pytree.tree_unflatten([leaf[i] for leaf in moved], spec))
    return carry, stacked([results[i] for i in order])
