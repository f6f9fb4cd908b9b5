"""Normalisations. https://pytorch.org/docs/stable/nn.functional.html#normalization-functions"""
from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ..advice import misfit
from ..core import inplace
from ..core.dispatch import SCALAR_TYPES, xp
from ..core.mode import mode
from ..core.step import widened
from ..core.tape import node_of
from ..dtype import complex32, finfo, float32, promote_types
from ..size import towards_zero
from ._arguments import in_dtype
from ._kinds import Ints
from ._register import public


def _check_count(t: Any, count: int, name: str) -> None:
    if t is not None and t.array.size != count:
        raise misfit(f"{name} should contain {count} elements not {t.array.size}")


def _check_dtypes(input: Any, *parameters: Any) -> None:
    """RuntimeError unless the parameters have the input's dtype; beside inputs of 16 bits, all of them may have 32."""
    dtype, given = input.array.dtype, [p for p in parameters if p is not None]
    if not given or all(p.array.dtype is dtype for p in given):
        return
    if given[0].array.dtype != dtype:
        if any(p.array.dtype != float32.numpy for p in given):
            raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
        if dtype.itemsize != 2:
            raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")
        return
    for p in given:
        if p.array.dtype != dtype:
            raise RuntimeError(f"expected scalar type {SCALAR_TYPES[input.dtype.name]} but found "
                               f"{SCALAR_TYPES[p.dtype.name]}")


# ── over the batch ────────────────────────────────────────────────────────────────────────────────────────────────────


@public(method=False)
def batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
               running_var: Tensor | None, training: bool, momentum: float, eps: float, cudnn_enabled: bool) -> Tensor:
    """(x − μ) / √(σ² + ε) · w + b for each channel (axis 1).

    In training, μ and σ² are the batch's, and the running statistics move towards them; otherwise they are the running
    statistics.

    Input: (N, C, *), floating point; weight w, bias b, running_mean, running_var (C)
    Output: the input's shape and dtype
    Errors: RuntimeError for tensors of another size than C, without running statistics unless training, or for ones
        that require gradients; NotImplementedError for integers
    https://pytorch.org/docs → torch.nn.functional.batch_norm

    >>> import tensorgrad as torch
    >>> torch.batch_norm(torch.tensor([[1.], [3.]]), None, None, None, None, True, 0.1, 0., True)
    tensor([[-1.],
            [ 1.]])
    """
    channels = input.array.shape[1] if input.array.ndim > 1 else 0
    if not input.array.size:
        return _affine_of_nothing(input, weight, bias)
    for t, name in ((running_mean, "running_mean"), (running_var, "running_var")):
        if t is None and not training:
            raise RuntimeError(f"{name} must be defined in evaluation mode")
        _check_count(t, channels, name)
    _check_count(weight, channels, "weight")
    _check_count(bias, channels, "bias")
    for t in (running_mean, running_var):
        if t is not None and t.array.ndim != 1:
            raise RuntimeError(f"TensorAccessor expected 1 dims but tensor has {t.array.ndim}")
    weight, bias = (p if p is None or p.array.ndim == 1 else p.reshape(-1) for p in (weight, bias))
    _check_statistics(running_mean, running_var)
    if input.array.dtype.kind in "fV":
        _check_dtypes(input, weight, bias, running_mean, running_var)
    if not training:
        return _in_the_dtype_of(input, xp.affine_by_channel(input, weight, bias, _off_the_tape(running_mean),
                                                            _off_the_tape(running_var), eps=eps))
    out, mean, variance = xp.native_batch_norm(input, weight, bias, eps=eps)
    if running_mean is not None:
        count = input.array.size // max(channels, 1)
        _move_towards(running_mean, mean.array, momentum)
        _move_towards(running_var, variance.array, momentum, count / (count - 1) if count > 1 else float("nan"))
    return _in_the_dtype_of(input, out)


def _check_statistics(running_mean: Any, running_var: Any) -> None:
    """Raise PyTorch's error for running statistics that require gradients: they cannot have any."""
    for t, name in ((running_mean, "running_mean"), (running_var, "running_var")):
        if t is not None and mode.grad and t.requires_grad:
            raise RuntimeError(f"The function 'native_batch_norm' is not differentiable with respect to argument "
                               f"'{name}'. This input cannot have requires_grad True.")


def _off_the_tape(running: Any) -> Any:
    return running if node_of(running) is None else running.detach()


def _in_the_dtype_of(input: Any, out: Any) -> Any:
    """The result; an input of half precision keeps its dtype beside parameters of float32."""
    return out if out.array.dtype == input.array.dtype else out.to(input.dtype)


