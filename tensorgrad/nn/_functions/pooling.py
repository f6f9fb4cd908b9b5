"""Pooling. https://pytorch.org/docs/stable/nn.functional.html#pooling-functions"""
from __future__ import annotations

from math import prod
from typing import Any

from ... import api as tg
from ...dispatch import xp

__all__ = ["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool1d_with_indices",
           "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "avg_pool1d",
           "avg_pool2d", "avg_pool3d", "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
           "fractional_max_pool3d_with_indices", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d", "max_pool1d_with_indices", "max_pool2d",
           "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d"]


def per_dimension(value: Any, n: int, name: str, function: str) -> tuple[int, ...]:
    if isinstance(value, (tuple, list)):
        if len(value) not in (1, n):
            raise RuntimeError(f"{function}: {name} must either be a single int, or a tuple of {n} ints")
        return tuple(map(int, value)) * (n if len(value) == 1 else 1)
    return (int(value),) * n


def _check_input(input: Any, n: int, function: str) -> None:
    if input.ndim not in (n + 1, n + 2) or 0 in input.shape[-n - 1 if input.ndim == n + 1 else -n - 1:]:
        raise RuntimeError(f"{function}: Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input, but got: "
                           f"{list(input.shape)}" if n > 1 else
                           f"Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got: {list(input.shape)}")


def window_length(d: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """How many windows fit; in ceil mode also the last that starts within the input or its left padding."""
    span = d + 2 * padding - dilation * (kernel - 1) - 1
    length = (span + (stride - 1 if ceil_mode else 0)) // stride + 1
    return length - 1 if ceil_mode and (length - 1) * stride >= d + padding else length


def _windows(input: Any, n: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, function: str) -> Any:
    """The checked arguments of pooling: kernel, stride, widths of the border, dilation, output length."""
    _check_input(input, n, function)
    kernel = per_dimension(kernel_size, n, "kernel_size", function)
    stride = kernel if stride is None or (isinstance(stride, (tuple, list)) and not stride) else per_dimension(stride, n, "stride", function)
    padding, dilation = per_dimension(padding, n, "padding", function), per_dimension(dilation, n, "dilation", function)
    if any(k <= 0 for k in kernel):
        raise RuntimeError(f"kernel size should be greater than zero, but got kH: {kernel[0]} kW: {kernel[-1]}")
    if any(s <= 0 for s in stride):
        raise RuntimeError("stride should not be zero" if 0 in stride else f"stride should be greater than zero, but got dH: {stride[0]} dW: {stride[-1]}")
    if any(d <= 0 for d in dilation):
        raise RuntimeError(f"dilation should be greater than zero, but got dilationH: {dilation[0]} dilationW: {dilation[-1]}")
    for p, k, d in zip(padding, kernel, dilation, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={d}")
    size = tuple(input.shape[-n:])
    length = tuple(window_length(*args, ceil_mode) for args in zip(size, kernel, stride, padding, dilation, strict=True))
    if any(v < 1 for v in length):
        raise RuntimeError(f"Given input size: ({'x'.join(map(str, input.shape[-n - 1:]))}). Calculated output size: "
                           f"({'x'.join(map(str, (input.shape[-n - 1], *length)))}). Output size is too small")
    widths = tuple((p, max(0, (v - 1) * s + d * (k - 1) + 1 - size_ - p))
                   for p, v, s, d, k, size_ in zip(padding, length, stride, dilation, kernel, size, strict=True))
    return kernel, stride, padding, widths, dilation, size, length


# ── maxima ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _max_pool(n: int, input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    kernel, stride, _, widths, dilation, _, length = _windows(input, n, kernel_size, stride, padding, dilation, ceil_mode, f"max_pool{n}d")
    values, indices = xp.window_max(input, kernel=kernel, stride=stride, widths=widths, dilation=dilation)
    cut = (..., *(slice(0, v) for v in length))
    return (values, indices) if tuple(values.shape[-n:]) == length else (values[cut], indices[cut])


def _make_max_pool(n: int) -> tuple[Any, Any]:
    def with_indices(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
                     return_indices: bool = False) -> Any:
        return _max_pool(n, input, kernel_size, stride, padding, dilation, ceil_mode)

    def plain(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
              return_indices: bool = False) -> Any:
        found = _max_pool(n, input, kernel_size, stride, padding, dilation, ceil_mode)
        return found if return_indices else found[0]
    return _named(plain, f"max_pool{n}d", "The largest value of each window."), _named(
        with_indices, f"max_pool{n}d_with_indices", "The largest value of each window, and its place in the plane.")


def _named(f: Any, name: str, what: str) -> Any:
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"{what} https://pytorch.org/docs → torch.nn.functional.{name}"
    return f


max_pool1d, max_pool1d_with_indices = _make_max_pool(1)
max_pool2d, max_pool2d_with_indices = _make_max_pool(2)
max_pool3d, max_pool3d_with_indices = _make_max_pool(3)


def _unpool(n: int, input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any) -> Any:
    name = f"max_unpool{n}d"
    kernel = per_dimension(kernel_size, n, "kernel_size", name)
    stride = kernel if stride is None else per_dimension(stride, n, "stride", name)
    padding = per_dimension(padding, n, "padding", name)
    default = [(d - 1) * s + k - 2 * p for d, s, k, p in zip(input.shape[-n:], stride, kernel, padding, strict=True)]
    if output_size is None:
        size = default
    else:
        size = list(output_size)[-n:] if len(output_size) in (n, n + 2, n + 1) else None
        if size is None:
            raise ValueError(f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of '{len(output_size)}'")
        for got, d, s in zip(size, default, stride, strict=True):
            if not d - s < got < d + s:
                raise ValueError(f'invalid output_size "{size}" (dim 0 must be between {d - s} and {d + s})')
    if indices.dtype is not tg.int64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {indices.type().removeprefix('torch.').removesuffix('Tensor')}")
    if tuple(indices.shape) != tuple(input.shape):
        raise RuntimeError(f"Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got indices tensor with shape: "
                           f"{list(indices.shape)}")
    shape = (*input.shape[:-n], *size)
    if indices.numel() and not (0 <= int(indices.min()) and int(indices.max()) < prod(size)):
        raise RuntimeError(f"Found an invalid max index: {int(indices.max())} (output volumes are of size {'x'.join(map(str, size))}")
    flat = (prod(input.shape[:-n]), prod(input.shape[-n:]))
    zeros = input.new_zeros(flat[0], prod(size))
    return xp.scatter(zeros, xp.reshape(input, shape=flat), xp.reshape(indices, shape=flat), axis=1).reshape(shape)


def max_unpool1d(input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None) -> Any:
    """Values put back where max_pool1d found them, zeros elsewhere. https://pytorch.org/docs → torch.nn.functional.max_unpool1d"""
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None) -> Any:
    """Values put back where max_pool2d found them, zeros elsewhere. https://pytorch.org/docs → torch.nn.functional.max_unpool2d"""
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None) -> Any:
    """Values put back where max_pool3d found them, zeros elsewhere. https://pytorch.org/docs → torch.nn.functional.max_unpool3d"""
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)


