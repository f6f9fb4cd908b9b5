"""Convolutions. https://pytorch.org/docs/stable/nn.functional.html#convolution-functions"""
from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ..advice import misfit
from ..core.dispatch import SCALAR_TYPES, xp
from ..dtype import can_cast
from ..ops.windows import input_length, output_length
from ..size import remembered, whole
from ._arguments import C_NAMES, in_dtype, integer, refuse
from ._kinds import Index, Ints1
from ._register import public
from .pooling import step_within

PLAIN = frozenset((int,))


def several(value: Any, n: int, name: str) -> tuple[int, ...]:
    """Return n numbers, a number per dimension, from one number or a sequence of 1 or n."""
    if type(value) is int:
        return (value,) * n
    if type(value) is tuple and len(value) == n and PLAIN.issuperset(map(type, value)):
        return value
    if isinstance(value, (tuple, list)):
        if len(value) not in (1, n):
            raise RuntimeError(f"expected {name} to be a single integer value or a list of {n} values to match the "
                               f"convolution dimensions, but got {name}={list(value)}")
        return tuple(v if type(v) is int else integer(v, name) for v in value) * (n if len(value) == 1 else 1)
    if not hasattr(value, "__index__"):
        raise TypeError(f"argument '{name}' must be tuple of ints, not {type(value).__name__}")
    return (whole(value),) * n


# ── checks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _slow(input: Any) -> bool:
    """Return True if PyTorch rejects the dtype of a transposed convolution before it checks other arguments."""
    return input.array.dtype.kind in "biu" and input.array.dtype != "int64"


def _check(input: Any, weight: Any, bias: Any, n: int, groups: int, name: str, transposed: bool) -> None:
    x, w = input.array.shape, weight.array.shape
    if len(x) not in (n + 1, n + 2):
        raise misfit(f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: "
                     f"{list(x)}")
    if not transposed:
        _check_dtypes(input, weight, bias, transposed)
    if len(w) != n + 2:
        raise RuntimeError(f"Expected {len(w)}-dimensional input for {len(w)}-dimensional weight {list(w)}, but got "
                           f"{n + 2}-dimensional input of size {list(x)} instead" if len(w) > n + 2 else
                           f"expected stride to be a single integer value or a list of {max(len(w) - 2, 0)} values to "
                           f"match the convolution dimensions, but got stride={[1] * n}")
    _check_channels(x, w, None if bias is None else bias.array.shape, n, groups, transposed)
    if not transposed:
        refuse(input, "b", "slow_conv2d_cpu" if n < 3 else "compute_columns3d")
    if transposed and not _slow(input):
        _check_dtypes(input, weight, bias, transposed)


def _check_dtypes(input: Any, weight: Any, bias: Any, transposed: bool) -> None:
    if input.array.dtype is weight.array.dtype and (bias is None or bias.array.dtype is input.array.dtype):
        return
    if bias is not None and input.dtype is not bias.dtype and not transposed:
        raise RuntimeError(f"Input type ({C_NAMES[input.dtype.name]}) and bias type ({C_NAMES[bias.dtype.name]}) "
                           f"should be the same")
    for t in (weight, bias):
        if t is not None and input.dtype is not t.dtype:
            raise RuntimeError(f"expected scalar type {SCALAR_TYPES[input.dtype.name]} but found "
                               f"{SCALAR_TYPES[t.dtype.name]}")


@remembered
def _check_channels(x: Any, w: Any, b: Any, n: int, groups: int, transposed: bool) -> None:
    """Raise RuntimeError unless the shapes of input, weight and bias (or None) agree on the channels."""
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    size = list(w)
    if w[0] < groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got "
                           f"weight of size {size} instead")
    if w[0] % groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but "
                           f"got weight of size [{size}] instead")
    expected, outs = (w[0], w[1] * groups) if transposed else (w[1] * groups, w[0])
    if x[-n - 1] != expected:
        given = "Given transposed=1, " if transposed else f"Given groups={groups}, "
        raise misfit(f"{given}weight of size {size}, expected input{list(x) if len(x) == n + 2 else [1, *x]} to have "
                           f"{expected} channels, but got {x[-n - 1]} channels instead")
    if b is not None and b != (outs,):
        raise RuntimeError(f"Given {'transposed=1, ' if transposed else ''}weight of size {size}, expected bias to be "
                           f"1-dimensional with {outs} elements, but got bias of size {list(b)} instead")


