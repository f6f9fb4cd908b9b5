"""The running combination of the elements along an axis, in a logarithmic number of steps."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..api import FUNCTIONS
from ..func import vmap
from ..utils import _pytree as pytree

Leaves = list[Any]


def associative_scan(combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False,
                     combine_mode: str = "pointwise") -> Any:
    """Combine all elements up to each one along an axis: x₀, x₀ ∘ x₁, x₀ ∘ x₁ ∘ x₂, …, for an associative ∘.

    Input: combine_fn, the ∘ of two structures like xs, whose tensors are slices without the axis; xs, a tensor or a
        nested structure of tensors of one length along dim; reverse, to combine from the end
    Output: as xs
    Errors: ValueError for another combine_mode, for 'pointwise' on the CPU, as in PyTorch, and if combine_fn changes
        the structure; IndexError for dim
    https://pytorch.org/docs → torch._higher_order_ops.associative_scan

    >>> import tensorgrad as torch
    >>> from tensorgrad._higher_order_ops import associative_scan
    >>> associative_scan(lambda a, b: a * b, torch.tensor([1., 2., 3., 4.]), dim=0, combine_mode="generic")
    tensor([ 1.,  2.,  6., 24.])
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, spec = pytree.tree_flatten(xs)
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    if combine_mode == "pointwise" and any(leaf.device.type == "cpu" for leaf in leaves):
        raise ValueError("For combine_mode='pointwise', all input tensors need to be on CUDA or XPU")
    moved = [FUNCTIONS["movedim"](leaf, dim, 0) for leaf in leaves]
    if any(len(leaf) != len(moved[0]) for leaf in moved):
        raise ValueError("All xs leaves must have the same size of dimension dim")
    combine = vmap(combine_fn)

    def combined(left: Leaves, right: Leaves) -> Leaves:
        made, kind = pytree.tree_flatten(combine(pytree.tree_unflatten(left, spec), pytree.tree_unflatten(right, spec)))
        if kind != spec:
            raise ValueError("The pytree of the output of the operator needs to match the xs pytree")
        return made
    if reverse:
        moved = [leaf.flip(0) for leaf in moved]
    result = _scanned(combined, moved)
    if reverse:
        result = [leaf.flip(0) for leaf in result]
    return pytree.tree_unflatten([FUNCTIONS["movedim"](leaf, 0, dim) for leaf in result], spec)


def _scanned(combined: Callable[[Leaves, Leaves], Leaves], xs: Leaves) -> Leaves:
    """Scan along the first axis: combine neighbours, scan these pairs, and fill the places between."""
    n = len(xs[0])
    if n < 2:
        return xs
    odd = _scanned(combined, combined([x[:-1:2] for x in xs], [x[1::2] for x in xs]))
    first = [x[:1] for x in xs]
    if n == 2:
        return [FUNCTIONS["cat"](pair) for pair in zip(first, odd)]
    rest = combined([x[:(n - 1) // 2] for x in odd], [x[2::2] for x in xs])
    even = [FUNCTIONS["cat"](pair) for pair in zip(first, rest)]
    return [_interleaved(a, b) for a, b in zip(even, odd)]


def _interleaved(even: Any, odd: Any) -> Any:
    pairs = FUNCTIONS["stack"]([even[:len(odd)], odd], 1).flatten(0, 1)
    return FUNCTIONS["cat"]([pairs, even[len(odd):]])
