"""Convolutions, pooling, normalizations, attention and recurrent layers. https://onnx.ai/onnx/operators/"""
from __future__ import annotations

from typing import Any

from ... import api as torch
from ...nn import functional as F
from ._table import number, operator
from ._windows import padded, window, windows
from .matrices import requantized

# ── convolutions ──────────────────────────────────────────────────────────────────────────────────────────────────────

CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
MAX_POOL = {3: F.max_pool1d, 4: F.max_pool2d, 5: F.max_pool3d}
AVERAGE_POOL = {3: F.avg_pool1d, 4: F.avg_pool2d, 5: F.avg_pool3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


@operator("Conv")
def conv(x: Any, w: Any, b: Any = None, *, auto_pad: str = "NOTSET", dilations: Any = None, group: int = 1,
         kernel_shape: Any = None, pads: Any = None, strides: Any = None) -> Any:
    space = window(x, list(w.shape[2:]), strides, dilations, pads, auto_pad)
    x, padding = padded(x, space)
    return CONV[x.ndim - 2](x, w, b, space.strides, padding, space.dilations, group)


@operator("ConvTranspose")
def conv_transpose(x: Any, w: Any, b: Any = None, *, auto_pad: str = "NOTSET", dilations: Any = None, group: int = 1,
                   kernel_shape: Any = None, output_padding: Any = None, output_shape: Any = None, pads: Any = None,
                   strides: Any = None) -> Any:
    n = x.ndim - 2
    strides, dilations = list(strides or [1] * n), list(dilations or [1] * n)
    extra = list(output_padding or [0] * n)
    full = [strides[i] * (x.shape[2 + i] - 1) + extra[i] + (w.shape[2 + i] - 1) * dilations[i] + 1 for i in range(n)]
    before, after = list(pads or [0] * 2 * n)[:n], list(pads or [0] * 2 * n)[n:]
    if output_shape is not None or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        sizes = list(output_shape)[-n:] if output_shape is not None else [
            x.shape[2 + i] * strides[i] for i in range(n)]
        total = [max(full[i] - sizes[i], 0) for i in range(n)]
        before = [t - t // 2 if auto_pad == "SAME_LOWER" else t // 2 for t in total]
        after = [t - p for t, p in zip(total, before, strict=True)]
        full = [s + t for s, t in zip(sizes, total, strict=True)]
    whole = TRANSPOSED[n](x, w, b, strides, 0, 0, group, dilations)
    lacking = [f - whole.shape[2 + i] for i, f in enumerate(full)]
    if any(lacking):        # the result is the bias where no element of x contributes
        rest = [p for amount in reversed(lacking) for p in (0, amount)]
        whole = F.pad(whole, rest) if b is None else F.pad(whole - _channels(b, n), rest) + _channels(b, n)
    cut = [slice(None), slice(None), *(slice(p, f - q) for p, q, f in zip(before, after, full, strict=True))]
    return whole[tuple(cut)]


def _channels(b: Any, n: int) -> Any:
    return b.reshape(-1, *[1] * n)


@operator("DeformConv")
def deformable_conv(x: Any, w: Any, offset: Any, b: Any = None, mask: Any = None, *, dilations: Any = None,
                    group: int = 1, kernel_shape: Any = None, offset_group: int = 1, pads: Any = None,
                    strides: Any = None) -> Any:
    """Convolve with taps that are moved by `offset`, values between pixels being bilinear."""
    space = window(x, list(w.shape[2:]), strides, dilations, pads, "NOTSET")
    (kh, kw), (n, c) = w.shape[2:], x.shape[:2]
    oh, ow = offset.shape[2:]
    moved = offset.reshape(n, offset_group, kh * kw, 2, oh, ow)
    taps = torch.arange(kh * kw)
    rows = ((taps // kw) * space.dilations[0]).reshape(-1, 1, 1) - space.before[0]
    columns = ((taps % kw) * space.dilations[1]).reshape(-1, 1, 1) - space.before[1]
    rows = rows + (torch.arange(oh) * space.strides[0]).reshape(1, -1, 1) + moved[:, :, :, 0]
    columns = columns + (torch.arange(ow) * space.strides[1]).reshape(1, 1, -1) + moved[:, :, :, 1]
    parts = x.reshape(n * offset_group, c // offset_group, *x.shape[2:])
    h, width = x.shape[2:]
    grid = torch.stack([(2 * columns.double() + 1) / width - 1, (2 * rows.double() + 1) / h - 1], -1)
    sampled = F.grid_sample(parts.double(), grid.reshape(n * offset_group, kh * kw * oh, ow, 2), align_corners=False)
    sampled = sampled.to(x.dtype)
    sampled = sampled.reshape(n, offset_group, c // offset_group, kh * kw, oh, ow)
    if mask is not None:
        sampled = sampled * mask.reshape(n, offset_group, 1, kh * kw, oh, ow)
    rows = sampled.reshape(n, group, c // group * kh * kw, oh * ow)
    found = torch.matmul(w.reshape(group, w.shape[0] // group, -1), rows).reshape(n, -1, oh, ow)
    return found if b is None else found + _channels(b, 2)


@operator("ConvInteger")
def conv_integer(x: Any, w: Any, x_zero: Any = None, w_zero: Any = None, **space: Any) -> Any:
    """Products of at most 2^16 fit into float64 exactly."""
    x = x.double() if x_zero is None else x.double() - x_zero.double()
    w = w.double() if w_zero is None else w.double() - (w_zero.double() if w_zero.ndim == 0 or w_zero.numel() == 1
                                                       else w_zero.double().reshape(-1, *[1] * (w.ndim - 1)))
    return conv(x, w, **space).to(torch.int32)


@operator("QLinearConv")
def quantized_conv(x: Any, x_scale: Any, x_zero: Any, w: Any, w_scale: Any, w_zero: Any, y_scale: Any, y_zero: Any,
                   b: Any = None, **space: Any) -> Any:
    exact = conv_integer(x, w, x_zero, w_zero, **space).double()
    exact = exact if b is None else exact + _channels(b.double(), x.ndim - 2)
    scale = (w_scale.double() * x_scale.double() / y_scale.double())
    return requantized(exact * (scale if scale.numel() == 1 else _channels(scale, x.ndim - 2)), y_zero)


@operator("Col2Im")
def columns_to_image(x: Any, image_shape: Any, block_shape: Any, *, dilations: Any = None, pads: Any = None,
                     strides: Any = None) -> Any:
    """Add blocks up where they overlap, in any number of dimensions."""
    image, block = image_shape.tolist(), block_shape.tolist()
    n, taps = len(image), 1
    for k in block:
        taps *= k
    dilations, strides, pads = dilations or [1] * n, strides or [1] * n, pads or [0] * 2 * n
    channels = x.shape[1] // taps
    whole = [image[i] + pads[i] + pads[n + i] for i in range(n)]
    steps = [(whole[i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(n)]
    flat = torch.zeros((), dtype=torch.int64)
    for i in range(n):      # places of taps × steps along each axis
        at = (torch.arange(block[i]) * dilations[i]).unsqueeze(1) + torch.arange(steps[i]) * strides[i]
        shape = [1] * 2 * n
        shape[i], shape[n + i] = block[i], steps[i]
        flat = flat * whole[i] + at.reshape(shape)
    places = flat.reshape(-1).expand(x.shape[0], channels, -1)
    size = 1
    for w in whole:
        size *= w
    found = torch.zeros(x.shape[0], channels, size, dtype=x.dtype).scatter_add(2, places, x.reshape(places.shape))
    cut = tuple(slice(pads[i], pads[i] + image[i]) for i in range(n))
    return found.reshape(x.shape[0], channels, *whole)[(slice(None), slice(None), *cut)]


# ── pooling ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@operator("MaxPool", outputs=True)
def max_pool(x: Any, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: Any = None, kernel_shape: Any,
             pads: Any = None, storage_order: int = 0, strides: Any = None, outputs: int) -> Any:
    space = window(x, kernel_shape, strides, dilations, pads, auto_pad, bool(ceil_mode))
    if space.even and x.is_floating_point() and x.ndim in MAX_POOL and outputs < 2:
        return MAX_POOL[x.ndim](x, space.kernel, space.strides, space.before, space.dilations)
    least = float("-inf") if x.is_floating_point() else torch.iinfo(x.dtype).min
    values, taps = windows(x, space, least).max(-1)
    if outputs < 2:
        return values
    return values, _places(x, space, taps, storage_order)


def _places(x: Any, space: Any, taps: Any, storage_order: int) -> Any:
    """Return the index in x, flattened, of the largest element of each window."""
    n = x.ndim - 2
    rests, flat = taps, torch.zeros((), dtype=torch.int64)
    at: list[Any] = [None] * n
    for i in reversed(range(n)):
        step = torch.arange(taps.shape[2 + i]).reshape([-1 if j == 2 + i else 1 for j in range(x.ndim)])
        at[i] = step * space.strides[i] + rests % space.kernel[i] * space.dilations[i] - space.before[i]
        rests = rests // space.kernel[i]
    for i in reversed(range(n)) if storage_order else range(n):
        flat = flat * x.shape[2 + i] + at[i]
    size = x[0, 0].numel()
    first = torch.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *[1] * n) * size
    return flat + first


@operator("AveragePool")
def average_pool(x: Any, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, count_include_pad: int = 0,
                 dilations: Any = None, kernel_shape: Any, pads: Any = None, strides: Any = None) -> Any:
    space = window(x, kernel_shape, strides, dilations, pads, auto_pad, bool(ceil_mode))
    if space.even and x.ndim in AVERAGE_POOL and max(space.dilations) == 1:
        return AVERAGE_POOL[x.ndim](x, space.kernel, space.strides, space.before,
                                    count_include_pad=bool(count_include_pad))
    ones = torch.ones(1, 1, *x.shape[2:], dtype=x.dtype)
    if count_include_pad:       # elements beyond the padding, due to rounding up, do not count
        ones = F.pad(ones, [p for i in reversed(range(x.ndim - 2)) for p in (space.before[i], space.given[i])], value=1)
        space_of_ones = space.moved()
    else:
        space_of_ones = space
    return windows(x, space, 0).sum(-1) / windows(ones, space_of_ones, 0).sum(-1)


@operator("LpPool")
def lp_pool(x: Any, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: Any = None, kernel_shape: Any,
            p: int = 2, pads: Any = None, strides: Any = None) -> Any:
    space = window(x, kernel_shape, strides, dilations, pads, auto_pad, bool(ceil_mode))
    return windows(torch.abs(x) ** p, space, 0).sum(-1) ** (1 / p)


@operator("GlobalAveragePool")
def global_average_pool(x: Any) -> Any:
    return torch.mean(x, list(range(2, x.ndim)), True)


@operator("GlobalMaxPool")
def global_max_pool(x: Any) -> Any:
    return torch.amax(x, list(range(2, x.ndim)), True)


@operator("GlobalLpPool")
def global_lp_pool(x: Any, *, p: int = 2) -> Any:
    return torch.sum(torch.abs(x) ** p, list(range(2, x.ndim)), True) ** (1 / p)


@operator("MaxUnpool")
def max_unpool(x: Any, places: Any, shape: Any = None, *, kernel_shape: Any, pads: Any = None,
               strides: Any = None) -> Any:
    n = x.ndim - 2
    strides, pads = strides or [1] * n, pads or [0] * 2 * n
    sizes = [(x.shape[2 + i] - 1) * strides[i] + kernel_shape[i] - pads[i] - pads[n + i] for i in range(n)]
    whole = [*x.shape[:2], *sizes] if shape is None else shape.tolist()
    plain = 1
    for size in [*x.shape[:2], *sizes]:
        plain *= size
    found = torch.zeros(plain, dtype=x.dtype).scatter(0, places.reshape(-1), x.reshape(-1))
    found = found.reshape([*x.shape[:2], *sizes])
    if list(found.shape) == list(whole):
        return found
    return F.pad(found, [p for i in reversed(range(n)) for p in (0, whole[2 + i] - sizes[i])])


# ── normalizations ────────────────────────────────────────────────────────────────────────────────────────────────────


@operator("BatchNormalization", fixed=(3, 4), outputs=True)
def batch_normalization(x: Any, scale: Any, b: Any, mean: Any, variance: Any, *, epsilon: float = 1e-5,
                        momentum: float = 0.9, training_mode: int = 0, spatial: int = 1, is_test: int = 1,
                        consumed_inputs: Any = None, outputs: int) -> Any:
    if not training_mode:
        return F.batch_norm(x, mean, variance, scale, b, False, 0.0, epsilon)
    axes = [i for i in range(x.ndim) if i != 1]
    found, spread = torch.mean(x, axes), torch.var(x, axes, correction=0)
    y = F.batch_norm(x, found, spread, scale, b, False, 0.0, epsilon)
    rest = (mean * momentum + found * (1 - momentum), variance * momentum + spread * (1 - momentum))
    return (y, *rest)[:max(outputs, 1)] if outputs > 1 else y


@operator("InstanceNormalization")
def instance_normalization(x: Any, scale: Any, b: Any, *, epsilon: float = 1e-5, consumed_inputs: Any = None) -> Any:
    return F.instance_norm(x, None, None, scale, b, True, 0.0, epsilon)


@operator("GroupNormalization")
def group_normalization_of_groups(x: Any, scale: Any, b: Any, *, epsilon: float = 1e-5, num_groups: int) -> Any:
    many = x.shape[1] // num_groups
    return F.group_norm(x, num_groups, scale.repeat_interleave(many), b.repeat_interleave(many), epsilon)


@operator("GroupNormalization", since=21)
def group_normalization(x: Any, scale: Any, b: Any, *, epsilon: float = 1e-5, num_groups: int,
                        stash_type: int = 1) -> Any:
    return F.group_norm(x, num_groups, scale, b, epsilon)


@operator("LayerNormalization", outputs=True)
def layer_normalization(x: Any, scale: Any, b: Any = None, *, axis: int = -1, epsilon: float = 1e-5,
                        stash_type: int = 1, outputs: int) -> Any:
    shape = x.shape[axis % x.ndim:]
    if outputs < 2:
        full = tuple(scale.shape) == tuple(shape) and (b is None or tuple(b.shape) == tuple(shape))
        if full:
            return F.layer_norm(x, shape, scale, b, epsilon)
        y = F.layer_norm(x, shape, None, None, epsilon) * scale
        return y if b is None else y + b
    axes = list(range(axis % x.ndim, x.ndim))
    mean = torch.mean(x, axes, True)
    inverse = torch.rsqrt(torch.var(x, axes, correction=0, keepdim=True) + epsilon)
    y = (x - mean) * inverse * scale
    return (y if b is None else y + b, mean, inverse)[:outputs]


@operator("RMSNormalization")
def rms_normalization(x: Any, scale: Any, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> Any:
    axes = list(range(axis % x.ndim, x.ndim))
    wide = x.float() if x.dtype.itemsize < 4 else x
    return (wide * torch.rsqrt(torch.mean(wide * wide, axes, True) + epsilon)).to(x.dtype) * scale


@operator("LRN")
def local_response_normalization(x: Any, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0,
                                 size: int) -> Any:
    """y = x / (bias + alpha / size · Σ x² over `size` channels round each) ^ beta"""
    before = (size - 1) // 2
    squares = F.pad(x * x, [0] * 2 * (x.ndim - 2) + [before, size - 1 - before])
    total = squares.unfold(1, size, 1).sum(-1)
    return x / (bias + alpha / size * total) ** beta


@operator("Dropout", outputs=True)
def dropout_never(x: Any, *, ratio: float = 0.5, is_test: int = 1, consumed_inputs: Any = None, outputs: int) -> Any:
    return (x, torch.ones_like(x, dtype=torch.bool))[:outputs] if outputs > 1 else x


@operator("Dropout", since=12, outputs=True)
def dropout(x: Any, ratio: Any = None, training: Any = None, *, seed: int | None = None, outputs: int) -> Any:
    share = 0.5 if ratio is None else float(number(ratio))
    if training is None or not number(training) or share == 0:
        return dropout_never(x, outputs=outputs)
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    mask = torch.rand(x.shape, generator=generator) >= share
    y = torch.where(mask, x / (1 - share), torch.zeros_like(x))
    return (y, mask)[:outputs] if outputs > 1 else y
