"""Images read at the places of a grid. M. Jaderberg et al., Spatial Transformer Networks (2015)

https://pytorch.org/docs/stable/nn.functional.html#vision-functions
"""
from __future__ import annotations

import warnings
from itertools import product
from math import prod
from typing import Any

from ... import api as tg
from ...dispatch import SCALAR_TYPES, xp
from .interpolation import cubic

__all__ = ["affine_grid", "grid_sample"]


def _aligned(align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify align_corners=True if the "
                      "old behavior is desired. See the documentation of grid_sample for details.", stacklevel=3)
    return bool(align_corners)


# ── the grid of an affine map ─────────────────────────────────────────────────────────────────────────────────────────


def affine_grid(theta: Any, size: Any, align_corners: bool | None = None) -> Any:
    """Where affine maps (N, 2, 3) or (N, 3, 4) send each place of an image of a size. https://pytorch.org/docs → torch.nn.functional.affine_grid

    >>> import tensorgrad as torch
    >>> identity = torch.tensor([[[1., 0., 0.], [0., 1., 0.]]])
    >>> torch.nn.functional.affine_grid(identity, (1, 1, 1, 2), align_corners=False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    aligned, size = _aligned(align_corners), tuple(size)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
                                  f"{size}.")
    if tuple(theta.shape[1:]) != (n, n + 1):
        raise ValueError(f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. Got {theta.shape}.")
    if aligned and min(size[2:]) == 1:
        warnings.warn("Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This is not an intended use case "
                      "of affine_grid. See the documentation of affine_grid for details.", stacklevel=2)
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    if size[0] != theta.shape[0]:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{size[0]}, {n + 1}] but got: "
                           f"[{theta.shape[0]}, {n + 1}].")
    axes = [_line(d, aligned, theta) for d in size[2:]]
    places = [*tg.meshgrid(*axes, indexing="ij")][::-1]                 # x, y, z: the last axis first
    base = tg.stack([p.reshape(-1) for p in places] + [tg.ones(prod(size[2:]), dtype=theta.dtype, device=theta.device)], dim=-1)
    return (base @ theta.transpose(1, 2)).reshape(size[0], *size[2:], n)


def _line(d: int, aligned: bool, like: Any) -> Any:
    """d places from −1 to 1: of the centres of the outermost elements, or within their outer edges."""
    if d <= 1:
        return like.new_zeros(d)
    line = tg.linspace(-1, 1, d, dtype=like.dtype, device=like.device)
    return line if aligned else line * ((d - 1) / d)


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def grid_sample(input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None) -> Any:
    """The input (N, C, H, W) read at places (x, y) between −1 and 1, (N, H', W', 2); likewise with three axes.

    mode: 'bilinear', 'nearest' or 'bicubic'; padding_mode: what lies outside: 'zeros', 'border' or 'reflection'.
    https://pytorch.org/docs → torch.nn.functional.grid_sample

    >>> import tensorgrad as torch
    >>> torch.nn.functional.grid_sample(torch.tensor([[[[1., 3.]]]]), torch.zeros(1, 1, 1, 2), align_corners=False)
    tensor([[[[2.]]]])
    """
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{padding_mode}'")
    aligned = _aligned(align_corners)
    _check(input, grid, mode)
    n, sizes = input.ndim - 2, input.shape[2:]
    flat = input.reshape(*input.shape[:2], prod(sizes))
    points = grid.reshape(grid.shape[0], -1, n)
    axes = [_unnormalized(points[..., n - 1 - i], d, aligned) for i, d in enumerate(sizes)]      # the grid has x, of the last axis, first
    border = [lambda at, d=d: _bordered(at, d, padding_mode, aligned) for d in sizes]
    if mode != "bicubic":
        axes = [inside(at) for inside, at in zip(border, axes, strict=True)]
        border = [lambda at: at] * n
    out = _read(flat, sizes, [TAPS[mode](at) for at in axes], border)
    return out.reshape(*input.shape[:2], *grid.shape[1:-1])


def _check(input: Any, grid: Any, mode: str) -> None:
    shapes = f"but got input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, {shapes}")
    if grid.shape[-1] != input.ndim - 2:
        raise RuntimeError(f"grid_sampler(): expected grid to have size {input.ndim - 2} in last dimension, but got grid with sizes "
                           f"{list(grid.shape)}")
    for i, d in enumerate(input.shape[2:], 2):
        if d <= 0:
            raise RuntimeError("grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                               f"{list(input.shape)} with dimension "
                               f"{i} being empty")
    if input.ndim not in (4, 5) or input.ndim != grid.ndim:
        raise RuntimeError(f"grid_sampler(): expected {'5D' if input.ndim == 5 else '4D'} input and grid with same number of dimensions, {shapes}")
    if mode == "bicubic" and input.ndim == 5:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if not input.is_floating_point():
        raise NotImplementedError(f"\"grid_sampler_{input.ndim - 2}d_cpu_kernel_impl\" not implemented for '{SCALAR_TYPES[input.dtype.name]}'")
    if input.dtype is not grid.dtype:
        raise RuntimeError(f"expected scalar type {SCALAR_TYPES[input.dtype.name]} but found {SCALAR_TYPES[grid.dtype.name]}")


def _unnormalized(at: Any, d: int, aligned: bool) -> Any:
    """From [−1, 1] to places along an axis."""
    return (at + 1) / 2 * (d - 1) if aligned else ((at + 1) * d - 1) / 2


def _bordered(at: Any, d: int, padding_mode: str, aligned: bool) -> Any:
    """Places brought inside the axis; their gradient is zero where they are moved to an end."""
    if padding_mode == "reflection":
        at = _reflected(at, (0, d - 1) if aligned else (-0.5, d - 0.5))
    return at if padding_mode == "zeros" else xp.where((at > 0) & (at < d - 1), at, at.detach().clamp(0, d - 1))


def _reflected(at: Any, ends: tuple[float, float]) -> Any:
    low, span = ends[0], ends[1] - ends[0]
    if not span:
        return at * 0
    away = (at - low).abs()
    times = (away.detach() / span).floor()
    rest = away - times * span
    return xp.where(times % 2 == 0, rest + low, span - rest + low)


def _bilinear(at: Any) -> list[tuple[Any, Any]]:
    first = at.detach().floor()
    t = at - first
    return [(first, 1 - t), (first + 1, t)]


def _nearest(at: Any) -> list[tuple[Any, Any]]:
    place = at.round()
    return [(place.detach(), place - place.detach() + 1)]


def _bicubic(at: Any) -> list[tuple[Any, Any]]:
    first = at.detach().floor()
    t = at - first
    return [(first + k, cubic((t - k).abs(), -0.75)) for k in (-1, 0, 1, 2)]


TAPS = {"bilinear": _bilinear, "nearest": _nearest, "bicubic": _bicubic}       # place along an axis → neighbours, with their weights


def _read(flat: Any, sizes: Any, taps: Any, border: Any) -> Any:
    """Σ over neighbours of weight · value; what lies outside is zero."""
    total: Any = 0
    for chosen in product(*taps):
        index, weight = None, None
        for (place, w), d, inside in zip(chosen, sizes, border, strict=True):
            place = inside(place)
            within = (place >= 0) & (place < d)
            w = xp.where(within, w, 0)
            place = xp.where(within, place, 0).long()
            index, weight = (place, w) if index is None else (index * d + place, weight * w)
        values = flat.gather(2, index.unsqueeze(1).expand(-1, flat.shape[1], -1))
        total = total + values * weight.unsqueeze(1)
    return total
