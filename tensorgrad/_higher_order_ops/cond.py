"""A choice between two functions."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..api import Tensor, where
from ..api._arguments import is_batched
from ..utils._pytree import tree_flatten, tree_unflatten
from .recording import recorded_cond, records


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """Call `true_fn(*operands)` if the condition holds, else `false_fn(*operands)`.

    In programs that `torch.export` or `make_fx` records, a choice on values of the inputs is a step with two graphs.

    Inside vmap each example takes its branch: both are computed.

    Input: pred, a bool, number or tensor of one element
    Output: what the function returns
    Errors: RuntimeError if pred has several elements
    https://pytorch.org/docs → torch.cond

    >>> import tensorgrad as torch
    >>> x = torch.tensor([3., 4.])
    >>> torch.cond(x.sum() > 5, lambda x: x * 2, lambda x: x - 1, (x,))
    tensor([6., 8.])
    """
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if isinstance(pred, Tensor) and is_batched(pred):
        (first, spec), (other, _) = (tree_flatten(branch(*operands)) for branch in (true_fn, false_fn))
        return tree_unflatten([where(pred, a, b) for a, b in zip(first, other, strict=True)], spec)
    if isinstance(pred, Tensor) and records(pred):
        return recorded_cond(pred, true_fn, false_fn, operands)
    return true_fn(*operands) if pred else false_fn(*operands)
