"""Operators that sample images: resizing, grids, regions. https://onnx.ai/onnx/operators/"""
from __future__ import annotations

from functools import reduce
from typing import Any

from ... import api as torch
from ...nn import functional as F
from ._table import numbers, operator

# ── resizing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@operator("Upsample")
def upsample_fixed(x: Any, *, scales: Any = None, mode: str = "nearest", height_scale: float = 1.0,
                   width_scale: float = 1.0) -> Any:
    return upsample(x, scales or [1, 1, height_scale, width_scale], mode=mode)


@operator("Upsample", since=9, fixed=(1,))
@operator("Resize", since=10, fixed=(1,))
def upsample(x: Any, scales: Any, *, mode: str = "nearest") -> Any:
    """Resize by scales; the coordinates of a pixel are those of its corner."""
    return resize(x, None, scales, coordinate_transformation_mode="asymmetric", mode=mode, nearest_mode="floor")


@operator("Resize", since=11, fixed=(1, 2, 3))
def resize(x: Any, roi: Any = None, scales: Any = None, sizes: Any = None, *, antialias: int = 0, axes: Any = None,
           coordinate_transformation_mode: str = "half_pixel", cubic_coeff_a: float = -0.75, exclude_outside: int = 0,
           extrapolation_value: float = 0.0, keep_aspect_ratio_policy: str = "stretch", mode: str = "nearest",
           nearest_mode: str = "round_prefer_floor") -> Any:
    """Resize along each axis by a matrix of weights, or for `nearest` by the elements it picks."""
    places = [axis % x.ndim for axis in (range(x.ndim) if axes is None else axes)]
    factors, lengths = _factors(x, places, None if scales is None else numbers(scales),
                                None if sizes is None else numbers(sizes), keep_aspect_ratio_policy)
    region = None if roi is None else numbers(roi)
    outside = None
    for i, (axis, factor, length) in enumerate(zip(places, factors, lengths, strict=True)):
        corners = (0.0, 1.0) if not region else (region[i], region[len(places) + i])
        n = x.shape[axis]
        at = _coordinates(length, n, factor, coordinate_transformation_mode, corners)
        if coordinate_transformation_mode == "tf_crop_and_resize":
            shape = [-1 if j == axis else 1 for j in range(x.ndim)]
            beyond = ((at < 0) | (at > n - 1)).reshape(shape)
            outside = beyond if outside is None else outside | beyond
        elif length == n and factor == 1:
            continue
        if mode == "nearest":
            x = x.index_select(axis, _nearest(at, nearest_mode).clamp(0, n - 1))
            continue
        weights = _weights(at, n, factor if antialias and factor < 1 else 1.0, mode, cubic_coeff_a,
                           bool(exclude_outside))
        x = torch.matmul(x.movedim(axis, -1), weights.to(x.dtype if x.is_floating_point() else torch.float32).t()
                         ).movedim(-1, axis) if x.is_floating_point() else _of_integers(x, axis, weights)
    return x if outside is None else torch.where(outside, torch.full((), extrapolation_value, dtype=x.dtype), x)


def _of_integers(x: Any, axis: int, weights: Any) -> Any:
    found = torch.matmul(x.double().movedim(axis, -1), weights.t()).movedim(-1, axis)
    limits = torch.iinfo(x.dtype)
    return torch.clamp(torch.round(found), limits.min, limits.max).to(x.dtype)


def _factors(x: Any, axes: list[int], scales: Any, sizes: Any, policy: str) -> tuple[list[float], list[int]]:
    """Return the scale and the new size of each axis."""
    if not sizes:
        return list(scales), [int(x.shape[axis] * scale) for axis, scale in zip(axes, scales, strict=True)]
    factors = [size / x.shape[axis] for axis, size in zip(axes, sizes, strict=True)]
    if policy == "stretch":
        return factors, [int(size) for size in sizes]
    common = min(factors) if policy == "not_larger" else max(factors)
    return [common] * len(axes), [int(common * x.shape[axis] + 0.5) for axis in axes]


def _coordinates(length: int, n: int, factor: float, mode: str, region: tuple[float, float]) -> Any:
    """Return where in an axis of n elements the elements of the new axis are."""
    i = torch.arange(length, dtype=torch.float64)
    if mode == "asymmetric":
        return i / factor
    if mode == "align_corners":
        return i * ((n - 1) / (factor * n - 1)) if length > 1 else i * 0
    if mode == "pytorch_half_pixel" and length <= 1:
        return i * 0
    if mode == "tf_half_pixel_for_nn":
        return (i + 0.5) / factor
    if mode == "tf_crop_and_resize":
        start, end = region
        if length > 1:
            return start * (n - 1) + i * (end - start) * (n - 1) / (length - 1)
        return i * 0 + 0.5 * (start + end) * (n - 1)
    if mode == "half_pixel_symmetric":      # keep the center of the image if the size was rounded
        adjusted = length / (factor * n)
        return n / 2 * (1 - adjusted) + (i + 0.5) / factor - 0.5
    return (i + 0.5) / factor - 0.5


def _nearest(at: Any, mode: str) -> Any:
    if mode == "floor":
        return torch.floor(at).long()
    if mode == "ceil":
        return torch.ceil(at).long()
    if mode == "round_prefer_ceil":
        return torch.floor(at + 0.5).long()
    return torch.ceil(at - 0.5).long()


def _cubic(d: Any, a: float) -> Any:
    """Keys' kernel of cubic convolution."""
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return torch.where(d <= 1, near, torch.where(d < 2, far, torch.zeros_like(d)))


