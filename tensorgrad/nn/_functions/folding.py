"""Convert windows to columns, and back. https://pytorch.org/docs/stable/nn.functional.html#convolution-functions"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..._tensor import Tensor
from ...api._kinds import Ints1
from ...core.dispatch import SCALAR_TYPES, xp
from ...ops.windows import output_length
from ...size import whole

__all__ = ["fold", "unfold"]


def _pair(value: Any, name: str) -> tuple[int, int]:
    if type(value) is int:
        return value, value
    values = tuple(value) if isinstance(value, Iterable) else (value, value)
    if len(values) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(values)}")
    return whole(values[0]), whole(values[1])


def _geometry(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> tuple[tuple[int, int], ...]:
    """Check and return kernel, dilation, padding and stride of two dimensions."""
    kernel, dilation, padding, stride = (_pair(v, name) for v, name in (
        (kernel_size, "kernel_size"), (dilation, "dilation"), (padding, "padding"), (stride, "stride")))
    for values, name in ((kernel, "kernel size"), (stride, "stride"), (dilation, "dilation")):
        if min(values) <= 0:
            short = name.split()[0]
            raise RuntimeError(f"{name} should be greater than zero, but got {short}_height: {values[0]} "
                               f"{short}_width: {values[1]}")
    if min(padding) < 0:
        raise RuntimeError(f"padding should be non-negative, but got pad_height: {padding[0]} pad_width: {padding[1]}")
    return kernel, dilation, padding, stride


def _check_dtype(input: Any, kernel: str) -> None:
    if input.array.dtype.kind in "iu":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{SCALAR_TYPES[input.dtype.name]}'")


def unfold(input: Tensor, kernel_size: Ints1, dilation: Ints1 = 1, padding: Ints1 = 0, stride: Ints1 = 1) -> Tensor:
    """All windows as columns: (N, C·K·K, L).

    Input: (N, C, H, W) or (C, H, W)
    Output: (N, C · kH · kW, L), or without N: L windows, a column for each
    Errors: RuntimeError for windows that do not fit, kernel, stride or dilation ≤ 0, padding < 0, or other numbers of
        dimensions (IndexError for 1 and 2); NotImplementedError for integers
    https://pytorch.org/docs → torch.nn.functional.unfold

    >>> import tensorgrad as torch
    >>> torch.nn.functional.unfold(torch.arange(4.).reshape(1, 1, 2, 2), (1, 2))
    tensor([[[0., 2.],
             [1., 3.]]])
    """
    shape = input.array.shape
    kernel, dilation, padding, stride = _geometry(kernel_size, dilation, padding, stride)
    if len(shape) in (1, 2):
        raise IndexError(f"Dimension out of range (expected to be in range of [{-len(shape)}, {len(shape) - 1}], but "
                         f"got {len(shape)})")
    if len(shape) not in (3, 4) or 0 in shape[-3:]:
        raise RuntimeError("Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
                           f"dimensions for input, but got: {list(shape)}")
    _check_dtype(input, "im2col_out_cpu")
    x = input if len(shape) == 4 else input.unsqueeze(0)
    counts = list(output_length(shape[-2:], kernel, stride, padding, dilation))
    if min(counts) < 1:
        raise RuntimeError(f"Given input with spatial size {shape[-2:]}, kernel_size={kernel}, dilation={dilation}, "
                           f"padding={padding}, calculated shape of the array of sliding blocks as {tuple(counts)}, "
                           "but its components must be at least one.")
    out = xp.columns(x, kernel=kernel, stride=stride, padding=padding, dilation=dilation)
    out = out.reshape(len(x.array), shape[-3] * kernel[0] * kernel[1], counts[0] * counts[1])
    return out if x is input else out.squeeze(0)


def fold(input: Tensor, output_size: Ints1, kernel_size: Ints1, dilation: Ints1 = 1, padding: Ints1 = 0,
         stride: Ints1 = 1) -> Tensor:
    """Add up columns at the positions of their windows: the adjoint of unfold.

    Input: (N, C · kH · kW, L) or without N: a column for each of the L windows
    Output: (N, C, *output_size), or without N
    Errors: RuntimeError if L is not the number of windows in output_size, kH · kW does not divide the rows, kernel,
        stride or dilation ≤ 0, padding < 0, or for other numbers of dimensions; NotImplementedError for integers
    https://pytorch.org/docs → torch.nn.functional.fold

    >>> import tensorgrad as torch
    >>> torch.nn.functional.fold(torch.ones(1, 2, 2), (1, 3), (1, 2))
    tensor([[[[1., 2., 1.]]]])
    """
    size = _pair(output_size, "output_size")
    kernel, dilation, padding, stride = _geometry(kernel_size, dilation, padding, stride)
    if input.ndim not in (2, 3) or 0 in input.shape[-2:]:
        raise RuntimeError("Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero "
                           f"dimensions for input, but got: {list(input.shape)}")
    _check_dtype(input, "col2im_out_cpu")
    x = input if input.ndim == 3 else input.unsqueeze(0)
    cells = kernel[0] * kernel[1]
    if x.shape[1] % cells:
        raise RuntimeError("Expected size of input's dimension 1 to be divisible by the product of kernel_size, but "
                           f"got input.size(1)={x.shape[1]} and kernel_size={kernel}.")
    counts = list(output_length(size, kernel, stride, padding, dilation))
    if x.shape[2] != counts[0] * counts[1] or min(counts) < 1:
        raise RuntimeError(f"Given output_size={size}, kernel_size={kernel}, dilation={dilation}, padding={padding}, "
                           f"stride={stride}, expected size of "
                           f"input's dimension 2 to match the calculated number of sliding blocks {counts[0]} * "
                           f"{counts[1]} = {counts[0] * counts[1]}, but got input.size(2)={x.shape[2]}.")
    blocks = x.reshape(x.shape[0], x.shape[1] // cells, *kernel, *counts)
    out = xp.columns_added(blocks, size=size, stride=stride, padding=padding, dilation=dilation)
    return out if x is input else out.squeeze(0)