def _positive(values: tuple[int, ...], name: str) -> tuple[int, ...]:
    if min(values) <= 0:
        raise RuntimeError(f"non-positive {name} is not supported")
    return values


def _nonnegative(values: tuple[int, ...], name: str) -> tuple[int, ...]:
    if min(values) < 0:
        raise RuntimeError(f"negative {name} is not supported")
    return values


# ── convolution ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _convolve(n: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    x, w = input.array.shape, weight.array.shape
    _check(input, weight, bias, n, groups, f"conv{n}d", False)
    stride, dilation = several(stride, n, "stride"), several(dilation, n, "dilation")
    if type(padding) is not str:
        padding = several(padding, n, "padding")
    padding, uneven = _padding(x[-n:], w[2:], stride, padding, dilation)
    stride = step_within(stride, x[-n:], padding)
    batched = input if len(x) == n + 2 else input.unsqueeze(0)
    whole = xp.pad_constant(batched, widths=((0, 0), (0, 0), *uneven)) if uneven else batched
    out = xp.convolution(whole, weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups)
    return out if batched is input else out.squeeze(0)


@remembered
def _padding(size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> tuple[tuple[int, ...], Any]:
    """Check the arguments; return the padding as numbers, and the extra padding at the ends that 'same' may need."""
    _positive(stride, "stride")
    _positive(dilation, "dilation")
    uneven = None
    if isinstance(padding, str):
        padding, uneven = _same_length(padding, stride, dilation, kernel)
    _nonnegative(padding, "padding")
    longer = tuple(d + a + b for d, (a, b) in zip(size, uneven, strict=True)) if uneven else size
    if any(n < 1 for n in output_length(longer, kernel, stride, padding, dilation)):
        raise _too_small(longer, padding, dilation, kernel)
    return padding, uneven


def _too_small(size: Any, padding: Any, dilation: Any, kernel: Any) -> RuntimeError:
    sizes = " x ".join(str(d + 2 * p) for d, p in zip(size, padding, strict=True))
    reach = " x ".join(str(e * (k - 1) + 1) for e, k in zip(dilation, kernel, strict=True))
    return misfit(f"Calculated padded input size per channel: ({sizes}). Kernel size: ({reach}). "
                        "Kernel size can't be greater than actual input size")


def _same_length(padding: str, stride: Any, dilation: Any, kernel: Any) -> tuple[tuple[int, ...], Any]:
    """Return the padding of 'same' or 'valid', and the extra padding at the ends if 'same' needs uneven sides."""
    if padding == "valid":
        return (0,) * len(kernel), None
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    uneven = tuple((0, t % 2) for t in total)       # one more after than before
    return tuple(t // 2 for t in total), uneven if any(after for _, after in uneven) else None


@public(method=False)
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints1 = 1, padding: Ints1 | str = 0,
           dilation: Ints1 = 1, groups: Index = 1) -> Tensor:
    """Cross-correlation over the last axis.

    y[n, o] = bias[o] + Σ_c x[n, c] ⋆ w[o, c].

    Input: x (N, C, L) or (C, L); weight w (O, C / groups, K); bias (O), all of one dtype
    Output: (N, O, L') or without N, with L' = ⌊(L + 2·padding − dilation·(kernel − 1) − 1) / stride⌋ + 1 along each
        axis; L' = L for padding='same'
    Errors: RuntimeError for other numbers of dimensions, channels that do not fit, dtypes that differ, a kernel longer
        than the padded input, stride or dilation ≤ 0, padding < 0, or padding='same' with a stride
    https://pytorch.org/docs → torch.nn.functional.conv1d

    >>> import tensorgrad as torch
    >>> torch.conv1d(torch.tensor([[[1., 2., 3., 4.]]]), torch.tensor([[[1., -1.]]]))
    tensor([[[-1., -1., -1.]]])
    """
    return _convolve(1, input, weight, bias, stride, padding, dilation, groups)


@public(method=False)
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints1 = 1, padding: Ints1 | str = 0,
           dilation: Ints1 = 1, groups: Index = 1) -> Tensor:
    """Cross-correlation over the last two axes.

    y[n, o] = bias[o] + Σ_c x[n, c] ⋆ w[o, c].

    Input: x (N, C, H, W) or (C, H, W); weight w (O, C / groups, kH, kW); bias (O), all of one dtype
    Output: (N, O, H', W') or without N, with L' = ⌊(L + 2·padding − dilation·(kernel − 1) − 1) / stride⌋ + 1 along each
        axis; L' = L for padding='same'
    Errors: RuntimeError for other numbers of dimensions, channels that do not fit, dtypes that differ, a kernel longer
        than the padded input, stride or dilation ≤ 0, padding < 0, or padding='same' with a stride
    https://pytorch.org/docs → torch.nn.functional.conv2d

    >>> import tensorgrad as torch
    >>> torch.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)).shape
    torch.Size([1, 1, 2, 2])
    """
    return _convolve(2, input, weight, bias, stride, padding, dilation, groups)


