"""Pooling: maxima and means over windows, in one to three dimensions.

https://pytorch.org/docs/stable/nn.functional.html#pooling-functions
"""
from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from .._tensor import Tensor
from ..core.dispatch import SCALAR_TYPES, fresh, xp
from ..core.formats import in_channels_last
from ..core.undefined import failing
from ..dtype import channels_last_3d
from ..ops.windows import input_length, pooled_length
from ..size import remembered, towards_zero, whole
from ..storage.out_of_memory import check_room
from ._arguments import refuse
from ._halves import once_rounded
from ._kinds import Ints1
from ._register import public

COUNT = {1: "one int", 2: "two ints", 3: "three ints"}


# ── checks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def per_dimension(value: Any, n: int, name: str, function: str) -> tuple[int, ...]:
    """Return n numbers, a number per dimension, from one number or a sequence of 1 or n."""
    if type(value) is int:
        return (value,) * n
    if isinstance(value, (tuple, list)):
        if len(value) not in (1, n):
            raise RuntimeError(_wrong_count(len(value), n, name, function))
        return tuple(map(int, value)) * (n if len(value) == 1 else 1)
    return (int(value),) * n


def _wrong_count(got: int, n: int, name: str, function: str) -> str:
    if n == 1 and function == "max_pool1d":
        return f"max_pool1d() {name} must be an int, list of ints or tuple of ints of size 1 but got size {got}"
    if n == 1:
        return f"{function}() argument '{name}' should contain one int (got {got})"
    if name == "stride":
        return f"{function}: stride must either be omitted, a single int, or a tuple of {COUNT[n]}"
    either = "be either" if name == "dilation" else "be" if function == "avg_pool3d" else "either be"
    return f"{function}: {name} must {either} a single int, or a tuple of {COUNT[n]}"


def check_shape(shape: tuple[int, ...], n: int, function: str) -> None:
    ndim = len(shape)
    if n == 1 and function == "avg_pool1d":
        if ndim not in (2, 3):
            raise RuntimeError(f"Expected 2 to 3 dimensions, but got {ndim}-dimensional tensor for argument #1 'self' "
                               f"(while checking arguments for {function})")
    elif n == 1:
        if ndim not in (2, 3) or 0 in shape[-2:]:
            raise RuntimeError(f"{function.removesuffix('_with_indices')}: Expected 2D or 3D (batch mode) tensor with "
                               f"optional 0 dim batch size for input, but got:{list(shape)}")
    elif n == 2 and function == "avg_pool2d" and ndim < 3:
        raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}], but got -3)")
    elif ndim not in (n + 1, n + 2):
        raise RuntimeError(f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input")
    elif 0 in shape[-n - 1:]:
        raise RuntimeError(f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for "
                           f"input, but got:{list(shape)}")


class Windows:
    """The checked geometry of a pooling: kernel, stride, padding, dilation, the size of the input and how many windows
    there are.
    """

    def __init__(self, shape: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, ...],
                 padding: tuple[int, ...], dilation: tuple[int, ...],
                 ceil_mode: bool, function: str) -> None:
        channels, *size = shape
        self.kernel, self.stride, self.padding, self.dilation, self.size = (kernel, stride, padding, dilation,
                                                                            tuple(size))
        (_check_max_pool1d if function.startswith("max_pool1d") else _check_windows)(self, len(size))
        self.length = tuple(pooled_length(*args, ceil_mode) for args in
                            zip(self.size, self.kernel, self.stride, self.padding, self.dilation, strict=True))
        # for any padding
        if any(n < 1 for n in self.length) or function == "avg_pool3d" and any(
                k > d for k, d in zip(kernel, size, strict=True)):
            raise RuntimeError(_too_small(self, channels, function))
        self.widths = tuple((p, max(0, seen - n - p))
                            for p, seen, n in zip(self.padding, self.seen(), self.size, strict=True))

    def seen(self) -> tuple[int, ...]:
        """Return how far all windows together extend, from the first element of the first window."""
        reach: tuple[int, ...] = input_length(self.length, self.kernel, self.stride, (0,) * len(self.size),
                                              self.dilation)
        return reach

    def cut(self, out: Any) -> Any:
        """Return the results of the requested windows, without extra ones that start beyond the input."""
        return (out if out.array.shape[-len(self.length):] == self.length
                else out[(..., *(slice(0, v) for v in self.length))])