def _affine_of_nothing(input: Any, weight: Any, bias: Any) -> Any:
    """An empty batch has no statistics."""
    w, b = (None if t is None else t.reshape(-1, *(1,) * (input.ndim - 2)) if input.ndim > 1 else t
            for t in (weight, bias))
    out = xp.clone(input) if w is None else input * w
    return out if b is None else out + b


def check_room(running: Any, value: Any) -> None:
    """Raise if statistics differ between examples of a vmap, but there is memory for one set only."""
    if getattr(type(value), "depth", 0) > type(running._storage).rank:
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in "
            "place, were not batched.\nIf you are using a module and do not need eval mode, please set "
            "`track_running_stats` to be False.If you are using a prebuilt module and do not need eval mode, please "
            "see the functorch website for resources on how to patch your module to work with vmap")


def _move_towards(running: Any, value: Any, momentum: float, factor: float = 1.0) -> None:
    """running = (1 − momentum) · running + momentum · factor · value, off the tape."""
    check_room(running, value)
    before, value = widened(type(running._storage).xp, [running.array, value])
    inplace.write(running, before * (1 - momentum) + value * factor * momentum)


@public(method=False)
def instance_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                  running_var: Tensor | None, use_input_stats: bool, momentum: float, eps: float,
                  cudnn_enabled: bool) -> Tensor:
    """Each channel of each sample normalised by itself.

    Input: (N, C, *), floating point; weight, bias, running_mean, running_var (C)
    Output: the input's shape and dtype
    Errors: RuntimeError for tensors of another size than C, or without running statistics unless use_input_stats;
        IndexError for less than 2 dimensions
    https://pytorch.org/docs → torch.nn.functional.instance_norm

    >>> import tensorgrad as torch
    >>> torch.instance_norm(torch.tensor([[[1., 3.], [10., 30.]]]), None, None, None, None, True, 0.1, 0., True)
    tensor([[[-1.,  1.],
             [-1.,  1.]]])
    """
    if (running_mean is None or running_var is None) and not use_input_stats:
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    if input.array.ndim < 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    _check_statistics(running_mean, running_var)
    if use_input_stats and (running_mean is None) != (running_var is None):
        if (running_var if running_mean is None else running_mean).array.dtype == input.array.dtype:
            raise ValueError("running_mean and running_var must either both be None or neither be None")
        raise RuntimeError("Expected a proper Tensor but got None (or an undefined Tensor in C++) for argument #0 "
                           "'self'")
    samples, channels = input.shape[:2]
    mean, variance, w, b = (None if t is None else t.repeat(samples) for t in (running_mean, running_var, weight, bias))
    if mean is not None and mean.array.dtype != input.array.dtype and input.array.dtype.itemsize > 2:
        mean, variance = in_dtype(mean, input.dtype), in_dtype(variance, input.dtype)
    as_channels = input.contiguous().reshape(1, samples * channels, *input.shape[2:])
    out = batch_norm(as_channels, w, b, mean, variance, use_input_stats, momentum, eps, cudnn_enabled)
    for running, all_ in ((running_mean, mean), (running_var, variance)):
        if running is not None and use_input_stats:
            check_room(running, all_.array)
            each = widened(type(all_._storage).xp, [all_.array])[0]
            inplace.write(running, each.reshape(samples, channels).mean(axis=0))
    return out.reshape(input.shape)


# ── over each sample ──────────────────────────────────────────────────────────────────────────────────────────────────


def _shape_of(normalized_shape: Any, input: Any, name: str, weight: Any, bias: Any = None,
              star: str = "*, ") -> tuple[int, ...]:
    if not isinstance(normalized_shape, (tuple, list)):
        raise TypeError(f"{name}(): argument 'normalized_shape' (position 2) must be tuple of ints, not "
                        f"{type(normalized_shape).__name__}")
    shape = normalized_shape if type(normalized_shape) is tuple else tuple(normalized_shape)
    if not all(type(n) is int for n in shape):
        shape = tuple(map(towards_zero, shape))
    if not shape:
        raise RuntimeError("Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
                           "element, but got normalized_shape = []")
    for t, what in ((weight, "weight"), (bias, "bias")):
        if t is not None and t.array.shape != shape:
            raise RuntimeError(f"Expected {what} to be of same shape as normalized_shape, but got {what} of shape "
                               f"{list(t.array.shape)} and normalized_shape = {list(shape)}")
    if name == "rms_norm" and len(shape) > input.array.ndim:
        raise ValueError(f"Input tensor must have at least {len(shape)} dimensions, but got {input.array.ndim}")
    if input.array.shape[-len(shape):] != shape:
        raise misfit(f"Given normalized_shape={list(shape)}, expected input with shape "
                           f"[{star}{', '.join(map(str, shape))}], but got input of size{list(input.array.shape)}")
    return shape