@public(method=False)
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints1 = 1, padding: Ints1 | str = 0,
           dilation: Ints1 = 1, groups: Index = 1) -> Tensor:
    """Cross-correlation over the last three axes.

    y[n, o] = bias[o] + Σ_c x[n, c] ⋆ w[o, c].

    Input: x (N, C, D, H, W) or (C, D, H, W); weight w (O, C / groups, kD, kH, kW); bias (O), all of one dtype
    Output: (N, O, D', H', W') or without N, with L' = ⌊(L + 2·padding − dilation·(kernel − 1) − 1) / stride⌋ + 1 along
        each axis; L' = L for padding='same'
    Errors: RuntimeError for other numbers of dimensions, channels that do not fit, dtypes that differ, a kernel longer
        than the padded input, stride or dilation ≤ 0, padding < 0, or padding='same' with a stride
    https://pytorch.org/docs → torch.nn.functional.conv3d

    >>> import tensorgrad as torch
    >>> torch.conv3d(torch.ones(1, 1, 3, 3, 3), torch.ones(2, 1, 2, 2, 2)).shape
    torch.Size([1, 2, 2, 2, 2])
    """
    return _convolve(3, input, weight, bias, stride, padding, dilation, groups)


@public(method=False)
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """conv1d of (time, batch, channels) with a weight (K, C, O).

    Input: x (T, N, C), weight (K, C, O), bias (O)
    Output: (T + 2·pad − K + 1, N, O)
    Errors: RuntimeError if the channels do not fit or K is greater than T + 2·pad + 1
    https://pytorch.org/docs → torch.nn.functional.conv_tbc

    >>> import tensorgrad as torch
    >>> torch.conv_tbc(torch.ones(4, 1, 2), torch.ones(3, 2, 5), torch.zeros(5)).shape
    torch.Size([2, 1, 5])
    """
    if isinstance(bias, Tensor) and bias.array.dtype != input.array.dtype and can_cast(bias.dtype, input.dtype):
        bias = in_dtype(bias, input.dtype)
    length = len(input) + 2 * pad - len(weight) + 1
    if length < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {length}: "
                           f"{[length, input.size(1), weight.size(2)]}")
    if length == 0:
        return input.new_empty(0, input.size(1), weight.size(2))
    return conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1).contiguous()


# ── transposed convolution ────────────────────────────────────────────────────────────────────────────────────────────


def _transposed(n: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, output_padding: Any, groups: int,
                dilation: Any) -> Any:
    if bias is not None and input.array.dtype == "float64" and not bias.dtype.is_complex:
        bias = in_dtype(bias, input.dtype)
    _check(input, weight, bias, n, groups, f"conv_transpose{n}d", True)
    if _slow(input):
        raise NotImplementedError(f"\"slow_conv_transpose{max(n, 2)}d_out_cpu\" not implemented for "
                                  f"'{SCALAR_TYPES[input.dtype.name]}'")
    stride, dilation = (_positive(several(stride, n, "stride"), "stride"),
                        _positive(several(dilation, n, "dilation"), "dilation"))
    padding = _nonnegative(several(padding, n, "padding"), "padding")
    extra = _nonnegative(several(output_padding, n, "output_padding"), "output_padding")
    if any(e >= s and e >= d for e, s, d in zip(extra, stride, dilation, strict=True)):
        high = {"output_padding": (0, *extra), "stride": (1, *stride), "dilation": (1, *dilation)}
        raise RuntimeError("output padding must be smaller than either stride or dilation, but got " + " ".join(
            f"{name}_{side}: {value}" for name, values in high.items()
            for side, value in zip(("height", "width"), values[-2:], strict=True)))
    batched = input if input.ndim == n + 2 else input.unsqueeze(0)
    least = input_length(batched.shape[2:], weight.shape[2:], stride, padding, dilation)
    size = tuple(d + e for d, e in zip(least, extra, strict=True))
    if any(d <= 0 for d in size):
        raise RuntimeError(f"Given input size per channel: ({' x '.join(map(str, batched.shape[2:]))}). Calculated "
                           f"output size per channel: ({' x '.join(map(str, size))}). Output size is too small")
    out = xp.convolution_input(batched, weight, bias, size=size, stride=stride, padding=padding, dilation=dilation,
                               groups=groups)
    return out if batched is input else out.squeeze(0)


