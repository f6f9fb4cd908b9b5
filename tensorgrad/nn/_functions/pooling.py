"""Pooling. https://pytorch.org/docs/stable/nn.functional.html#pooling-functions"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from ... import api as tg
from ..._tensor import Tensor
from ...api._arguments import anywhere, each_example, in_batch, is_hollow
from ...api._kinds import Ints1
from ...api.pooling import (
    adaptive_avg_pool,
    adaptive_max_pool,
    avg_pool,
    max_pool,
    per_dimension,
    window_places,
    window_table,
)
from ...core.dispatch import SCALAR_TYPES, xp
from ...core.formats import in_channels_last
from ...ops.windows import input_length
from ...runtime.settings import alert

__all__ = ["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
           "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices",
           "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "avg_pool1d", "avg_pool2d", "avg_pool3d",
           "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
           "fractional_max_pool3d_with_indices", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d",
           "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices",
           "max_unpool1d", "max_unpool2d",
           "max_unpool3d"]


def _named(f: Any, name: str, what: str, details: str) -> Any:
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"{what}\n\n{details}\nhttps://pytorch.org/docs → torch.nn.functional.{name}"
    return f


SHAPES = {1: "(N, C, L) or (C, L)", 2: "(N, C, H, W) or (C, H, W)", 3: "(N, C, D, H, W) or (C, D, H, W)"}


def _shapes(n: int, of_input: str, output: str, errors: str) -> str:
    """Return the part of a docstring about shapes and errors."""
    return f"Input: {SHAPES[n]}{of_input}\nOutput: {output}\nErrors: {errors}"


# ── maxima ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _make_max_pool(n: int) -> tuple[Any, Any]:
    def with_indices(input: Tensor, kernel_size: Ints1, stride: Ints1 | None = None, padding: Ints1 = 0,
                     dilation: Ints1 = 1, ceil_mode: bool = False,
                     return_indices: bool = False) -> tuple[Tensor, Tensor]:
        return max_pool(n, input, kernel_size, stride, padding, dilation, ceil_mode)

    def plain(input: Tensor, kernel_size: Ints1, stride: Ints1 | None = None, padding: Ints1 = 0, dilation: Ints1 = 1,
              ceil_mode: bool = False, return_indices: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        return max_pool(n, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
    details = "The stride is the kernel's size unless given.\n\n" + _shapes(
        n, ", real numbers", "each length L becomes ⌊(L + 2·padding − dilation·(kernel − 1) − 1) / stride⌋ + 1, or ⌈·⌉ "
        "+ 1 with `ceil_mode`;\n    a tuple with the places in the flattened plane, int64, with `return_indices`",
        "RuntimeError for other numbers of dimensions, kernel, stride or dilation ≤ 0, padding above half the kernel, "
        "or no\n    window that fits")
    return _named(plain, f"max_pool{n}d", "The largest value of each window.", details), _named(
        with_indices, f"max_pool{n}d_with_indices", "The largest value of each window, and its place in the plane.",
        details)


max_pool1d, max_pool1d_with_indices = _make_max_pool(1)
max_pool2d, max_pool2d_with_indices = _make_max_pool(2)
max_pool3d, max_pool3d_with_indices = _make_max_pool(3)


def _unpooled_size(input: Any, n: int, kernel: Any, stride: Any, padding: Any, output_size: Any) -> list[int]:
    kernel, stride, padding = (tuple(v) if isinstance(v, Iterable) else (v,) * n for v in (kernel, stride, padding))
    # IndexError if there are too few
    strides, widths = ([values[place] for place in range(len(kernel))] for values in (stride, padding))
    default = list(input_length([input.shape[place - len(kernel)] for place in range(len(kernel))], kernel, strides,
                                widths, (1,) * len(kernel)))
    for place, size in enumerate(default if output_size is None else output_size):
        if size < 0:
            raise ValueError(f"max_unpooling: output_size must contain non-negative spatial dimensions, but got "
                             f"output_size[{place}]={size}")
    if output_size is None:
        return default
    if len(output_size) == n + 2:
        output_size = output_size[2:]
    if len(output_size) != n:
        raise ValueError(f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of "
                         f"'{len(output_size)}'")
    for i, (got, d, s) in enumerate(zip(output_size, default, stride, strict=True)):
        if not d - s < got < d + s:
            raise ValueError(f'invalid output_size "{output_size}" (dim {i} must be between {d - s} and {d + s})')
    return list(output_size)


def _check_ints(function: str, **lists: Any) -> None:
    """Raise TypeError for sizes that are no integers."""
    for name, values in lists.items():
        for place, value in enumerate(values if isinstance(values, (tuple, list)) else () if values is None
                                      else (values,)):
            if not hasattr(value, "__index__"):
                from ...api._parsing import typename
                raise TypeError(f"{function}(): argument '{name}' must be tuple of ints, but found element of type "
                                f"{typename(value)} at pos {place}")


def _check_unpool(input: Any, indices: Any, n: int, stride: Any, size: list[int]) -> None:
    column = [1] if n == 1 else []             # one dimension counts as two, the second of length 1
    if indices.dtype is not tg.int64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {SCALAR_TYPES[indices.dtype.name]}")
    if input.ndim not in (n + 1, n + 2):
        m = max(n, 2)
        raise RuntimeError(f"Input to max_unpooling{m}d should be a {m + 1}d or {m + 2}d Tensor, but got a tensor with "
                           f"{input.ndim + len(column)} dimensions.")
    if tuple(indices.shape) != tuple(input.shape):
        raise RuntimeError(f"Expected shape of indices to be same as that of the input tensor "
                           f"({[*input.shape, *column]}) but got indices tensor with "
                           f"shape: {[*indices.shape, *column]}")
    if n == 3 and min(stride) <= 0:
        raise RuntimeError(f"strides should be greater than zero, but got stride: {list(stride)}")
    if input.array.dtype.kind not in "fV":
        raise NotImplementedError(f"\"max_unpool{max(n, 2)}d\" not implemented for '{SCALAR_TYPES[input.dtype.name]}'")
    wrong = (indices < 0) | (indices >= prod(size))
    if indices.numel() and prod(size) and anywhere(wrong):
        raise RuntimeError(f"Found an invalid max index: {int(indices[wrong][0])} (output volumes are of size "
                           f"{'x'.join(map(str, [*size, *column]))}")


def _unpool(n: int, input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any) -> Any:
    name = f"max_unpool{n}d"
    alert(f"max_unpooling{max(n, 2)}d_forward_out")
    size = _unpooled_size(input, n, kernel_size, kernel_size if stride is None else stride, padding, output_size)
    _check_ints(name, output_size=size, stride=stride if n == 3 else (), padding=padding if n == 3 else ())
    kernel = per_dimension(kernel_size, n, "kernel_size", name)
    stride = kernel if stride is None else per_dimension(stride, n, "stride", name)
    per_dimension(padding, n, "padding", name)
    _check_unpool(input, indices, n, stride, size)
    flat = (prod(input.shape[:-n]), prod(input.shape[-n:]))
    if not prod(size):
        return input.reshape(flat)[:, :0].reshape(*input.shape[:-n], *size).clone()
    zeros = input.new_zeros(flat[0], prod(size))
    out = xp.scatter(zeros, input.reshape(flat), indices.reshape(flat), axis=1).reshape(*input.shape[:-n], *size)
    return xp.channels_last(out) if n == 2 and in_channels_last(input) else out


def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: Ints1, stride: Ints1 | None = None, padding: Ints1 = 0,
                 output_size: Ints1 | None = None) -> Tensor:
    """Invert max_pool1d: put values at the indices of the maxima, zeros elsewhere.

    Input: (N, C, l) or (C, l), floating point; indices in its shape, int64, as of max_pool with return_indices
    Output: (N, C, L) or (C, L), of output_size; (l − 1)·stride − 2·padding + kernel along each axis unless given
    Errors: RuntimeError for indices of another shape or dtype, an index outside of the output, or other numbers of
        dimensions; ValueError for an output_size that does not fit; NotImplementedError for integers
    https://pytorch.org/docs → torch.nn.functional.max_unpool1d

    >>> import tensorgrad as torch
    >>> values, places = torch.nn.functional.max_pool1d(torch.tensor([[1., 5., 2., 3.]]), 2, return_indices=True)
    >>> torch.nn.functional.max_unpool1d(values, places, 2)
    tensor([[0., 5., 0., 3.]])
    """
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: Ints1, stride: Ints1 | None = None, padding: Ints1 = 0,
                 output_size: Ints1 | None = None) -> Tensor:
    """Invert max_pool2d: put values at the indices of the maxima, zeros elsewhere.

    Input: (N, C, h, w) or (C, h, w), floating point; indices in its shape, int64, as of max_pool with return_indices
    Output: (N, C, H, W) or (C, H, W), of output_size; (l − 1)·stride − 2·padding + kernel along each axis unless given
    Errors: RuntimeError for indices of another shape or dtype, an index outside of the output, or other numbers of
        dimensions; ValueError for an output_size that does not fit; NotImplementedError for integers
    https://pytorch.org/docs → torch.nn.functional.max_unpool2d

    >>> import tensorgrad as torch
    >>> values, places = torch.nn.functional.max_pool2d(torch.tensor([[[1., 2.], [4., 3.]]]), 2, return_indices=True)
    >>> torch.nn.functional.max_unpool2d(values, places, 2)
    tensor([[[0., 0.],
             [4., 0.]]])
    """
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: Ints1, stride: Ints1 | None = None, padding: Ints1 = 0,
                 output_size: Ints1 | None = None) -> Tensor:
    """Invert max_pool3d: put values at the indices of the maxima, zeros elsewhere.

    Input: (N, C, d, h, w) or (C, d, h, w), floating point; indices in its shape, int64, as of max_pool with
        return_indices
    Output: (N, C, D, H, W) or (C, D, H, W), of output_size; (l − 1)·stride − 2·padding + kernel along each axis unless
        given
    Errors: RuntimeError for indices of another shape or dtype, an index outside of the output, or other numbers of
        dimensions; ValueError for an output_size that does not fit; NotImplementedError for integers
    https://pytorch.org/docs → torch.nn.functional.max_unpool3d

    >>> import tensorgrad as torch
    >>> x = torch.arange(8.).reshape(1, 2, 2, 2)
    >>> torch.nn.functional.max_unpool3d(*torch.nn.functional.max_pool3d(x, 2, return_indices=True), 2).flatten()
    tensor([0., 0., 0., 0., 0., 0., 0., 7.])
    """
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)


# ── means ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

avg_pool1d = tg.avg_pool1d


def avg_pool2d(input: Tensor, kernel_size: Ints1, stride: Ints1 | None = None, padding: Ints1 = 0,
               ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
    """The mean of each window.

    The stride is the kernel's size unless given. `divisor_override` divides instead of the number of elements.

    Input: (N, C, H, W) or (C, H, W), floating point
    Output: (N, C, H', W') or (C, H', W'), with L' = ⌊(L + 2·padding − kernel) / stride⌋ + 1 along each axis, or ⌈·⌉
        with `ceil_mode`
    Errors: RuntimeError for other numbers of dimensions, kernel or stride ≤ 0, padding above half the kernel, no
        window that fits, or a divisor of 0; IndexError for less than 3 dimensions
    https://pytorch.org/docs → torch.nn.functional.avg_pool2d

    >>> import tensorgrad as torch
    >>> torch.nn.functional.avg_pool2d(torch.arange(4.).reshape(1, 2, 2), 2)
    tensor([[[1.5000]]])
    """
    return avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(input: Tensor, kernel_size: Ints1, stride: Ints1 | None = None, padding: Ints1 = 0,
               ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
    """The mean of each window.

    The stride is the kernel's size unless given. `divisor_override` divides instead of the number of elements.

    Input: (N, C, D, H, W) or (C, D, H, W), floating point
    Output: (N, C, D', H', W') or (C, D', H', W'), with L' = ⌊(L + 2·padding − kernel) / stride⌋ + 1 along each axis, or
        ⌈·⌉ with `ceil_mode`
    Errors: RuntimeError for other numbers of dimensions, kernel or stride ≤ 0, padding above half the kernel, no
        window that fits, or a divisor of 0
    https://pytorch.org/docs → torch.nn.functional.avg_pool3d

    >>> import tensorgrad as torch
    >>> torch.nn.functional.avg_pool3d(torch.arange(8.).reshape(1, 2, 2, 2), 2)
    tensor([[[[3.5000]]]])
    """
    return avg_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _lp_pool(n: int, input: Any, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Any:
    if n > 1 and isinstance(kernel_size, Iterable):
        kernel_size = tuple(kernel_size)
    _check_ints(f"avg_pool{n}d", kernel_size=kernel_size)
    if isinstance(kernel_size, bool):
        raise TypeError(f"avg_pool{n}d(): argument 'kernel_size' (position 2) must be tuple of ints, not bool")
    if n > 1 and isinstance(kernel_size, tuple) and len(kernel_size) != n:
        raise ValueError(f"not enough values to unpack (expected {n}, got {len(kernel_size)})" if len(kernel_size) < n
                         else
                         f"too many values to unpack (expected {n})")
    mean = avg_pool(n, input ** norm_type, kernel_size, stride, 0, ceil_mode, True, None)
    return (tg.sign(mean) * tg.relu(tg.abs(mean))
            * prod(per_dimension(kernel_size, n, "kernel_size", f"lp_pool{n}d"))) ** (1.0 / norm_type)


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Ints1, stride: Ints1 | None = None,
              ceil_mode: bool = False) -> Tensor:
    """(Σ xᵖ)^(1/p) of each window.

    The stride is the kernel's size unless given.

    Input: (N, C, L) or (C, L)
    Output: (N, C, L') or (C, L'), with lengths as of avg_pool1d without padding
    Errors: RuntimeError for kernel or stride ≤ 0, or no window that fits
    https://pytorch.org/docs → torch.nn.functional.lp_pool1d

    >>> import tensorgrad as torch
    >>> torch.nn.functional.lp_pool1d(torch.tensor([[3., 4., 0., 2.]]), 2, 2)
    tensor([[5., 2.]])
    """
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Ints1, stride: Ints1 | None = None,
              ceil_mode: bool = False) -> Tensor:
    """(Σ xᵖ)^(1/p) of each window.

    The stride is the kernel's size unless given.

    Input: (N, C, H, W) or (C, H, W)
    Output: (N, C, H', W') or (C, H', W'), with lengths as of avg_pool2d without padding
    Errors: RuntimeError for kernel or stride ≤ 0, or no window that fits; ValueError for a kernel of another length
        than 2
    https://pytorch.org/docs → torch.nn.functional.lp_pool2d

    >>> import tensorgrad as torch
    >>> torch.nn.functional.lp_pool2d(torch.tensor([[[3., 0.], [0., 4.]]]), 2, 2)
    tensor([[[5.]]])
    """
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Ints1, stride: Ints1 | None = None,
              ceil_mode: bool = False) -> Tensor:
    """(Σ xᵖ)^(1/p) of each window.

    The stride is the kernel's size unless given.

    Input: (N, C, D, H, W) or (C, D, H, W)
    Output: (N, C, D', H', W') or (C, D', H', W'), with lengths as of avg_pool3d without padding
    Errors: RuntimeError for kernel or stride ≤ 0, or no window that fits; ValueError for a kernel of another length
        than 3
    https://pytorch.org/docs → torch.nn.functional.lp_pool3d

    >>> import tensorgrad as torch
    >>> torch.nn.functional.lp_pool3d(torch.ones(1, 2, 2, 2), 1, 2)
    tensor([[[[8.]]]])
    """
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


# ── to a given size ───────────────────────────────────────────────────────────────────────────────────────────────────

adaptive_avg_pool1d = tg.adaptive_avg_pool1d


def adaptive_avg_pool2d(input: Tensor, output_size: Ints1) -> Tensor:
    """Means over `output_size` windows.

    Input: (N, C, H, W) or (C, H, W), floating point
    Output: (N, C, H', W') or (C, H', W'), of output_size, where None keeps a size
    Errors: RuntimeError for a negative size, another number of sizes, or other numbers of dimensions; ValueError for
        fewer dimensions than sizes; NotImplementedError for integers
    https://pytorch.org/docs → torch.nn.functional.adaptive_avg_pool2d

    >>> import tensorgrad as torch
    >>> torch.nn.functional.adaptive_avg_pool2d(torch.arange(6.).reshape(1, 2, 3), (1, None))
    tensor([[[1.5000, 2.5000, 3.5000]]])
    """
    return adaptive_avg_pool(2, _deep_enough(input, output_size), output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: Ints1) -> Tensor:
    """Means over `output_size` windows.

    Input: (N, C, D, H, W) or (C, D, H, W), floating point
    Output: (N, C, D', H', W') or (C, D', H', W'), of output_size, where None keeps a size
    Errors: RuntimeError for a negative size, another number of sizes, or other numbers of dimensions; ValueError for
        fewer dimensions than sizes; NotImplementedError for integers
    https://pytorch.org/docs → torch.nn.functional.adaptive_avg_pool3d

    >>> import tensorgrad as torch
    >>> torch.nn.functional.adaptive_avg_pool3d(torch.arange(8.).reshape(1, 2, 2, 2), 1)
    tensor([[[[3.5000]]]])
    """
    return adaptive_avg_pool(3, _deep_enough(input, output_size), output_size)


def _deep_enough(input: Any, output_size: Any) -> Any:
    if isinstance(output_size, (tuple, list)) and input.ndim <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    return input


def _make_adaptive_max(n: int) -> tuple[Any, Any]:
    def with_indices(input: Tensor, output_size: Ints1, return_indices: bool = False) -> tuple[Tensor, Tensor]:
        return adaptive_max_pool(n, _deep_enough(input, output_size) if n > 1 else input, output_size)

    def plain(input: Tensor, output_size: Ints1, return_indices: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        found = with_indices(input, output_size)
        return found if return_indices else found[0]
    details = _shapes(
        n, ", real numbers", "the lengths are output_size, where None keeps a length; a tuple with the places in the "
        "flattened plane, int64,\n    with `return_indices`",
        "RuntimeError for a negative size or other numbers of dimensions; RuntimeError or ValueError for another\n    "
        "number of sizes")
    return _named(plain, f"adaptive_max_pool{n}d", "Maxima over as many windows as asked for.", details), _named(
        with_indices, f"adaptive_max_pool{n}d_with_indices",
        "Maxima over as many windows as asked for, and their places.", details)


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _make_adaptive_max(1)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _make_adaptive_max(2)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _make_adaptive_max(3)

# ── random windows ────────────────────────────────────────────────────────────────────────────────────────────────────


def _fractional_size(input: Any, n: int, ratio: Any, name: str) -> list[int]:
    """Return the last `n` sizes times `output_ratio`, rounded down."""
    if n == 2 and len(ratio) > n:
        raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
    ratios = ratio if isinstance(ratio, Iterable) else (ratio,) * n
    return [int(input.size(place - n) * ratios[place]) for place in range(n)]  # type: ignore[index]


def _check_fractional(input: Any, kernel: Any, outs: Any, samples: Any, n: int, name: str) -> None:
    suffix = "_out" if n == 3 else ""
    if input.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"{name}{suffix}(): Expected {n + 1}D or {n + 2}D tensor, but got: {list(input.shape)}")
    for place in range(1 if input.ndim == n + 2 else 0, input.ndim):
        if not input.shape[place]:
            raise RuntimeError(f"{name}{suffix}(): Expected input to have non-zero size for non-batch dimensions, but "
                               f"got{list(input.shape)} with dimension {place} being empty.")
    for d, o, k, what in zip(input.shape[-n:], outs, kernel, ("time", "height", "width")[-n:], strict=True):
        if o + k - 1 > d:
            raise RuntimeError(f"{name}{suffix}(): pool {what} {k} too large relative to input {what} {d}")
    if samples.dtype != input.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if samples.ndim != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.ndim}")
    if samples.shape[0] < (input.shape[0] if input.ndim == n + 2 else 1):
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.shape[1] != input.shape[-n - 1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.shape[2] != n:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {n}; got {samples.shape[2]}.")


def _fractional(n: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Any) -> tuple[Any,
                                                                                                                  Any]:
    """Pool over windows with pseudorandom, evenly spread starts: B. Graham, Fractional Max-Pooling (2014)."""
    name = f"fractional_max_pool{n}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        output_size = _fractional_size(input, n, output_ratio, name)
    if samples is None:
        count = 1 if input.dim() == n + 1 else input.size(0)
        samples = tg.rand(count, input.size(-n - 1), n, dtype=input.dtype, device=input.device)
    from ...api._parsing import check_call
    check_call(name, input, kernel_size, output_size, samples)
    for what, sizes in (("kernel_size", kernel_size), ("output_size", output_size)):
        if isinstance(sizes, (tuple, list)) and len(sizes) != n:
            three = "three " * (n == 3)
            raise RuntimeError(f"{name}: {what} must either be a single Int or tuple of {three}Ints")
    outs, kernel = (per_dimension(output_size, n, "output_size", name),
                    per_dimension(kernel_size, n, "kernel_size", name))
    size = tuple(input.shape[-n:])
    _check_fractional(input, kernel, outs, samples, n, name)
    if input.dtype.is_complex:
        raise NotImplementedError(f"\"fractional_max_pool{n}d_out_frame\" not implemented for "
                                  f"'{SCALAR_TYPES[input.dtype.name]}'")
    batched = input.contiguous() if input.ndim == n + 2 else input.unsqueeze(0)
    count, channels = batched.shape[:2]
    if in_batch(input, samples):
        return each_example(_fractional, n, input, kernel_size, output_size, output_ratio, samples)
    if 0 in outs:
        empty = input.new_empty(*input.shape[:-n], *outs)
        return empty, empty.long()
    places = []
    for us in () if is_hollow(samples) else samples[:count].flatten(0, 1).tolist():
        starts = [_starts(u, *args) for u, args in zip(us[::-1] if n == 2 else us, zip(size, outs, kernel, strict=True),
                                                       strict=True)]
        places.append(window_places(input,
                                    [window_table(s, [a + k for a in s]) for s, k in zip(starts, kernel, strict=True)]))
    each = (count, channels, *outs, prod(kernel))
    values, indices = xp.region_max(batched, tg.stack(places).reshape(each) if places
                                    else input.new_zeros(each, dtype=tg.int64), ndim=n)
    return (values, indices) if input.ndim == n + 2 else (values.squeeze(0), indices.squeeze(0))


def _starts(u: float, size: int, out: int, kernel: int) -> list[int]:
    """Return the starts of the windows along a dimension."""
    if out == 1:
        return [size - kernel]
    alpha = (size - kernel) / (out - 1)
    return [int((i + u) * alpha) - int(u * alpha) for i in range(out - 1)] + [size - kernel]


def _make_fractional(n: int) -> tuple[Any, Any]:
    def with_indices(input: Tensor, kernel_size: Ints1, output_size: Ints1 | None = None,
                     output_ratio: float | Sequence[float] | None = None, return_indices: bool = False,
                     _random_samples: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return _fractional(n, input, kernel_size, output_size, output_ratio, _random_samples)

    def plain(input: Tensor, kernel_size: Ints1, output_size: Ints1 | None = None,
              output_ratio: float | Sequence[float] | None = None, return_indices: bool = False,
              _random_samples: Tensor | None = None) -> Tensor | tuple[Tensor, Tensor]:
        found = _fractional(n, input, kernel_size, output_size, output_ratio, _random_samples)
        return found if return_indices else found[0]
    details = _shapes(
        n, ", real numbers", "the lengths are output_size, or the input's times output_ratio, rounded down; a tuple "
        "with the places in the\n    flattened plane, int64, with `return_indices`",
        "ValueError without output_size and output_ratio; RuntimeError for other numbers of dimensions, or a kernel "
        "too\n    large")
    return _named(plain, f"fractional_max_pool{n}d", "Maxima over windows spread at random.", details), _named(
        with_indices, f"fractional_max_pool{n}d_with_indices",
        "Maxima over windows spread at random, and their places.", details)


fractional_max_pool2d, fractional_max_pool2d_with_indices = _make_fractional(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _make_fractional(3)
