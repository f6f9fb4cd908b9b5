"""Functions of PyTorch's engine that tests use: one whose backward fails, and one that hands on no gradient."""
from __future__ import annotations

from typing import Any

from ..autograd.function import Function
from ..autograd.graph import Node
from ..core.tape import Leaf
from ..core.undefined import Error, failing

AccumulateGrad = Leaf


@Node.register
class DelayedError:
    """A function that returns its tensors, and whose backward raises RuntimeError with a message."""

    def __init__(self, msg: str, num_inputs: int) -> None:
        self.msg, self.num_inputs = msg, num_inputs

    def __call__(self, *tensors: Any) -> Any:
        outputs = failing(self.msg, *tensors)
        return outputs[0] if len(outputs) == 1 else outputs


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
