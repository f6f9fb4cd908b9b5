"""Functions of PyTorch's engine that tests use: one whose backward fails, and one that hands on no gradient."""
from __future__ import annotations

from typing import Any

from ..autograd.function import Function
from ..core.tape import Leaf

AccumulateGrad = Leaf


class Error(Function):
    """Return the input; backward raises RuntimeError."""

    @staticmethod
    def forward(ctx: Any, message: str, *inputs: Any) -> Any:
        ctx.message = message
        outputs = tuple(x.view_as(x) for x in inputs)
        return outputs[0] if len(outputs) == 1 else outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise RuntimeError(ctx.message)


class DelayedError:
    """A function that returns its tensors, and whose backward raises RuntimeError with a message."""

    def __init__(self, msg: str, num_inputs: int) -> None:
        self.msg, self.num_inputs = msg, num_inputs

    def __call__(self, *tensors: Any) -> Any:
        return Error.apply(self.msg, *tensors)


class _Undefined(Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        outputs = tuple(x.view_as(x) for x in inputs)
        return outputs[0] if len(outputs) == 1 else outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None,) * len(gradients)


class UndefinedGrad:
    """A function that returns its tensors, and hands on no gradient."""

    def __call__(self, *tensors: Any) -> Any:
        return _Undefined.apply(*tensors)


__all__ = ["AccumulateGrad", "DelayedError", "Error", "UndefinedGrad"]