def windows_of(shape: tuple[int, ...], n: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
               ceil_mode: bool, function: str) -> Windows:
    check_shape(shape, n, function)
    kernel = per_dimension(kernel_size, n, "kernel_size", function)
    omitted = stride is None or (isinstance(stride, (tuple, list)) and not stride)
    step = kernel if omitted else per_dimension(stride, n, "stride", function)
    pad, dilation = per_dimension(padding, n, "padding", function), per_dimension(dilation, n, "dilation", function)
    if max(map(abs, (*kernel, *step, *pad, *dilation))) >= 1 << 31:
        raise RuntimeError("value cannot be converted to type int without overflow")
    return Windows(shape[-n - 1:], kernel, step_within(step, shape[-n:], pad), pad, dilation, ceil_mode, function)


LONGEST_STEP = 1 << 12      # strides up to this are not reduced


def step_within(stride: tuple[int, ...], size: tuple[int, ...], padding: tuple[int, ...]) -> tuple[int, ...]:
    """Reduce strides that lead beyond the input to ones that just do, so that kernels need not handle absurd ones."""
    if max(stride) <= LONGEST_STEP:
        return stride
    return tuple(min(s, max(d + 2 * p, LONGEST_STEP)) for s, d, p in zip(stride, size, padding, strict=True))


known_windows = remembered(windows_of, 1 << 10)


def settled(value: Any) -> Any:
    """Return None, a number or a tuple of ints; a list becomes a tuple."""
    if type(value) is int or value is None or type(value) is tuple and all(type(n) is int for n in value):
        return value
    return tuple(map(towards_zero, value)) if isinstance(value, (tuple, list)) else towards_zero(value)


def windows(input: Any, n: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
            function: str) -> Windows:
    """The windows over the last n axes of a tensor. Their geometry is worked out once for each shape."""
    return known_windows(input.array.shape, n, settled(kernel_size), settled(stride), settled(padding),
                         settled(dilation), ceil_mode, function)


def _check_max_pool1d(w: Windows, n: int) -> None:
    for values, name in ((w.kernel, "kernel_size"), (w.stride, "stride")):
        if values[0] <= 0:
            raise RuntimeError(f"max_pool1d() {name} must be greater than zero, but got {values[0]}")
    if w.padding[0] < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {w.padding[0]}")
    if w.padding[0] > w.kernel[0] // 2:
        raise RuntimeError(f"max_pool1d() padding should be at most half of kernel size, but got "
                           f"padding={w.padding[0]} and kernel_size={w.kernel[0]}")
    if w.dilation[0] <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {w.dilation[0]}")


def _check_windows(w: Windows, n: int) -> None:
    names = ("T", "H", "W")[-max(n, 2):]

    def shown(values: Any, name: str) -> str:
        return " ".join(f"{name.format(letter)}: {v}"
                        for letter, v in zip(names, ((1,) + values)[-len(names):], strict=True))
    if 0 in w.stride:
        raise RuntimeError("stride should not be zero")
    if min(w.kernel) <= 0:
        raise RuntimeError(f"kernel size should be greater than zero, but got {shown(w.kernel, 'k{}')}")
    if min(w.stride) < 0:
        raise RuntimeError(f"stride should be greater than zero, but got {shown(w.stride, 'd{}')}")
    if min(w.dilation) <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got {shown(w.dilation, 'dilation{}')}")
    for p, k, d in zip(w.padding, w.kernel, w.dilation, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} "
                               f"and dilation={d}")


def _too_small(w: Windows, channels: int, function: str) -> str:
    if function == "max_pool1d":            # with indices, PyTorch computes in two dimensions
        return f"max_pool1d() Invalid computed output size: {w.length[0]}"
    if function == "avg_pool3d":
        return "input image ({}) smaller than kernel size ({})".format(
            *(" ".join(f"{name}{letter}: {v}" for letter, v in zip("THW", values, strict=True))
              for name, values
              in (("", w.size), ("k", w.kernel))))
    size, length = (("x".join(map(str, (channels, *(1,) * (len(v) == 1), *v)))) for v in (w.size, w.length))
    return f"Given input size: ({size}). Calculated output size: ({length}). Output size is too small"


