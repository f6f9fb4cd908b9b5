"""Normalization within each sample: over trailing axes, over groups of channels, over neighbouring channels."""
from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

from ... import api as tg
from ...autograd.function import Function
from .. import functional as F
from .. import init
from .module import Module
from .utils import Functional, declare, named, settings

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ...api._kinds import Device, Dtype

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class _Affine(Module):
    """A scale `weight` that starts at one and a shift `bias` that starts at zero, each if wanted."""

    def _declare_affine(self, shape, affine, bias, device, dtype):
        declare(self, device, dtype, weight=shape if affine else None, bias=shape if affine and bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


def _shape(normalized_shape):
    return (normalized_shape,) if isinstance(normalized_shape, Integral) else tuple(normalized_shape)


class LayerNorm(_Affine):
    """Trailing axes with mean 0 and variance 1 (torch.nn.LayerNorm).

    `(x - mean) / sqrt(var + eps) * weight + bias`, mean and (biased) variance being taken over `normalized_shape`.

    Parameters:
        normalized_shape: int or tuple: required, the trailing axes
        eps: float: 1e-05
        elementwise_affine: bool: True, learn a scale
        bias: bool: True, and learn a shift
        device, dtype: None: the device and dtype of the weights
    Input: (N, *, *normalized_shape)
    Output: the input's shape
    Weights: weight and bias, normalized_shape both

    >>> import tensorgrad as torch
    >>> torch.nn.LayerNorm(2)(torch.tensor([[1.0, 3.0]])).detach()
    tensor([[-1.0000,  1.0000]])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
                 device: Device | None = None, dtype: Dtype | None = None) -> None:
        super().__init__()
        self.normalized_shape, self.eps = _shape(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        self._declare_affine(self.normalized_shape, elementwise_affine, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, {named(self, 'eps', 'elementwise_affine')}, bias={self.bias is not None}"


class GroupNorm(_Affine):
    """Groups of channels with mean 0 and variance 1 in each sample (torch.nn.GroupNorm).

    `(x - mean) / sqrt(var + eps) * weight + bias`; one group is a layer norm, one channel a group an instance norm.

    Parameters:
        num_groups: int: required
        num_channels: int: required, a multiple of num_groups
        eps: float: 1e-05
        affine: bool: True, learn a scale per channel
        device, dtype: None: the device and dtype of the weights
        bias: bool: True, and learn a shift (by keyword only)
    Input: (N, num_channels, *)
    Output: the input's shape
    Weights: weight and bias (num_channels)

    >>> import tensorgrad as torch
    >>> torch.nn.GroupNorm(3, 6)(torch.ones(20, 6, 10, 10)).shape
    torch.Size([20, 6, 10, 10])
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
                 device: Device | None = None, dtype: Dtype | None = None, *, bias: bool = True) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._declare_affine((num_channels,), affine, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (f"{self.num_groups}, {self.num_channels}, {named(self, 'eps', 'affine')}, "
                f"bias={self.bias is not None}")


class RMSNorm(Module):
    """Trailing axes with root mean square 1 (torch.nn.RMSNorm).

    `x / sqrt(mean(x**2) + eps) * weight`, the mean being taken over `normalized_shape`.

    Parameters:
        normalized_shape: int or tuple: required, the trailing axes
        eps: float: None, the smallest step at 1 of the input's dtype
        elementwise_affine: bool: True, learn a scale
        device, dtype: None: the device and dtype of the weights
    Input: (N, *, *normalized_shape)
    Output: the input's shape
    Weights: weight, normalized_shape

    >>> import tensorgrad as torch
    >>> torch.nn.RMSNorm(2)(torch.tensor([[1.0, 7.0]])).detach()
    tensor([[0.2000, 1.4000]])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True,
                 device: Device | None = None, dtype: Dtype | None = None) -> None:
        super().__init__()
        self.normalized_shape, self.eps = _shape(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        declare(self, device, dtype, weight=self.normalized_shape if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, {named(self, 'eps', 'elementwise_affine')}"


class LocalResponseNorm(Functional):
    """Each channel, damped by its neighbours (torch.nn.LocalResponseNorm).

    `x / (k + alpha * mean(x**2)) ** beta`, the mean being taken over `size` neighbouring channels.

    Parameters:
        size: int: required
        alpha: float: 0.0001
        beta: float: 0.75
        k: float: 1.0
    Input: (N, C, *)
    Output: the input's shape
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.LocalResponseNorm(2)(torch.ones(32, 5, 24, 24)).shape
    torch.Size([32, 5, 24, 24])
    """

    __init__ = settings("size", alpha=1e-4, beta=0.75, k=1.0)

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, {named(self, 'alpha', 'beta', 'k')}"


class CrossMapLRN2d(LocalResponseNorm):
    """The local response norm of Torch7, over images (torch.nn.CrossMapLRN2d).

    As LocalResponseNorm, but with the windows of PyTorch's class of this name: in the forward direction they have an
    odd size and always hold channel 0, and backward they reach further down than up.

    Parameters:
        size: int: required
        alpha: float: 0.0001
        beta: float: 0.75
        k: float: 1
    Input: (N, C, H, W)
    Output: (N, C, H, W)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.CrossMapLRN2d(3)(torch.ones(2, 5, 4, 4)).shape
    torch.Size([2, 5, 4, 4])
    """

    __init__ = settings("size", alpha=1e-4, beta=0.75, k=1)

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        return _CrossMapLRN.apply(input, self.size, self.alpha, self.beta, self.k)


class _CrossMapLRN(Function):
    """Sums over channels as products with a 0/1 matrix, whose entry (c, d) says whether window c holds channel d."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, size: Any, alpha: Any, beta: Any, k: Any) -> Tensor:
        reach = (size - 1) // 2
        offset = _CrossMapLRN.offsets(input)
        near = (offset.abs() <= reach) | (tg.arange(len(offset), device=input.device) == 0)
        scale = k + alpha / size * _CrossMapLRN.sums(near, input * input)
        output = input * scale**-beta
        ctx.save_for_backward(input, scale, output)
        ctx.settings = size, alpha, beta
        return output

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        input, scale, output = ctx.saved_tensors
        size, alpha, beta = ctx.settings
        offset, down = _CrossMapLRN.offsets(input), int(size - (size - 1) / 2)
        near = (offset >= -down) & (offset < size - down)
        shared = _CrossMapLRN.sums(near, grad * output / scale)
        return grad * scale**-beta - 2 * alpha * beta / size * input * shared, None, None, None, None

    @staticmethod
    def offsets(input: Tensor) -> Any:
        channel = tg.arange(input.size(1), device=input.device)
        return channel - channel.unsqueeze(1)

    @staticmethod
    def sums(near: Any, values: Any) -> Any:
        return (near.to(values.dtype) @ values.flatten(2)).view(values.shape)
