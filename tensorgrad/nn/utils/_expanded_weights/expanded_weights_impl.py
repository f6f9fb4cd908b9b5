"""The class of weights with a gradient for each example, and the table of functions that take them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import api as tg

# {function: an autograd.Function, applied to (names of keywords, function, arguments …)}
HANDLED_FUNCTIONS: dict[Any, Any] = {}


def implements_per_sample_grads(torch_function: Any) -> Callable[[Any], Any]:
    """A decorator: the class computes this function of ExpandedWeights."""
    def decorator(autograd_func: Any) -> Any:
        HANDLED_FUNCTIONS[torch_function] = autograd_func
        return autograd_func
    return decorator


class ExpandedWeight(tg.Tensor):
    """A weight whose backward writes `orig_weight.grad_sample`: the gradient of each example, (batch, *weight.shape).

    Functions that are not in the table, whose batch axis is unknown, refuse it with RuntimeError.
    """

    handled_functions = HANDLED_FUNCTIONS

    def __new__(cls, orig_weight: Any, batch_size: int, loss_reduction: str) -> Any:
        if not isinstance(orig_weight, tg.Tensor):
            raise RuntimeError(f"Can only make Expanded Weights of Tensors, got {type(orig_weight).__name__}")
        if not orig_weight.requires_grad:
            raise RuntimeError("Can only build ExpandedWeights objects of tensors that requires_grad")
        return tg.Tensor._make_subclass(cls, orig_weight, True)

    def __init__(self, orig_weight: Any, batch_size: int, loss_reduction: str) -> None:
        self.orig_weight, self.batch_size, self.loss_reduction = orig_weight, batch_size, loss_reduction
        self.batch_first, self.allow_smaller_batches = True, False

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in cls.handled_functions:
            raise RuntimeError(f"Expanded Weights encountered but cannot handle function {func.__name__}")
        kwargs = kwargs or {}
        return cls.handled_functions[func].apply(tuple(kwargs), func, *args, *kwargs.values())

    def set_batch_first(self, is_batch_first: bool = True) -> None:
        """Say that the batch is the first axis of the input, or else the second."""
        self.batch_first = is_batch_first

    # modules read these before they call a function
    dtype = property(lambda self: self.orig_weight.dtype)
    device = property(lambda self: self.orig_weight.device)
    shape = property(lambda self: self.orig_weight.shape)
