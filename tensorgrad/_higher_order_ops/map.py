"""A function of each element along the first axis."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..api import FUNCTIONS, Tensor
from ..utils import _pytree as pytree


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """Stack `f(x, *args)` for each element x of the tensors along their first axis.

    Input: xs, a tensor or a nested structure of tensors of one length; args, handed on as they are
    Output: the structure that f returns, of stacked tensors
    Errors: RuntimeError for other things than tensors, for unlike lengths and for no elements
    https://pytorch.org/docs → torch._higher_order_ops.map

    >>> import tensorgrad as torch
    >>> from tensorgrad._higher_order_ops import map
    >>> map(lambda row, shift: row.sum() + shift, torch.tensor([[1., 2.], [3., 4.]]), 10)
    tensor([13., 17.])
    """
    leaves, spec = pytree.tree_flatten(xs)
    if not leaves or not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    shapes = [leaf.shape for leaf in leaves]
    if any(not shape or shape[0] != shapes[0][0] for shape in shapes):
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got shapes {shapes}.")
    if not shapes[0][0]:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    return stacked([f(pytree.tree_unflatten([leaf[i] for leaf in leaves], spec), *args) for i in range(shapes[0][0])])


def stacked(results: list[Any]) -> Any:
    """Stack structures of tensors, leaf by leaf, along a new first axis."""
    rows, specs = zip(*[pytree.tree_flatten(result) for result in results])
    return pytree.tree_unflatten([None if column[0] is None else FUNCTIONS["stack"](column) for column in zip(*rows)],
                                 specs[0])


def unstacked(structure: Any) -> list[Any]:
    """Return the structures of the elements of all leaves along their first axis: the inverse of `stacked`."""
    leaves, spec = pytree.tree_flatten(structure)
    if not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise RuntimeError(f"Leaves of xs must be Tensor {leaves}")
    if any(leaf.shape[0] != leaves[0].shape[0] for leaf in leaves):
        raise RuntimeError(f"Leaves of xs must have same leading dimension size {[leaf.shape for leaf in leaves]}")
    return [pytree.tree_unflatten(list(row), spec) for row in zip(*leaves, strict=True)]


_stack_pytree, _unstack_pytree = stacked, unstacked