# ── maxima ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def max_pool(n: int, input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
             indices: bool = True) -> Any:
    """The largest value of each window, and, if requested, its index in the plane."""
    function = f"max_pool{n}d" + "_with_indices" * (indices and n == 1)
    w = windows(input, n, kernel_size, stride, padding, dilation, ceil_mode, function)
    if (n == 3 and input.ndim == 4 and type(input._storage).ordered is not None and not input.is_contiguous()
            and (volume := input.unsqueeze(0)).is_contiguous(memory_format=channels_last_3d)):
        found = max_pool(n, xp.channels_last(volume), kernel_size, stride, padding, dilation, ceil_mode, indices)
        return tuple(part.squeeze(0) for part in found) if indices else found.squeeze(0)
    if n > 1:
        refuse(input, "bc", f"max_pool{n}d")
    if n == 1 and input.array.dtype.kind not in ("fViu" if indices else "fV"):
        raise NotImplementedError(f"\"max_pool1d_impl\" not implemented for '{SCALAR_TYPES[input.dtype.name]}'")
    geometry = {"kernel": w.kernel, "stride": w.stride, "widths": w.widths, "dilation": w.dilation}
    if not indices:
        return w.cut(xp.max_pool(input, **geometry))
    return tuple(map(w.cut, xp.window_max(input, **geometry)))


@public(method=False)
def max_pool1d(input: Tensor, kernel_size: Ints1, stride: Ints1 | None = None, padding: Ints1 = 0, dilation: Ints1 = 1,
               ceil_mode: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """The largest value of each window.

    The stride is the kernel's size unless given.

    Input: (N, C, L) or (C, L), floating point
    Output: (N, C, L') or (C, L'), with L' = ⌊(L + 2·padding − dilation·(kernel − 1) − 1) / stride⌋ + 1 along each axis,
        or ⌈·⌉ + 1 with `ceil_mode`
    Errors: RuntimeError for other numbers of dimensions, kernel, stride or dilation ≤ 0, padding above half the kernel,
        or no window that fits; NotImplementedError for integers
    https://pytorch.org/docs → torch.nn.functional.max_pool1d

    >>> import tensorgrad as torch
    >>> torch.max_pool1d(torch.tensor([[1., 5., 2., 3.]]), 2)
    tensor([[5., 3.]])
    """
    return max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, False)


@public(method=False)
def max_pool1d_with_indices(input: Tensor, kernel_size: Ints1, stride: Ints1 | None = None, padding: Ints1 = 0,
                            dilation: Ints1 = 1, ceil_mode: bool = False) -> tuple[Tensor, Tensor]:
    """The largest value of each window, and where it is.

    Input: (N, C, L) or (C, L), real numbers
    Output: maxima and their places, int64, both (N, C, L') or (C, L')
    Errors: as for max_pool1d
    https://pytorch.org/docs → torch.nn.functional.max_pool1d

    >>> import tensorgrad as torch
    >>> torch.max_pool1d_with_indices(torch.tensor([[1., 5., 2., 3.]]), 2)
    (tensor([[5., 3.]]), tensor([[1, 3]]))
    """
    return max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode)


@public(method=False)
def max_pool2d(input: Tensor, kernel_size: Ints1, stride: Ints1 | None = None, padding: Ints1 = 0, dilation: Ints1 = 1,
               ceil_mode: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """The largest value of each window.

    The stride is the kernel's size unless given.

    Input: (N, C, H, W) or (C, H, W), real numbers
    Output: (N, C, H', W') or (C, H', W'), with L' = ⌊(L + 2·padding − dilation·(kernel − 1) − 1) / stride⌋ + 1 along
        each axis, or ⌈·⌉ + 1 with `ceil_mode`
    Errors: RuntimeError for other numbers of dimensions, kernel, stride or dilation ≤ 0, padding above half the kernel,
        or no window that fits; NotImplementedError for bools
    https://pytorch.org/docs → torch.nn.functional.max_pool2d

    >>> import tensorgrad as torch
    >>> torch.max_pool2d(torch.arange(16.).reshape(1, 4, 4), 2)
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """
    return max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, False)