# ── means ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _avg_pool(n: int, input: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
              divisor_override: Any) -> Any:
    kernel, stride, padding, widths, _, size, length = _windows(input, n, kernel_size, stride, padding, 1, ceil_mode, f"avg_pool{n}d")
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    out = xp.window_sum(input, kernel=kernel, stride=stride, widths=widths)
    if tuple(out.shape[-n:]) != length:
        out = out[(..., *(slice(0, v) for v in length))]
    if divisor_override is not None:
        return out / divisor_override
    if not any(a or b for a, b in widths) or (count_include_pad and all(b <= p for (_, b), p in zip(widths, padding, strict=True))):
        return out / prod(kernel)
    return out / _counts(input, kernel, stride, padding, size, length, count_include_pad)


def _counts(input: Any, kernel: Any, stride: Any, padding: Any, size: Any, length: Any, count_include_pad: bool) -> Any:
    """How many elements each window has: those of the input, or also those of the padding."""
    counts: Any = None
    n = len(kernel)
    for i in range(n):
        axis = []
        for j in range(length[i]):
            start = j * stride[i] - padding[i]
            end = min(start + kernel[i], size[i] + padding[i])
            axis.append(end - start if count_include_pad else min(end, size[i]) - max(start, 0))
        part = tg.tensor(axis, dtype=input.dtype, device=input.device).reshape([-1 if k == i else 1 for k in range(n)])
        counts = part if counts is None else counts * part
    return counts


