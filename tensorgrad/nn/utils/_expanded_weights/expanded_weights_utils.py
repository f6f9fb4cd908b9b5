"""Checks of calls that take ExpandedWeights, and where their gradients go."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import api as tg
from .expanded_weights_impl import ExpandedWeight


def standard_kwargs(kwarg_names: Any, expanded_args: Any) -> tuple[Any, dict[str, Any]]:
    """Return positional and keyword arguments; the last values of `expanded_args` belong to the names."""
    first = len(expanded_args) - len(kwarg_names)
    return expanded_args[:first], dict(zip(kwarg_names, expanded_args[first:], strict=True))


def forward_helper(func: Any, expanded_args: Any, expanded_kwargs: Any) -> Any:
    """Check the batch of the input, the first argument, and call the function with the original weights."""
    input, given = expanded_args[0], (*expanded_args, *expanded_kwargs.values())
    if isinstance(input, ExpandedWeight):
        raise RuntimeError("Expanded Weights do not support inputs that are also ExpandedWeights. Input must be a "
                           f"Tensor, got {type(input).__name__} in function {func.__name__}")
    if not isinstance(input, tg.Tensor):
        raise RuntimeError("Expanded Weights requires a Tensor as the first input to get the batch dimension, got "
                           f"{type(input).__name__} in function {func.__name__}")
    if not input.dim():
        raise RuntimeError("Expanded Weights requires a batch dimension but got an input of size 0 in function "
                           f"{func.__name__}")
    if not input.shape[0]:
        raise RuntimeError(f"0 is not a valid batch size for Expanded Weights but got input tensor of {input} in "
                           f"function {func.__name__}")
    weights = [arg for arg in given if isinstance(arg, ExpandedWeight)]
    for weight in weights:
        batch = input.shape[0 if weight.batch_first else 1]
        if batch > weight.batch_size or batch < weight.batch_size and not weight.allow_smaller_batches:
            raise RuntimeError(f"Expected ExpandedWeights to have batch size matching input but got input batch size "
                               f"of {batch} with ExpandedWeight of batch size {weight.batch_size}")
    for weight in weights:
        if weight.loss_reduction != weights[0].loss_reduction:
            raise RuntimeError("Expected ExpandedWeights to all have the same loss_reduction argument but got onewith "
                               f"{weights[0].loss_reduction} and one with {weight.loss_reduction}")
    return func(*map(_original, expanded_args), **{name: _original(arg) for name, arg in expanded_kwargs.items()})


def _original(arg: Any) -> Any:
    return arg.orig_weight if isinstance(arg, ExpandedWeight) else arg


def unpack_expanded_weight_or_tensor(maybe_expanded_weight: Any, func: Callable[[Any], Any] = lambda x: x) -> Any:
    """Return func(the original weight), or func of a tensor that needs no gradient, or None for other objects."""
    if not isinstance(maybe_expanded_weight, tg.Tensor):
        return None
    if not isinstance(maybe_expanded_weight, ExpandedWeight) and maybe_expanded_weight.requires_grad:
        raise RuntimeError("ExpandedWeights currently does not support a mixture of ExpandedWeight parameters and "
                           "normal Parameters. Please file and issue with pytorch/pytorch")
    return func(_original(maybe_expanded_weight))


def set_grad_sample_if_exists(maybe_expanded_weight: Any, per_sample_grad_fn: Callable[[Any], Any]) -> None:
    """Add the gradients of the examples, (batch, *weight.shape), to `grad_sample` of the original weight."""
    weight = unpack_expanded_weight_or_tensor(maybe_expanded_weight)
    if not isinstance(maybe_expanded_weight, ExpandedWeight):
        return
    grads, batch = per_sample_grad_fn(weight), maybe_expanded_weight.batch_size
    if maybe_expanded_weight.loss_reduction == "mean":      # undo the division of the loss by the batch size
        grads = grads * batch
    if len(grads) < batch:
        grads = tg.cat([grads, grads.new_zeros(batch - len(grads), *grads.shape[1:])])
    before = getattr(weight, "grad_sample", None)
    weight.grad_sample = grads if before is None else before + grads


def sum_over_all_but_batch_and_last_n(tensor: Any, n_dims: int) -> Any:
    """Sum over all axes but the first and the last `n_dims`."""
    dims = list(range(1, tensor.dim() - n_dims))
    return tensor.sum(dim=dims) if dims else tensor