@public(method=False)
def max_pool3d(input: Tensor, kernel_size: Ints1, stride: Ints1 | None = None, padding: Ints1 = 0, dilation: Ints1 = 1,
               ceil_mode: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """The largest value of each window.

    The stride is the kernel's size unless given.

    Input: (N, C, D, H, W) or (C, D, H, W), real numbers
    Output: (N, C, D', H', W') or (C, D', H', W'), with L' = ⌊(L + 2·padding − dilation·(kernel − 1) − 1) / stride⌋ + 1
        along each axis, or ⌈·⌉ + 1 with `ceil_mode`
    Errors: RuntimeError for other numbers of dimensions, kernel, stride or dilation ≤ 0, padding above half the kernel,
        or no window that fits; NotImplementedError for bools
    https://pytorch.org/docs → torch.nn.functional.max_pool3d

    >>> import tensorgrad as torch
    >>> torch.max_pool3d(torch.arange(8.).reshape(1, 2, 2, 2), 2)
    tensor([[[[7.]]]])
    """
    return max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, False)


# ── means ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def avg_pool(n: int, input: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
             divisor: Any) -> Any:
    w = windows(input, n, kernel_size, stride, padding, 1, ceil_mode, f"avg_pool{n}d")
    if input.array.dtype.name != "int64":
        refuse(input, "biuc", "avg_pool2d" if n < 3 else "avg_pool3d_out_frame")
    if divisor == 0:
        raise RuntimeError("divisor must be not zero")
    if divisor is None:
        divisor = _divisor(w, count_include_pad)
    geometry = {"kernel": w.kernel, "stride": w.stride, "widths": w.widths}
    if type(divisor) is not list and input.is_floating_point():
        return w.cut(xp.window_sum(input, **geometry, scale=1 / divisor))
    total = w.cut(xp.window_sum(input, **geometry))
    if type(divisor) is list:
        divisor = _outer([input.new_tensor(counts) for counts in divisor])
    return total / divisor if input.is_floating_point() else xp.trunc_divide(total, divisor)


@remembered
def _divisor(w: Windows, count_include_pad: bool) -> Any:
    """Return the number of elements per window: one number if all agree, else a list for each dimension."""
    inside = all(b <= p for (_, b), p in zip(w.widths, w.padding, strict=True))
    if not any(map(any, w.widths)) or (count_include_pad and inside):
        return prod(w.kernel)
    counts = []
    for k, s, p, size, length in zip(w.kernel, w.stride, w.padding, w.size, w.length, strict=True):
        starts = [j * s - p for j in range(length)]
        ends = [min(a + k, size + p) for a in starts]
        counts.append([b - a if count_include_pad else min(b, size) - max(a, 0)
                       for a, b in zip(starts, ends, strict=True)])
    return counts


def _outer(factors: Any) -> Any:
    """The product of a vector along each of the last axes."""
    n = len(factors)
    out = factors[-1]
    for i, f in enumerate(factors[:-1]):
        out = out * f.reshape([-1] + [1] * (n - 1 - i))
    return out


@public(method=False)
def avg_pool1d(input: Tensor, kernel_size: Ints1, stride: Ints1 | None = None, padding: Ints1 = 0,
               ceil_mode: bool = False, count_include_pad: bool = True) -> Tensor:
    """The mean of each window.

    The stride is the kernel's size unless given.

    Input: (N, C, L) or (C, L)
    Output: (N, C, L') or (C, L'), with L' = ⌊(L + 2·padding − kernel) / stride⌋ + 1, or ⌈·⌉ + 1 with `ceil_mode`
    Errors: RuntimeError for other numbers of dimensions, kernel or stride ≤ 0, padding above half the kernel, or no
        window that fits
    https://pytorch.org/docs → torch.nn.functional.avg_pool1d

    >>> import tensorgrad as torch
    >>> torch.avg_pool1d(torch.tensor([[1., 5., 2., 3.]]), 2)
    tensor([[3.0000, 2.5000]])
    """
    return avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


# ── to a given size ───────────────────────────────────────────────────────────────────────────────────────────────────