@public(method=False)
def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints1 = 1, padding: Ints1 = 0,
                     output_padding: Ints1 = 0, groups: Index = 1, dilation: Ints1 = 1) -> Tensor:
    """The adjoint of conv1d.

    Input: x (N, C, L) or (C, L); weight w (C, O / groups, K); bias (O), all of one dtype
    Output: (N, O, L') or without N, with L' = (L − 1)·stride − 2·padding + dilation·(kernel − 1) + output_padding + 1
        along each axis
    Errors: RuntimeError for other numbers of dimensions, channels that do not fit, dtypes that differ, stride or
        dilation ≤ 0, padding < 0, or output_padding that is less than neither stride nor dilation
    https://pytorch.org/docs → torch.nn.functional.conv_transpose1d

    >>> import tensorgrad as torch
    >>> torch.conv_transpose1d(torch.tensor([[[1., 2.]]]), torch.tensor([[[1., -1.]]]))
    tensor([[[ 1.,  1., -2.]]])
    """
    return _transposed(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@public(method=False)
def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints1 = 1, padding: Ints1 = 0,
                     output_padding: Ints1 = 0, groups: Index = 1, dilation: Ints1 = 1) -> Tensor:
    """The adjoint of conv2d; x: (N, O, H, W), w: (O, C / groups, K, K).

    Input: x (N, C, H, W) or (C, H, W); weight w (C, O / groups, kH, kW); bias (O), all of one dtype
    Output: (N, O, H', W') or without N, with L' = (L − 1)·stride − 2·padding + dilation·(kernel − 1) + output_padding +
        1 along each axis
    Errors: RuntimeError for other numbers of dimensions, channels that do not fit, dtypes that differ, stride or
        dilation ≤ 0, padding < 0, or output_padding that is less than neither stride nor dilation
    https://pytorch.org/docs → torch.nn.functional.conv_transpose2d

    >>> import tensorgrad as torch
    >>> torch.conv_transpose2d(torch.ones(1, 1, 2, 2), torch.ones(1, 3, 2, 2), stride=2).shape
    torch.Size([1, 3, 4, 4])
    """
    return _transposed(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@public(method=False)
def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints1 = 1, padding: Ints1 = 0,
                     output_padding: Ints1 = 0, groups: Index = 1, dilation: Ints1 = 1) -> Tensor:
    """The adjoint of conv3d.

    Input: x (N, C, D, H, W) or (C, D, H, W); weight w (C, O / groups, kD, kH, kW); bias (O), all of one dtype
    Output: (N, O, D', H', W') or without N, with L' = (L − 1)·stride − 2·padding + dilation·(kernel − 1) +
        output_padding + 1 along each axis
    Errors: RuntimeError for other numbers of dimensions, channels that do not fit, dtypes that differ, stride or
        dilation ≤ 0, padding < 0, or output_padding that is less than neither stride nor dilation
    https://pytorch.org/docs → torch.nn.functional.conv_transpose3d

    >>> import tensorgrad as torch
    >>> torch.conv_transpose3d(torch.ones(1, 1, 2, 2, 2), torch.ones(1, 3, 2, 2, 2)).shape
    torch.Size([1, 3, 3, 3, 3])
    """
    return _transposed(3, input, weight, bias, stride, padding, output_padding, groups, dilation)
