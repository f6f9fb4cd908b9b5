"""A view of another shape, and a cast, as Functions."""
from __future__ import annotations

import warnings
from math import prod
from typing import Any

from ..function import Function


class Resize(Function):
    """The tensor in another shape of as many elements.

    Errors: RuntimeError for another number of elements
    """

    @staticmethod
    def forward(ctx: Any, tensor: Any, sizes: Any) -> Any:
        count = prod(sizes)
        if tensor.numel() != count:
            raise RuntimeError(f"requested resize to {'x'.join(map(str, sizes))} ({count} elements in total), but the "
                               f"given tensor has a size of {'x'.join(map(str, tensor.shape))} ({tensor.numel()} "
                               "elements). autograd's resize can only change the shape of a given tensor, while "
                               "preserving the number of elements. ")
        ctx.shape = tensor.shape
        return tensor.contiguous().view(*sizes)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output.contiguous().view(ctx.shape), None


class Type(Function):
    """The tensor in another dtype; deprecated, as in PyTorch: `x.to(dtype)` does it."""

    @staticmethod
    def forward(ctx: Any, i: Any, dest_type: Any) -> Any:
        warnings.warn("`torch.autograd._functions.Type` is deprecated as of PyTorch 2.1, please use "
                      "`torch.tensor.to(dtype=dtype)` instead.", FutureWarning, stacklevel=2)
        ctx.dtype = i.dtype
        return i.type(dest_type)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output.to(ctx.dtype), None
