"""Batch normalization in evaluation mode is affine, so it can be merged into the linear layer or convolution before it.

    (W x + b - mean) / √(var + eps) · weight + bias  =  (scale · W) x + scale · (b - mean) + bias,
    with scale = weight / √(var + eps)
"""
from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from ... import api as tg
from ..parameter import Parameter

if TYPE_CHECKING:
    from ..._tensor import Tensor

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return a convolution equivalent to `bn(conv(x))`, both in evaluation mode.

    >>> import tensorgrad as torch
    >>> conv, bn = torch.nn.Conv2d(1, 2, 3).eval(), torch.nn.BatchNorm2d(2).eval()
    >>> fused, x = torch.nn.utils.fuse_conv_bn_eval(conv, bn), torch.ones(1, 1, 3, 3)
    >>> torch.allclose(fused(x), bn(conv(x)), atol=1e-6)
    True
    """
    _check_evaluating(conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose)
    return fused


def fuse_conv_bn_weights(conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float,
                         bn_w: Tensor | None, bn_b: Tensor | None,
                         transpose: bool = False) -> tuple[Parameter, Parameter]:
    """Return weight and bias of the fused convolution.

    `transpose` is for transposed convolutions, whose output channels are dim 1.
    """
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    return _fuse(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Return a linear layer equivalent to `bn(linear(x))`, both in evaluation mode."""
    _check_evaluating(linear, bn)
    if bn.num_features not in (1, linear.out_features):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}")
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    return fused


def fuse_linear_bn_weights(linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float,
                           bn_w: Tensor, bn_b: Tensor) -> tuple[Parameter, Parameter]:
    """Return weight and bias of the fused linear layer."""
    return _fuse(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, (-1, 1))


def _fuse(weight, bias, mean, var, eps, bn_weight, bn_bias, shape):
    old_bias = tg.zeros_like(mean) if bias is None else bias
    scale = tg.rsqrt(var + eps)
    if bn_weight is not None:
        scale = scale * bn_weight
    new_bias = (old_bias - mean) * scale
    if bn_bias is not None:
        new_bias = new_bias + bn_bias
    new_weight = (weight * scale.reshape(shape)).to(weight.dtype)
    new_bias = new_bias.to(weight.dtype if bias is None else bias.dtype)
    return Parameter(new_weight, weight.requires_grad), Parameter(new_bias, old_bias.requires_grad)


def _check_evaluating(layer, bn):
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
