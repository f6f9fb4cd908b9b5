"""Convolutions, folding and unfolding. https://pytorch.org/docs/stable/nn.functional.html#convolution-functions"""
from __future__ import annotations

from typing import Any

from ...dispatch import xp

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "fold", "unfold"]


def several(value: Any, n: int, name: str) -> tuple[int, ...]:
    """One number per dimension, from one for all or from a sequence."""
    if isinstance(value, (tuple, list)):
        if len(value) == 1:
            return (int(value[0]),) * n
        if len(value) != n:
            raise RuntimeError(f"expected {name} to be a single integer value or a list of {n} values to match the convolution dimensions, but got "
                               f"{name}={list(value)}")
        return tuple(map(int, value))
    return (int(value),) * n


def _check(input: Any, weight: Any, bias: Any, n: int, groups: int, name: str, transposed: bool = False) -> None:
    if input.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: {list(input.shape)}")
    if weight.ndim != n + 2:
        raise RuntimeError(f"expected weight to be {n + 2}-dimensional, but got {weight.ndim}-dimensional weight of size {list(weight.shape)}")
    if input.dtype is not weight.dtype:
        raise RuntimeError(f"Input type ({input.type()}) and weight type ({weight.type()}) should be the same")
    if bias is not None and input.dtype is not bias.dtype:
        raise RuntimeError(f"Input type ({input.type()}) and bias type ({bias.type()}) should be the same")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    channels, outs, size = input.shape[-n - 1], weight.shape[1] * groups if transposed else weight.shape[0], list(weight.shape)
    if transposed:
        if channels != weight.shape[0]:
            raise RuntimeError(f"Given transposed=1, weight of size {size}, expected input{list(input.shape)} to have {weight.shape[0]} channels, but got "
                               f"{channels} channels instead")
    else:
        if weight.shape[0] % groups or weight.shape[0] < groups:
            raise RuntimeError(f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size {size} instead"
                               if weight.shape[0] < groups else f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
                               f"but got weight of size {size} instead")
        if channels != weight.shape[1] * groups:
            raise RuntimeError(f"Given groups={groups}, weight of size {size}, expected input{list(input.shape)} to have {weight.shape[1] * groups} "
                               f"channels, but got {channels} channels instead")
    if bias is not None and tuple(bias.shape) != (outs,):
        raise RuntimeError(f"Given {'transposed=1, ' if transposed else ''}weight of size {size}, expected bias to be 1-dimensional with {outs} elements, "
                           f"but got bias of size {list(bias.shape)} instead")


