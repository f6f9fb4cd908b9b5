"""Linear and bilinear maps of the last axis, and the map that changes nothing."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ... import api as tg
from .. import functional as F
from .. import init
from .lazy import LazyModuleMixin, declare_later
from .module import Module
from .utils import declare, named, reset_by_fan_in

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ...api._kinds import Device, Dtype

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """The input, unchanged (torch.nn.Identity): a placeholder that takes any arguments.

    Parameters:
        args, kwargs: anything: ignored
    Input: (*)
    Output: (*)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Identity(54, unused=True)(torch.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """An affine map of the last axis (torch.nn.Linear).

    `x @ weight.T + bias`, both drawn from U(-k, k) with k = 1/sqrt(in_features).

    Parameters:
        in_features: int: required
        out_features: int: required
        bias: bool: True, add a bias
        device, dtype: None: the device and dtype of the weights
    Input: (*, in_features)
    Output: (*, out_features)
    Weights: weight (out_features, in_features), bias (out_features)

    >>> import tensorgrad as torch
    >>> torch.nn.Linear(20, 30)(torch.ones(128, 20)).shape
    torch.Size([128, 30])
    """

    __constants__ = ["in_features", "out_features"]

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Device | None = None,
                 dtype: Dtype | None = None) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        declare(self, device, dtype, weight=(out_features, in_features), bias=(out_features,) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        reset_by_fan_in(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{named(self, 'in_features', 'out_features')}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """The output projection of `MultiheadAttention`: a `Linear` under the name that PyTorch prints."""


class Bilinear(Module):
    """A bilinear form of two inputs (torch.nn.Bilinear).

    `y[k] = x1 @ weight[k] @ x2 + bias[k]`, both drawn from U(-k, k) with k = 1/sqrt(in1_features).

    Parameters:
        in1_features: int: required, at least 1
        in2_features: int: required
        out_features: int: required
        bias: bool: True, add a bias
        device, dtype: None: the device and dtype of the weights
    Input: (*, in1_features), (*, in2_features)
    Output: (*, out_features)
    Weights: weight (out_features, in1_features, in2_features), bias (out_features)

    >>> import tensorgrad as torch
    >>> torch.nn.Bilinear(20, 30, 40)(torch.ones(128, 20), torch.ones(128, 30)).shape
    torch.Size([128, 40])
    """

    __constants__ = ["in1_features", "in2_features", "out_features"]

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True,
                 device: Device | None = None, dtype: Dtype | None = None) -> None:
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        declare(self, device, dtype, weight=(out_features, in1_features, in2_features),
                bias=(out_features,) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={self.in1_features})")
        bound = 1 / math.sqrt(self.in1_features)
        for parameter in self.parameters(recurse=False):
            init.uniform_(parameter, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{named(self, *self.__constants__)}, bias={self.bias is not None}"


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` that reads `in_features` off its first input (torch.nn.LazyLinear), and then is one.

    Parameters:
        out_features: int: required
        bias: bool: True, add a bias
        device, dtype: None: the device and dtype of the weights
    Input: (*, in_features)
    Output: (*, out_features)
    Weights: weight (out_features, in_features), bias (out_features), once known

    >>> import tensorgrad as torch
    >>> layer = torch.nn.LazyLinear(30)
    >>> layer(torch.ones(128, 20)).shape, type(layer).__name__
    (torch.Size([128, 30]), 'Linear')
    """

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Device | None = None,
                 dtype: Dtype | None = None) -> None:
        super().__init__(0, 0, False)
        self.out_features = out_features
        declare_later(self, device, dtype, "weight", *(["bias"] if bias else []))

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        width = input.shape[-1]
        if self.has_uninitialized_params():
            with tg.no_grad():
                self.in_features = width
                self.weight.materialize((self.out_features, width))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:  # the weights came with a state_dict
            if width != self.weight.shape[-1]:
                raise AssertionError(f"The in_features inferred from input: {width} is not equal to in_features "
                                     f"from self.weight: {self.weight.shape[-1]}")
            self.in_features = width