def _weights(at: Any, n: int, shrink: float, mode: str, a: float, exclude: bool) -> Any:
    """Return the matrix (new, old) of weights; elements beyond the ends have the value of the last."""
    reach = (1 if mode == "linear" else 2) / shrink
    first = torch.floor(at - reach).long()
    taps = torch.arange(int(2 * reach) + 3)
    places = first.unsqueeze(1) + taps
    d = torch.abs(places.double() - at.unsqueeze(1)) * shrink
    weights = torch.clamp(1 - d, min=0) if mode == "linear" else _cubic(d, a)
    if exclude:
        weights = torch.where((places >= 0) & (places < n), weights, torch.zeros_like(weights))
    weights = weights / weights.sum(1, keepdim=True)
    matrix = torch.zeros(at.shape[0], n, dtype=torch.float64)
    return matrix.scatter_add(1, places.clamp(0, n - 1), weights)


# ── grids and regions ─────────────────────────────────────────────────────────────────────────────────────────────────


@operator("GridSample")
def grid_sample_16(x: Any, grid: Any, *, align_corners: int = 0, mode: str = "bilinear",
                   padding_mode: str = "zeros") -> Any:
    return grid_sample(x, grid, align_corners=align_corners, mode=mode, padding_mode=padding_mode)


@operator("GridSample", since=20)
def grid_sample(x: Any, grid: Any, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros") -> Any:
    ours = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    return F.grid_sample(x, grid.to(x.dtype), ours, padding_mode, bool(align_corners))


@operator("AffineGrid")
def affine_grid(theta: Any, size: Any, *, align_corners: int = 0) -> Any:
    return F.affine_grid(theta, numbers(size), align_corners=bool(align_corners))


@operator("CenterCropPad")
def center_crop_pad(x: Any, shape: Any, *, axes: Any = None) -> Any:
    places = list(range(x.ndim)) if axes is None else [axis % x.ndim for axis in axes]
    for axis, size in zip(places, numbers(shape), strict=True):
        lacking = size - x.shape[axis]
        if lacking < 0:
            x = x.narrow(axis, -lacking // 2, size)
        elif lacking > 0:
            flat = [0] * 2 * x.ndim
            flat[2 * (x.ndim - 1 - axis)], flat[2 * (x.ndim - 1 - axis) + 1] = lacking // 2, lacking - lacking // 2
            x = F.pad(x, flat)
    return x


@operator("RoiAlign", fixed=(1,))
def roi_align_of_corners(x: Any, rois: Any, images: Any, **attributes: Any) -> Any:
    return roi_align(x, rois, images, coordinate_transformation_mode="output_half_pixel", **attributes)


@operator("RoiAlign", fixed=(1,), since=16)
def roi_align(x: Any, rois: Any, images: Any, *, coordinate_transformation_mode: str = "half_pixel", mode: str = "avg",
              output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0,
              spatial_scale: float = 1.0) -> Any:
    """Average or maximum over points of each cell of each region, values between pixels being bilinear."""
    half = coordinate_transformation_mode == "half_pixel"
    found = []
    for image, box in zip(images.tolist(), (rois * spatial_scale - (0.5 if half else 0)).tolist(), strict=True):
        x1, y1, x2, y2 = box
        w, h = (x2 - x1, y2 - y1) if half else (max(x2 - x1, 1.0), max(y2 - y1, 1.0))
        nx, ny = (sampling_ratio or int(-(-w // output_width)), sampling_ratio or int(-(-h // output_height)))
        if nx < 1 or ny < 1:                    # a region without points
            found.append(x.new_zeros(x.shape[1], output_height, output_width))
            continue
        columns = _line(x1, w / output_width, output_width, nx, x.shape[3], x.dtype)
        rows = _line(y1, h / output_height, output_height, ny, x.shape[2], x.dtype)
        if mode == "avg":
            grid = torch.matmul(torch.matmul(rows.sum(2), x[image]), columns.sum(2).t())
            found.append(grid.reshape(-1, output_height, ny, output_width, nx).mean((2, 4)))
        else:       # the largest of the products of each corner with its weight
            corners = reduce(torch.maximum, [torch.matmul(torch.matmul(rows[..., a], x[image]), columns[..., b].t())
                                for a in range(2) for b in range(2)])
            found.append(corners.reshape(-1, output_height, ny, output_width, nx).amax((2, 4)))
    if not found:
        return torch.zeros(0, x.shape[1], output_height, output_width, dtype=x.dtype)
    return torch.stack(found)


def _line(start: float, step: float, cells: int, points: int, n: int, dtype: Any) -> Any:
    """Return (points of all cells, n, 2): weights of the elements before and after each point."""
    i = torch.arange(cells * points, dtype=torch.float64)
    at = start + (i // points) * step + (i % points + 0.5) * (step / points)
    within = (at >= -1) & (at <= n)
    at = at.clamp(0, n - 1)
    low = torch.floor(at).long().clamp(0, n - 1)
    high = (low + 1).clamp(0, n - 1)
    part = torch.where(within, at - low, torch.zeros_like(at))
    rest = torch.where(within, 1 - (at - low), torch.zeros_like(at))
    found = torch.zeros(cells * points, n, 2, dtype=torch.float64)
    rows = torch.arange(cells * points)
    found[rows, low, 0] = rest
    found[rows, high, 1] = part
    return found.to(dtype)