def avg_pool1d(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True) -> Any:
    """The mean of each window. https://pytorch.org/docs → torch.nn.functional.avg_pool1d"""
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
               divisor_override: Any = None) -> Any:
    """The mean of each window. https://pytorch.org/docs → torch.nn.functional.avg_pool2d"""
    return _avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
               divisor_override: Any = None) -> Any:
    """The mean of each window. https://pytorch.org/docs → torch.nn.functional.avg_pool3d"""
    return _avg_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _lp_pool(n: int, input: Any, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Any:
    kernel = per_dimension(kernel_size, n, "kernel_size", f"lp_pool{n}d")
    mean = _avg_pool(n, input ** norm_type, kernel_size, stride, 0, ceil_mode, True, None)
    return (tg.sign(mean) * tg.relu(tg.abs(mean)) * prod(kernel)) ** (1.0 / norm_type)


def lp_pool1d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
    """(Σ xᵖ)^(1/p) of each window. https://pytorch.org/docs → torch.nn.functional.lp_pool1d"""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
    """(Σ xᵖ)^(1/p) of each window. https://pytorch.org/docs → torch.nn.functional.lp_pool2d"""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
    """(Σ xᵖ)^(1/p) of each window. https://pytorch.org/docs → torch.nn.functional.lp_pool3d"""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


# ── to a given size ───────────────────────────────────────────────────────────────────────────────────────────────────


def _adaptive_size(input: Any, output_size: Any, n: int, name: str) -> tuple[int, ...]:
    if input.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got {list(input.shape)}")
    for i in range(1, input.ndim):
        if input.shape[i] == 0 and i >= input.ndim - n:
            raise RuntimeError(f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {list(input.shape)} with "
                               f"dimension {i} being empty")
    sizes = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * n
    if len(sizes) == 1:
        sizes *= n
    if len(sizes) != n:
        raise RuntimeError(f"{name}: internal error: output_size.size() must be {n}" if n == 2 else f"{name}: output_size must be {n} elements")
    out = tuple(d if s is None else int(s) for s, d in zip(sizes, input.shape[-n:], strict=True))
    if any(s < 0 for s in out):
        raise RuntimeError(f"elements of output_size must be greater than or equal to 0 but received {list(out)}")
    return out


def _bounds(d: int, out: int) -> list[tuple[int, int]]:
    """Where each of `out` windows over d elements starts and ends."""
    return [(i * d // out, -(-(i + 1) * d // out)) for i in range(out)]


def _adaptive_avg(n: int, input: Any, output_size: Any) -> Any:
    size = _adaptive_size(input, output_size, n, f"adaptive_avg_pool{n}d")
    if all(s and d % s == 0 for s, d in zip(size, input.shape[-n:], strict=True)):
        if all(s == 1 for s in size):
            return input.mean(dim=tuple(range(-n, 0)), keepdim=True)
        kernel = tuple(d // s for s, d in zip(size, input.shape[-n:], strict=True))
        return xp.window_sum(input, kernel=kernel, stride=kernel, widths=((0, 0),) * n) / prod(kernel)
    out = input
    for i, (s, d) in enumerate(zip(size, input.shape[-n:], strict=True)):        # a product with an averaging matrix along each axis
        rows = [[1 / (b - a) if a <= j < b else 0.0 for j in range(d)] for a, b in _bounds(d, s)]
        weights = tg.tensor(rows, dtype=input.dtype, device=input.device).reshape(s, d)
        out = (out.transpose(i - n, -1) @ weights.t()).transpose(i - n, -1)
    return out


def adaptive_avg_pool1d(input: Any, output_size: Any) -> Any:
    """Means over as many windows as asked for. https://pytorch.org/docs → torch.nn.functional.adaptive_avg_pool1d"""
    return _adaptive_avg(1, input, output_size)


def adaptive_avg_pool2d(input: Any, output_size: Any) -> Any:
    """Means over as many windows as asked for. https://pytorch.org/docs → torch.nn.functional.adaptive_avg_pool2d"""
    return _adaptive_avg(2, input, output_size)


def adaptive_avg_pool3d(input: Any, output_size: Any) -> Any:
    """Means over as many windows as asked for. https://pytorch.org/docs → torch.nn.functional.adaptive_avg_pool3d"""
    return _adaptive_avg(3, input, output_size)


def _window_table(d: int, starts: Any, ends: Any, device: Any) -> Any:
    """The places that each window along an axis covers, (windows, longest); short windows repeat their last place."""
    longest = max((b - a for a, b in zip(starts, ends, strict=True)), default=1)
    rows = [[min(a + j, b - 1) for j in range(longest)] for a, b in zip(starts, ends, strict=True)]
    return tg.tensor(rows, dtype=tg.int64, device=device).reshape(len(rows), longest)


def _max_over(input: Any, tables: list[Any]) -> tuple[Any, Any]:
    """The largest value of windows given by their places along each axis, and its place in the plane."""
    n, size = len(tables), input.shape[-len(tables):]
    place: Any = 0
    for i, table in enumerate(tables):
        shape = [1] * (2 * n)
        shape[i], shape[n + i] = table.shape
        place = place + table.reshape(shape) * prod(size[i + 1:])
    outs, cells = place.shape[:n], prod(place.shape[n:])
    place = place.reshape(prod(outs), cells)
    flat = input.reshape(*input.shape[:-n], prod(size))
    windows = flat[..., place.reshape(-1)].reshape(*input.shape[:-n], *place.shape)
    values, which = windows.max(dim=-1)
    indices = place.expand(*which.shape, cells).gather(-1, which.unsqueeze(-1)).squeeze(-1)
    shape = (*input.shape[:-n], *outs)
    return values.reshape(shape), indices.reshape(shape)


def _adaptive_max(n: int, input: Any, output_size: Any) -> tuple[Any, Any]:
    size = _adaptive_size(input, output_size, n, f"adaptive_max_pool{n}d")
    tables = []
    for s, d in zip(size, input.shape[-n:], strict=True):
        bounds = _bounds(d, s)
        tables.append(_window_table(d, [a for a, _ in bounds], [b for _, b in bounds], input.device))
    return _max_over(input, tables)


def _make_adaptive_max(n: int) -> tuple[Any, Any]:
    def with_indices(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        return _adaptive_max(n, input, output_size)

    def plain(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        found = _adaptive_max(n, input, output_size)
        return found if return_indices else found[0]
    return _named(plain, f"adaptive_max_pool{n}d", "Maxima over as many windows as asked for."), _named(
        with_indices, f"adaptive_max_pool{n}d_with_indices", "Maxima over as many windows as asked for, and their places.")


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _make_adaptive_max(1)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _make_adaptive_max(2)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _make_adaptive_max(3)

# ── random windows ────────────────────────────────────────────────────────────────────────────────────────────────────


def _fractional(n: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Any) -> tuple[Any, Any]:
    """Windows whose starts are spread at random but evenly: B. Graham, Fractional Max-Pooling (2014)."""
    name = f"fractional_max_pool{n}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    kernel = per_dimension(kernel_size, n, "kernel_size", name)
    size = tuple(input.shape[-n:])
    if output_size is None:
        ratio = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * n
        outs = tuple(int(d * r) for d, r in zip(size, ratio, strict=True))
    else:
        outs = per_dimension(output_size, n, "output_size", name)
    for d, o, k in zip(size, outs, kernel, strict=True):
        if o + k - 1 > d:
            raise RuntimeError(f"{name}(): pool height {k} too large relative to input height {d}")
    batched = input if input.ndim == n + 2 else input.unsqueeze(0)
    count, channels = batched.shape[:2]
    if samples is None:
        samples = tg.rand(count, channels, n, dtype=input.dtype, device=input.device)
    planes_ = []
    for b in range(count):
        for c in range(channels):
            tables = []
            for i in range(n):
                u = float(samples[b, c, n - 1 - i])
                starts = _starts(u, size[i], outs[i], kernel[i])
                tables.append(_window_table(size[i], starts, [s + kernel[i] for s in starts], input.device))
            planes_.append(_max_over(batched[b, c], tables))
    shape = (*batched.shape[:2], *outs)
    values, indices = (tg.stack([p[k] for p in planes_]).reshape(shape) for k in (0, 1))
    return (values, indices) if input.ndim == n + 2 else (values.squeeze(0), indices.squeeze(0))


def _starts(u: float, size: int, out: int, kernel: int) -> list[int]:
    if out == 1:
        return [size - kernel]
    alpha = (size - kernel) / (out - 1)
    return [int((i + u) * alpha) - int(u * alpha) for i in range(out - 1)] + [size - kernel]


def _make_fractional(n: int) -> tuple[Any, Any]:
    def with_indices(input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
                     _random_samples: Any = None) -> Any:
        return _fractional(n, input, kernel_size, output_size, output_ratio, _random_samples)

    def plain(input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
              _random_samples: Any = None) -> Any:
        found = _fractional(n, input, kernel_size, output_size, output_ratio, _random_samples)
        return found if return_indices else found[0]
    return _named(plain, f"fractional_max_pool{n}d", "Maxima over windows spread at random."), _named(
        with_indices, f"fractional_max_pool{n}d_with_indices", "Maxima over windows spread at random, and their places.")


fractional_max_pool2d, fractional_max_pool2d_with_indices = _make_fractional(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _make_fractional(3)

