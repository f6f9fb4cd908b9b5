"""Normalisations. https://pytorch.org/docs/stable/nn.functional.html#normalization-functions"""
from __future__ import annotations

from math import prod
from typing import Any

from ... import api as tg
from ..._tensor import Tensor
from ...api._arguments import refuse
from ...api._kinds import Ints, Ints1
from ...core.dispatch import SCALAR_TYPES, xp

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "normalize", "rms_norm"]


def _check_batch(size: Any) -> None:
    if size[0] * prod(size[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
               bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """(x − μ) / √(σ² + ε) · w + b for each channel (axis 1): S. Ioffe, C. Szegedy (2015).

    In training μ and σ² are the batch's, and the running ones are updated; else they are the running ones.

    Input: (N, C, *), floating point; running_mean, running_var, weight w and bias b (C)
    Output: the input's shape and dtype
    Errors: ValueError for one value per channel in training, or eps that is not positive; RuntimeError for tensors of
        another size than C, or without running statistics unless training
    https://pytorch.org/docs → torch.nn.functional.batch_norm

    >>> import tensorgrad as torch
    >>> torch.nn.functional.batch_norm(torch.tensor([[1.], [3.]]), torch.zeros(1), torch.ones(1), training=True, eps=1e-9)
    tensor([[-1.],
            [ 1.]])
    """  # noqa: E501
    if training:
        _check_batch(input.shape)
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
        if (running_mean is None) != (running_var is None):
            raise ValueError("running_mean and running_var must either both be None or neither be None")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return tg.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
                  weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Normalize each channel of each sample separately: D. Ulyanov et al. (2016).

    Input: (N, C, *), floating point; running_mean, running_var, weight and bias (C)
    Output: the input's shape and dtype
    Errors: ValueError for one element per channel with use_input_stats; RuntimeError for tensors of another size than
        C, or without running statistics unless use_input_stats
    https://pytorch.org/docs → torch.nn.functional.instance_norm

    >>> import tensorgrad as torch
    >>> torch.nn.functional.instance_norm(torch.tensor([[[1., 3.], [10., 30.]]]), eps=0.)
    tensor([[[-1.,  1.],
             [-1.,  1.]]])
    """
    if use_input_stats:
        if prod(input.shape[2:]) == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    return tg.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)


def layer_norm(input: Tensor, normalized_shape: Ints, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:
    """(x − μ) / √(σ² + ε) · w + b, with μ and σ² over the last axes.

    Input: (*, S), where S is normalized_shape; weight w and bias b (S)
    Output: the input's shape and dtype
    Errors: RuntimeError if the last sizes are not normalized_shape, this is empty, or w and b have another shape;
        TypeError for a number as normalized_shape; NotImplementedError for integers
    https://pytorch.org/docs → torch.nn.functional.layer_norm

    >>> import tensorgrad as torch
    >>> torch.nn.functional.layer_norm(torch.tensor([[1., 3.], [10., 30.]]), (2,), eps=0.)
    tensor([[-1.,  1.],
            [-1.,  1.]])
    """
    return tg.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(input: Tensor, normalized_shape: Ints, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """x / √(mean x² + ε) · w, with the mean over the last axes.

    ε is the machine epsilon of the dtype unless given.

    Input: (*, S), where S is normalized_shape; weight w (S)
    Output: the input's shape and dtype
    Errors: RuntimeError if the last sizes are not normalized_shape, this is empty, or w has another shape; ValueError
        for less dimensions; TypeError for a number as normalized_shape; NotImplementedError for integers
    https://pytorch.org/docs → torch.nn.functional.rms_norm

    >>> import tensorgrad as torch
    >>> torch.nn.functional.rms_norm(torch.tensor([[1., 7.]]), (2,))
    tensor([[0.2000, 1.4000]])
    """
    return tg.rms_norm(input, normalized_shape, weight, eps)


def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:
    """(x − μ) / √(σ² + ε) · w + b, with μ and σ² over groups of channels.

    Input: (N, C, *); weight w and bias b (C)
    Output: the input's shape and dtype
    Errors: RuntimeError for less than 2 dimensions, C that num_groups does not divide, or w and b of another shape;
        ValueError for one value per group; ZeroDivisionError for 0 groups
    https://pytorch.org/docs → torch.nn.functional.group_norm

    >>> import tensorgrad as torch
    >>> torch.nn.functional.group_norm(torch.tensor([[1., 3., 10., 30.]]), 2, eps=0.)
    tensor([[-1.,  1., -1.,  1.]])
    """
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    samples, channels, *places = input.shape
    _check_batch([samples * channels // num_groups, num_groups, *places])
    return tg.group_norm(input, num_groups, weight, bias, eps)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + α · the mean of x² over `size` neighbouring channels)^β.

    Input: (N, C, *), at least 3 dimensions
    Output: the input's shape; integers give the default floating point dtype
    Errors: ValueError for less than 3 dimensions; RuntimeError for size ≤ 0; TypeError for a size that is no integer
    https://pytorch.org/docs → torch.nn.functional.local_response_norm

    >>> import tensorgrad as torch
    >>> torch.nn.functional.local_response_norm(torch.tensor([[[1.], [2.]]]), 1, alpha=1., beta=1., k=0.)
    tensor([[[1.0000],
             [0.5000]]])
    """
    if input.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {input.ndim} "
                         f"dimensions)")
    if not input.numel():
        return input
    refuse(input, "c", "avg_pool2d" if input.ndim == 3 else "avg_pool3d_out_frame")
    if isinstance(size, (bool, float)):
        raise TypeError("pad(): argument 'pad' must be tuple of ints, but found element of type float")
    if size <= 0:
        raise RuntimeError(f"kernel size should be greater than zero, but got kH: {size} kW: 1")
    flat = (input * input).reshape(input.shape[0], input.shape[1], -1)
    whole = not (flat.is_floating_point() or flat.is_complex())
    if whole and flat.dtype is not tg.int64:
        raise NotImplementedError(f"\"avg_pool2d\" not implemented for '{SCALAR_TYPES[flat.dtype.name]}'")
    mean = xp.window_sum(flat, kernel=(size, 1), stride=(1, 1), widths=((size // 2, (size - 1) // 2), (0, 0)),
                         scale=1 if whole else 1 / size)
    mean = mean // size if whole else mean
    return input / (mean.reshape(input.shape) * alpha + k) ** beta


def normalize(input: Tensor, p: float = 2.0, dim: Ints1 = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """x / max(|x|ₚ, ε), with the norm along an axis.

    Input: (*), floating point or complex
    Output: the input's shape; the norm along dim, one axis or several, is 1
    Errors: IndexError if dim is out of range; RuntimeError for integers and bools
    https://pytorch.org/docs → torch.nn.functional.normalize

    >>> import tensorgrad as torch
    >>> torch.nn.functional.normalize(torch.tensor([[3., 4.]]))
    tensor([[0.6000, 0.8000]])
    """
    return tg.div(input, input.norm(p, dim, keepdim=True).clamp_min(eps), out=out)