def adaptive_size(input: Any, output_size: Any, n: int, name: str) -> tuple[int, ...]:
    """Return how many windows to make along each dimension; None means the size of the input."""
    maximal = "max" in name
    if output_size is None:
        raise TypeError(f"{name}(): argument 'output_size' (position 2) must be tuple of ints, not NoneType")
    sizes = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * n
    if n == 1:
        if len(sizes) != 1:
            raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(sizes)})")
        if input.ndim not in (2, 3):
            raise RuntimeError(f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for argument #1 "
                               "'self' (while checking arguments "
                               f"for {name})")
    elif len(sizes) != n:
        raise RuntimeError(f"{name}(): internal error: output_size.size() must be {n}" if maximal
                           else f"{name}: output_size must be {n}")
    if input.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got{':' if maximal else ''} "
                           f"{list(input.shape)}")
    for i in range(max(-n - maximal, 1 - input.ndim) if n == 1 else -n - maximal, 0):
        if input.shape[i] == 0:
            raise RuntimeError(f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input "
                               f"has sizes {list(input.shape)} with "
                               f"dimension {input.ndim + i} being empty")
    out = tuple(d if s is None else whole(s) for s, d in zip(sizes, input.shape[-n:], strict=True))
    if min(out) < 0:
        shape = [*input.shape[:-n], *out]
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(out)}: {shape}" if maximal else
                           f"{name}: elements of output_size must be greater than or equal to 0 but received "
                           f"{{{', '.join(map(str, out))}}}")
    if max(out) >= 1 << 63:
        raise ValueError("Overflow when unpacking long long")
    return out


def bounds(d: int, out: int) -> tuple[Any, Any]:
    """Return the start and the end of each of `out` windows over d elements."""
    places = np.arange(out)
    return places * d // out, -(-(places + 1) * d // out)