@public(method=False)
def layer_norm(input: Tensor, normalized_shape: Ints, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5, cudnn_enable: bool = True) -> Tensor:
    """(x − μ) / √(σ² + ε) · w + b, with μ and σ² over the last axes.

    Input: (*, S), where S is normalized_shape; weight w and bias b (S)
    Output: the input's shape and dtype
    Errors: RuntimeError if the last sizes are not normalized_shape, this is empty, or w and b have another shape;
        TypeError for a number as normalized_shape; NotImplementedError for integers
    https://pytorch.org/docs → torch.nn.functional.layer_norm

    >>> import tensorgrad as torch
    >>> torch.layer_norm(torch.tensor([[1., 3.], [10., 30.]]), (2,), eps=0.)
    tensor([[-1.,  1.],
            [-1.,  1.]])
    """
    shape = _shape_of(normalized_shape, input, "layer_norm", weight, bias)
    if input.array.dtype.itemsize > 1:
        _check_dtypes(input, weight, bias)
    return _in_the_dtype_of(input, xp.native_layer_norm(input, weight, bias, ndim=len(shape), eps=eps))


@public(method=False)
def rms_norm(input: Tensor, normalized_shape: Ints, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """x / √(mean x² + ε) · w, with the mean over the last axes.

    ε is the machine epsilon of the dtype in which it computes, at least float32, unless given.

    Input: (*, S), where S is normalized_shape; weight w (S)
    Output: the input's shape and dtype
    Errors: RuntimeError if the last sizes are not normalized_shape, this is empty, or w has another shape; ValueError
        for less dimensions; TypeError for a number as normalized_shape; NotImplementedError for integers
    https://pytorch.org/docs → torch.nn.functional.rms_norm

    >>> import tensorgrad as torch
    >>> torch.rms_norm(torch.tensor([[1., 7.]]), (2,))
    tensor([[0.2000, 1.4000]])
    """
    ndim = len(_shape_of(normalized_shape, input, "rms_norm", weight, star="*"))
    if input.array.dtype.kind in "biu" or input.dtype is complex32:
        raise NotImplementedError(f"\"rms_norm\" not implemented for '{SCALAR_TYPES[input.dtype.name]}'")
    wide = promote_types(input.dtype, float32)
    eps = finfo(wide).eps if eps is None else eps
    x, w = in_dtype(input, wide), None if weight is None else in_dtype(weight, wide)
    if not wide.is_complex:
        return in_dtype(xp.rms_norm(x, w, ndim=ndim, eps=eps), input.dtype)
    out = x / ((x * x).mean(tuple(range(-ndim, 0)), keepdim=True) + eps).sqrt()
    return out if w is None else out * w


@public(method=False)
def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5, cudnn_enabled: bool = True) -> Tensor:
    """(x − μ) / √(σ² + ε) · w + b, with μ and σ² over groups of channels.

    Input: (N, C, *), floating point; weight w and bias b (C)
    Output: the input's shape and dtype
    Errors: IndexError for less than 2 dimensions; RuntimeError for num_groups ≤ 0, C that num_groups does not divide,
        or w and b of another shape; NotImplementedError for integers
    https://pytorch.org/docs → torch.nn.functional.group_norm

    >>> import tensorgrad as torch
    >>> torch.group_norm(torch.tensor([[1., 3., 10., 30.]]), 2, eps=0.)
    tensor([[-1.,  1., -1.,  1.]])
    """
    shape = list(input.array.shape)
    if len(shape) < 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)" if shape else
                         "Dimension specified as 0 but tensor has no dimensions")
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if shape[1] % num_groups:
        raise RuntimeError("Expected number of channels in input to be divisible by num_groups, but got input of shape "
                           f"{shape} and num_groups={num_groups}")
    for t, what in ((weight, "weight"), (bias, "bias")):
        if t is not None and t.array.shape != (shape[1],):
            raise RuntimeError(f"Expected {what} to be a vector of size equal to the number of channels in input, but "
                               f"got {what} of shape {list((weight if weight is not None else t).array.shape)} and "
                               f"input of shape {shape}")
    _check_dtypes(input, weight, bias)
    return _in_the_dtype_of(input, xp.native_group_norm(input, weight, bias, groups=num_groups, eps=eps))
