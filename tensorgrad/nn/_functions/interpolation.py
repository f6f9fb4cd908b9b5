"""Resize images. https://pytorch.org/docs/stable/nn.functional.html#vision-functions

Every mode resamples one axis at a time: `nearest` gathers one old element for each new one, the others multiply by a
matrix of weights.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import api as tg
from ..._tensor import Tensor
from ...api._halves import once_rounded
from ...api._kinds import Ints1
from ...api.sampling import cubic
from ...core.dispatch import SCALAR_TYPES, xp
from ...core.step_names import called
from ...messages.warn_once import warn
from ...size import towards_zero, whole
from ...storage.out_of_memory import check_room
from .pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

__all__ = ["interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]

# the axes of an input that each mode is for
AXES = {"linear": 3, "bilinear": 4, "bicubic": 4, "lanczos": 4, "trilinear": 5}
UNITED = "linear | bilinear | bicubic | trilinear"


def interpolate(input: Tensor, size: Ints1 | None = None, scale_factor: float | Sequence[float] | None = None,
                mode: str = "nearest", align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Tensor:
    """Resize the axes after the channels of an input (N, C, …).

    mode: 'nearest', 'nearest-exact', 'linear', 'bilinear', 'bicubic', 'trilinear', 'area', and 'lanczos' with
    antialias.

    Input: (N, C, …), floating point or uint8, with 1 to 3 axes to resize: 1 for 'linear', 2 for 'bilinear', 'bicubic'
        and 'lanczos', 3 for 'trilinear'
    Output: (N, C, *size), or the old sizes times scale_factor, rounded down
    Errors: ValueError for both or none of size and scale_factor, their wrong number, align_corners with 'nearest' and
        'area', or antialias for other modes than 'bilinear', 'bicubic' and 'lanczos'; NotImplementedError for another
        mode, number of dimensions or dtype; RuntimeError for sizes ≤ 0
    https://pytorch.org/docs → torch.nn.functional.interpolate

    >>> import tensorgrad as torch
    >>> x = torch.tensor([[[1., 3.]]])
    >>> torch.nn.functional.interpolate(x, 4), torch.nn.functional.interpolate(x, 4, mode='linear')
    (tensor([[[1., 1., 3., 3.]]]), tensor([[[1.0000, 1.5000, 2.5000, 3.0000]]]))
    """
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(f"align_corners option can only be set with the interpolating modes: {UNITED}")
    sizes, scales = _sizes(input, size, scale_factor, bool(recompute_scale_factor) or mode == "area",
                           bool(recompute_scale_factor))
    _check_mode(input, mode, bool(align_corners), antialias)
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[input.ndim - 3](input, sizes)
    return upsampled(input, sizes, scales, mode, bool(align_corners), antialias)


def upsampled(input: Any, sizes: list[int], scales: list[Any], mode: str, align_corners: bool, antialias: bool) -> Any:
    """Resize to sizes; the scale factors, or their ratios to the old ones, say where the new elements are."""
    _check_sizes(input, sizes, mode)
    if input.device.type == "cpu":
        check_room((*input.shape[:2], *sizes), input.array.itemsize, "interpolate")
    out = _resized(input, sizes, scales, mode, align_corners, antialias)
    if out.requires_grad:
        called(out, f"Upsample{mode.title().replace('-', '')}{len(sizes)}D{'Aa' * antialias}Backward0")
    return out


def _sizes(input: Any, size: Any, scale_factor: Any, recompute: bool, asked: bool) -> tuple[list[int], list[Any]]:
    """Return the new lengths, and the scale factors that determine positions (None: the ratio of lengths)."""
    n, given = input.ndim - 2, "Please provide input tensor in (N, C, d1, d2, ...,dK) format and"
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None:
        if isinstance(size, (tuple, list)):
            if len(size) != n:
                raise ValueError("Input and output must have the same number of spatial dimensions, but got input with "
                                 f"spatial dimensions of {list(input.shape[2:])} and output size of {size}. {given} "
                                 f"output size in (o1, o2, ...,oK) format.")
            if not all(hasattr(s, "__index__") for s in size):
                raise TypeError("expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, "
                                f"int], but got size with types {[type(s) for s in size]}")
        if asked:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        sizes = list(size) if isinstance(size, (tuple, list)) else [size] * n
        if not all(hasattr(s, "__index__") for s in sizes):
            raise TypeError("interpolate(): argument 'size' must be int or tuple of ints")
        return [whole(s) for s in sizes], [None] * n
    if isinstance(scale_factor, (tuple, list)) and len(scale_factor) != n:
        raise ValueError("Input and scale_factor must have the same number of spatial dimensions, but got input with "
                         f"spatial dimensions of {list(input.shape[2:])} and scale_factor of shape {scale_factor}. "
                         f"{given} scale_factor in (s1, s2, ...,sK) format.")
    factors = [float(f) for f in (scale_factor if isinstance(scale_factor, (tuple, list)) else [scale_factor] * n)]
    lengths = [d * f for d, f in zip(input.shape[2:], factors, strict=True)]
    if not all(abs(length) < 2**63 for length in lengths):
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    return [towards_zero(length) for length in lengths], [None] * n if recompute else factors


def _check_mode(input: Any, mode: str, align_corners: bool, antialias: bool) -> None:
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.ndim == 4):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D "
                         "tensor as input")
    wanted = AXES.get(mode)
    if mode in ("linear", "bilinear", "trilinear") and input.ndim in (3, 4, 5) and input.ndim != wanted:
        raise NotImplementedError(f"Got {input.ndim}D input, but {mode} mode needs {wanted}D input")
    if input.ndim not in (3, 4, 5) or (mode not in ("nearest", "nearest-exact", "area") and input.ndim != wanted):
        raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.ndim}D) for "
                                  "the modes: nearest | linear | bilinear"
                                  f" | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})")
    if mode == "lanczos" and align_corners:
        raise ValueError("Lanczos mode does not support align_corners=True")
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")


def _check_sizes(input: Any, sizes: list[int], mode: str) -> None:
    n = len(sizes)
    if any(size <= 0 for size in (*input.shape[2:], *sizes)):
        letters = "DHW"[-n:]
        before, after = (", ".join(f"{a}: {v}" for a, v in zip(letters, values, strict=True))
                         for values in (input.shape[2:], sizes))
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got input ({before}) "
                           f"{'and ' if n == 1 else ''}output ({after})")
    if not input.shape[1]:
        raise RuntimeError(f"Non-empty {n + 2}D data tensor expected but got a tensor with sizes {list(input.shape)}")
    if not input.is_floating_point() and input.dtype is not tg.uint8:
        name = f"upsample_{mode.removesuffix('-exact')}{n}d"
        raise NotImplementedError(f"\"{name}_channels_last\" not implemented for '{SCALAR_TYPES[input.dtype.name]}'")


@once_rounded
def _resized(input: Any, sizes: list[int], scales: list[Any], mode: str, align_corners: bool, antialias: bool) -> Any:
    rounded = input.dtype is tg.uint8 and not mode.startswith("nearest")
    in_bytes = rounded and input.ndim == 4
    precise = tg.float64 if input.dtype is tg.float64 or in_bytes else tg.float32
    out = input.to(precise) if rounded else input
    passes = list(zip(range(2, input.ndim), sizes, scales, strict=True))
    for axis, new, scale in passes[::-1] if in_bytes else passes:
        old = input.shape[axis]
        if mode.startswith("nearest"):
            if new != old:
                places = _nearest(old, new, scale, mode == "nearest-exact", input.device)
                out = xp.upsample_nearest(out, places, axis=axis)
        elif new != old or (scale not in (None, 1.0) or antialias) and not in_bytes:
            places = Places(old, new, scale, align_corners, precise, input.device)
            weights = places.antialiased(mode) if antialias else places.weights(mode)
            out = (_bytes_resampled(out, weights, axis) if in_bytes
                   else xp.resample(out, weights.to(out.dtype), axis=axis))
    return out.round().clamp(0, 255).to(tg.uint8) if rounded else out.clone() if out is input else out


def _bytes_resampled(x: Any, weights: Any, axis: int) -> Any:
    """Resample an axis of a uint8 image as PyTorch does: with 16-bit integer weights, rounding to bytes after each
    axis."""
    most = float(weights.max())
    unit = 2 ** next(bits for bits in range(23) if bits == 22 or int(0.5 + most * 2 ** (bits + 1)) >= 1 << 15)
    whole = (weights * unit + weights.sign() * 0.5).trunc()
    return ((xp.resample(x, whole, axis=axis) + unit // 2) / unit).floor().clamp(0, 255)


def _nearest(old: int, new: int, scale: Any, exact: bool, device: Any) -> Any:
    """Return the index that each new element is read from, computed in single precision as PyTorch does."""
    step = 1 / scale if scale else old / new            # rounded to single precision below
    places = tg.arange(new, dtype=tg.float32, device=device)
    return ((places + 0.5 if exact else places) * step).floor().long().clamp(max=old - 1)


class Places:
    """Positions of the new elements between the old ones, and the matrices (new, old) of interpolation weights."""

    def __init__(self, old: int, new: int, scale: Any, align_corners: bool, dtype: Any, device: Any) -> None:
        self.old, self.align_corners = old, align_corners
        self.step = ((old - 1) / (new - 1) if new > 1 else 0.0) if align_corners else 1 / scale if scale else old / new
        self.i = tg.arange(new, dtype=dtype, device=device)
        self.j = tg.arange(old, dtype=dtype, device=device)

    def weights(self, mode: str) -> Any:
        """Return the weights of linear (two neighbours) or cubic (four neighbours) interpolation."""
        at = self.i * self.step if self.align_corners else (self.i + 0.5) * self.step - 0.5
        if mode != "bicubic":
            at = at.clamp(min=0)
        first = at.floor()
        t = at - first
        taps = [(0, 1 - t), (1, t)] if mode != "bicubic" else [(k, cubic((t - k).abs(), -0.75)) for k in (-1, 0, 1, 2)]
        return sum(self._picked(first + k) * w.unsqueeze(1) for k, w in taps)

    def _picked(self, place: Any) -> Any:
        """Return one-hot rows for indices, clamped to the axis."""
        return (place.clamp(0, self.old - 1).unsqueeze(1) == self.j).to(self.j.dtype)

    def antialiased(self, mode: str) -> Any:
        """Return the weights of a filter that is widened by the step when downsampling."""
        kernel, reach = FILTERS[mode]
        width = max(self.step, 1.0)
        centre = (self.i + 0.5) * self.step
        low, high = ((centre - reach * width + 0.5).trunc().clamp(min=0),
                     (centre + reach * width + 0.5).trunc().clamp(max=self.old))
        inside = (self.j >= low.unsqueeze(1)) & (self.j < high.unsqueeze(1))
        weights = kernel(((self.j + 0.5 - centre.unsqueeze(1)) / width).abs()) * inside
        return weights / weights.sum(1, keepdim=True)


def triangle(x: Any) -> Any:
    return (1 - x).clamp(min=0)


def lanczos(x: Any) -> Any:
    """sinc(x) sinc(x/3) for x < 3, else 0."""
    window = tg.sinc(x) * tg.sinc(x / 3)
    return xp.where(x < 3, window, window * 0)


FILTERS = {"bilinear": (triangle, 1), "bicubic": (lambda x: cubic(x, -0.5), 2), "lanczos": (lanczos, 3)}


# ── deprecated names ──────────────────────────────────────────────────────────────────────────────────────────────────


def _deprecated(name: str) -> None:
    warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.", again=True)


def upsample(input: Tensor, size: Ints1 | None = None, scale_factor: float | Sequence[float] | None = None,
             mode: str = "nearest", align_corners: bool | None = None) -> Tensor:
    """interpolate, under its former name. https://pytorch.org/docs → torch.nn.functional.upsample"""
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Ints1 | None = None,
                     scale_factor: float | Sequence[float] | None = None) -> Tensor:
    """interpolate by the nearest place. https://pytorch.org/docs → torch.nn.functional.upsample_nearest"""
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Ints1 | None = None,
                      scale_factor: float | Sequence[float] | None = None) -> Tensor:
    """interpolate bilinearly, corners aligned. https://pytorch.org/docs → torch.nn.functional.upsample_bilinear"""
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