def _convolve(n: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    _check(input, weight, bias, n, groups, f"conv{n}d")
    stride, dilation = several(stride, n, "stride"), several(dilation, n, "dilation")
    kernel = tuple(weight.shape[2:])
    if any(s <= 0 for s in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(d <= 0 for d in dilation):
        raise RuntimeError("dilation should be greater than zero")
    batched = input if input.ndim == n + 2 else input.unsqueeze(0)
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise RuntimeError(f"Invalid padding string: '{padding}'")
        if padding == "valid":
            padding = (0,) * n
        else:
            if any(s != 1 for s in stride):
                raise RuntimeError("padding='same' is not supported for strided convolutions")
            total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
            padding = tuple(t // 2 for t in total)
            if any(t % 2 for t in total):                 # one more after than before
                batched = xp.pad_constant(batched, widths=((0, 0), (0, 0), *((0, t % 2) for t in total)))
    padding = several(padding, n, "padding")
    if any(p < 0 for p in padding):
        raise RuntimeError("negative padding is not supported")
    size = [d + 2 * p for d, p in zip(batched.shape[2:], padding, strict=True)]
    if any(d < e * (k - 1) + 1 for d, e, k in zip(size, dilation, kernel, strict=True)):
        raise RuntimeError(f"Calculated padded input size per channel: ({' x '.join(map(str, size))}). Kernel size: "
                           f"({' x '.join(str(e * (k - 1) + 1) for e, k in zip(dilation, kernel, strict=True))}). "
                           "Kernel size can't be greater than actual input size")
    out = xp.convolution(batched, weight, stride=stride, padding=padding, dilation=dilation, groups=groups)
    return _finished(out, bias, input, n)


def _finished(out: Any, bias: Any, input: Any, n: int) -> Any:
    if bias is not None:
        out = out + bias.reshape(-1, *(1,) * n)
    return out if input.ndim == n + 2 else out.squeeze(0)


def conv1d(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
    """Cross-correlation over the last axis. https://pytorch.org/docs → torch.nn.functional.conv1d

    y[n, o] = bias[o] + Σ_c x[n, c] ⋆ w[o, c];  x: (N, C, L), w: (O, C / groups, K).
    """
    return _convolve(1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
    """Cross-correlation over the last two axes. https://pytorch.org/docs → torch.nn.functional.conv2d

    y[n, o] = bias[o] + Σ_c x[n, c] ⋆ w[o, c];  x: (N, C, H, W), w: (O, C / groups, K, K).

    >>> import tensorgrad as torch
    >>> torch.nn.functional.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)).shape
    torch.Size([1, 1, 2, 2])
    """
    return _convolve(2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
    """Cross-correlation over the last three axes. https://pytorch.org/docs → torch.nn.functional.conv3d"""
    return _convolve(3, input, weight, bias, stride, padding, dilation, groups)


def _transposed(n: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, output_padding: Any, groups: int, dilation: Any) -> Any:
    _check(input, weight, bias, n, groups, f"conv_transpose{n}d", transposed=True)
    stride, padding, dilation = several(stride, n, "stride"), several(padding, n, "padding"), several(dilation, n, "dilation")
    extra = several(output_padding, n, "output_padding")
    if any(p < 0 for p in padding):
        raise RuntimeError("negative padding is not supported")
    if any(s <= 0 for s in stride):
        raise RuntimeError("non-positive stride is not supported")
    for e, s, d in zip(extra, stride, dilation, strict=True):
        if e >= s and e >= d:
            raise RuntimeError("output padding must be smaller than either stride or dilation, but got "
                               f"output_padding_height: {extra[0]} output_padding_width: {extra[-1]} stride_height: {stride[0]} stride_width: "
                               f"{stride[-1]} dilation_height: {dilation[0]} dilation_width: {dilation[-1]}")
    batched = input if input.ndim == n + 2 else input.unsqueeze(0)
    size = tuple((length - 1) * s - 2 * p + d * (k - 1) + e + 1 for length, s, p, d, k, e in
                 zip(batched.shape[2:], stride, padding, dilation, weight.shape[2:], extra, strict=True))
    if any(d <= 0 for d in size):
        raise RuntimeError(f"Given input size per channel: ({' x '.join(map(str, batched.shape[2:]))}). Calculated output size per channel: "
                           f"({' x '.join(map(str, size))}). Output size is too small")
    out = xp.convolution_input(batched, weight, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups)
    return _finished(out, bias, input, n)


def conv_transpose1d(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
                     dilation: Any = 1) -> Any:
    """The adjoint of conv1d. https://pytorch.org/docs → torch.nn.functional.conv_transpose1d"""
    return _transposed(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
                     dilation: Any = 1) -> Any:
    """The adjoint of conv2d; x: (N, O, H, W), w: (O, C / groups, K, K). https://pytorch.org/docs → torch.nn.functional.conv_transpose2d"""
    return _transposed(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
                     dilation: Any = 1) -> Any:
    """The adjoint of conv3d. https://pytorch.org/docs → torch.nn.functional.conv_transpose3d"""
    return _transposed(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


def unfold(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """All windows as columns: (N, C·K·K, L). https://pytorch.org/docs → torch.nn.functional.unfold"""
    kernel, dilation, padding, stride = (several(v, 2, name) for v, name in (
        (kernel_size, "kernel_size"), (dilation, "dilation"), (padding, "padding"), (stride, "stride")))
    for values, name in ((kernel, "kernel size"), (dilation, "dilation"), (stride, "stride")):
        if any(v <= 0 for v in values):
            raise RuntimeError(f"{name} should be greater than zero, but got {name.split()[0]}_height: {values[0]} {name.split()[0]}_width: {values[1]}")
    if any(p < 0 for p in padding):
        raise RuntimeError(f"padding should be non-negative, but got pad_height: {padding[0]} pad_width: {padding[1]}")
    if input.ndim not in (3, 4) or 0 in input.shape[-3:]:
        raise RuntimeError("Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: "
                           f"{list(input.shape)}")
    x = input if input.ndim == 4 else input.unsqueeze(0)
    counts = [(d + 2 * p - e * (k - 1) - 1) // s + 1 for d, p, e, k, s in zip(x.shape[2:], padding, dilation, kernel, stride, strict=True)]
    if any(c < 1 for c in counts):
        raise RuntimeError(f"Given input with spatial size ({x.shape[2]}, {x.shape[3]}), kernel_size=({kernel[0]}, {kernel[1]}), dilation="
                           f"({dilation[0]}, {dilation[1]}), padding=({padding[0]}, {padding[1]}), stride=({stride[0]}, {stride[1]}), calculated shape "
                           f"of the array of sliding blocks as ({counts[0]}, {counts[1]}), but its components must be at least one.")
    out = xp.columns(x, kernel=kernel, stride=stride, padding=padding, dilation=dilation)
    out = out.reshape(x.shape[0], x.shape[1] * kernel[0] * kernel[1], -1 if out.numel() else counts[0] * counts[1])
    return out if input.ndim == 4 else out.squeeze(0)


def fold(input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """Columns added up where windows would come from: the adjoint of unfold. https://pytorch.org/docs → torch.nn.functional.fold"""
    size, kernel, dilation, padding, stride = (several(v, 2, name) for v, name in (
        (output_size, "output_size"), (kernel_size, "kernel_size"), (dilation, "dilation"), (padding, "padding"), (stride, "stride")))
    for values, name in ((kernel, "kernel size"), (dilation, "dilation"), (stride, "stride")):
        if any(v <= 0 for v in values):
            raise RuntimeError(f"{name} should be greater than zero, but got {name.split()[0]}_height: {values[0]} {name.split()[0]}_width: {values[1]}")
    if input.ndim not in (2, 3):
        raise RuntimeError("Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: "
                           f"{list(input.shape)}")
    x = input if input.ndim == 3 else input.unsqueeze(0)
    cells = kernel[0] * kernel[1]
    if x.shape[1] % cells:
        raise RuntimeError("Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)="
                           f"{x.shape[1]} and kernel_size=({kernel[0]}, {kernel[1]}).")
    counts = [(d + 2 * p - e * (k - 1) - 1) // s + 1 for d, p, e, k, s in zip(size, padding, dilation, kernel, stride, strict=True)]
    if x.shape[2] != counts[0] * counts[1] or any(c < 1 for c in counts):
        raise RuntimeError(f"Given output_size=({size[0]}, {size[1]}), kernel_size=({kernel[0]}, {kernel[1]}), dilation=({dilation[0]}, {dilation[1]}), "
                           f"padding=({padding[0]}, {padding[1]}), stride=({stride[0]}, {stride[1]}), expected size of input's dimension 2 to match the "
                           f"calculated number of sliding blocks {counts[0]} * {counts[1]} = {counts[0] * counts[1]}, but got input.size(2)={x.shape[2]}.")
    blocks = x.reshape(x.shape[0], x.shape[1] // cells, *kernel, *counts)
    out = xp.columns_added(blocks, size=size, stride=stride, padding=padding, dilation=dilation)
    return out if input.ndim == 3 else out.squeeze(0)