def adaptive_avg_pool(n: int, input: Any, output_size: Any) -> Any:
    size = adaptive_size(input, output_size, n, f"adaptive_avg_pool{n}d")
    if n == 1 and size == (1,) and input.array.dtype.kind in "biu":
        raise RuntimeError("mean(): could not infer output dtype. Input dtype must be either a floating point or "
                           f"complex dtype. Got: {SCALAR_TYPES[input.dtype.name]}")
    check_room((*input.shape[:-n], *size), input.array.itemsize, f"adaptive_avg_pool{n}d")
    if not input.is_floating_point():
        raise NotImplementedError(f"\"adaptive_avg_pool{max(n, 2)}d{'_cpu' * (n == 3)}\" not implemented for "
                                  f"'{SCALAR_TYPES[input.dtype.name]}'")
    if all(s == 1 for s in size):
        out = xp.mean(input, axis=tuple(range(input.ndim - n, input.ndim)), keepdims=True)
        return xp.channels_last(out) if input.ndim == n + 2 and in_channels_last(input, 5) else out
    if all(s and d % s == 0 for s, d in zip(size, input.shape[-n:], strict=True)):
        kernel = tuple(d // s for s, d in zip(size, input.shape[-n:], strict=True))
        return xp.window_sum(input, kernel=kernel, stride=kernel, widths=((0, 0),) * n, scale=1 / prod(kernel))
    if 0 in size:
        return _without_gradient(input[..., :0].reshape(*input.shape[:-n], *size), n, "avg")
    return _averaged(input, size)


def _without_gradient(out: Any, n: int, kind: str) -> Any:
    """Return the empty result of a pooling, whose backward raises RuntimeError."""
    shape = list(out.shape) if n > 1 else [*out.shape[:-1], 1, out.shape[-1]]
    at = next(place for place in range(1, len(shape)) if not shape[place])
    return failing(f"adaptive_{kind}_pool{max(n, 2)}d_backward(): Expected grad_output to have non-zero size for "
                   f"non-batch dimensions, but grad_output has sizes {shape} with dimension {at} being empty",
                   out)[0] if out.requires_grad else out


@once_rounded
def _averaged(input: Any, size: Any) -> Any:
    """Products with an averaging matrix along each of the last axes."""
    out, backend = input, type(input._storage)
    for axis, s in enumerate(size, input.ndim - len(size)):
        means = averages(input.shape[axis], s)
        matrix = backend.asarray(means, input.array.dtype if input.array.dtype.kind == "f" else np.dtype("float32"))
        out = xp.average(out, fresh(matrix, backend), axis=axis)
    return out


@lru_cache(maxsize=64)
def averages(d: int, out: int) -> Any:
    """The means of `out` windows over d elements, as a matrix."""
    starts, ends = (places[:, None] for places in bounds(d, out))
    inner = np.arange(d)
    return np.where((starts <= inner) & (inner < ends), 1 / (ends - starts), 0.0)


@public(method=False)
def adaptive_avg_pool1d(input: Tensor, output_size: Ints1) -> Tensor:
    """Means over a given number of windows.

    Input: (N, C, L) or (C, L), floating point
    Output: (N, C, output_size) or (C, output_size)
    Errors: RuntimeError for other numbers of dimensions or a negative size; NotImplementedError for integers
    https://pytorch.org/docs → torch.nn.functional.adaptive_avg_pool1d

    >>> import tensorgrad as torch
    >>> torch.adaptive_avg_pool1d(torch.tensor([[1., 2., 3., 4., 5.]]), 2)
    tensor([[2., 4.]])
    """
    return adaptive_avg_pool(1, input, output_size)


def window_table(starts: Any, ends: Any) -> Any:
    """The places that each window along an axis covers; short windows repeat their last place."""
    starts, ends = np.asarray(starts, np.int64)[:, None], np.asarray(ends, np.int64)[:, None]
    longest = int((ends - starts).max(initial=0)) if len(starts) else 1
    return np.minimum(starts + np.arange(longest), ends - 1)


def window_places(input: Any, tables: list[Any]) -> Any:
    """The places in the flattened plane that each window covers, along a last axis."""
    backend = type(input._storage)
    return fresh(backend.asarray(covered(tuple(input.shape[-len(tables):]), tables)), backend)


def covered(shape: tuple[int, ...], tables: list[Any]) -> Any:
    n, place = len(tables), np.int64(0)
    for i, table in enumerate(tables):
        count, span = table.shape
        place = (place + table.reshape([1] * i + [count] + [1] * (n - 1) + [span] + [1] * (n - 1 - i))
                 * prod(shape[i + 1:]))
    return place.reshape(*place.shape[:n], prod(place.shape[n:]))


def adaptive_max_pool(n: int, input: Any, output_size: Any) -> tuple[Any, Any]:
    size = adaptive_size(input, output_size, n, f"adaptive_max_pool{n}d")
    check_room((*input.shape[:-n], *size), 8, f"adaptive_max_pool{n}d")       # the places are of int64
    refuse(input, "biuc", "adaptive_max_pool2d" if n < 3 else "adaptive_max_pool3d_cpu")
    backend = type(input._storage)
    places = adaptive_places(tuple(input.shape[-n:]), size)
    out, at = xp.region_max(input, fresh(backend.asarray(places), backend), ndim=n)
    return _without_gradient(out, n, "max") if 0 in size else out, at


@lru_cache(maxsize=64)
def adaptive_places(shape: tuple[int, ...], size: tuple[int, ...]) -> Any:
    """Return the positions that each window of adaptive pooling covers in a plane; cached."""
    return covered(shape, [window_table(*bounds(d, s)) for s, d in zip(size, shape, strict=True)])


@public(method=False)
def adaptive_max_pool1d(input: Tensor, output_size: Ints1) -> Tensor | tuple[Tensor, Tensor]:
    """Maxima over a given number of windows, and their indices.

    Input: (N, C, L) or (C, L), real numbers
    Output: maxima and their places, int64, both (N, C, output_size) or (C, output_size)
    Errors: RuntimeError for other numbers of dimensions or a negative size
    https://pytorch.org/docs → torch.nn.functional.adaptive_max_pool1d

    >>> import tensorgrad as torch
    >>> torch.adaptive_max_pool1d(torch.tensor([[1., 2., 3., 4., 5.]]), 2)
    (tensor([[3., 5.]]), tensor([[2, 4]]))
    """
    return adaptive_max_pool(1, input, output_size)
