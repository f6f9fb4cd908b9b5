"""Images read at places between their elements. https://pytorch.org/docs/stable/nn.functional.html#vision-functions"""
from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

from .._tensor import Tensor
from ..core.dispatch import SCALAR_TYPES, xp
from ..core.step_names import called
from ._halves import once_rounded
from ._register import public

MODES = ("bilinear", "nearest", "bicubic")
PADDING_MODES = ("zeros", "border", "reflection")


@public(method=False)
def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int,
                 align_corners: bool) -> Tensor:
    """`nn.functional.grid_sample` with its modes as numbers.

    interpolation_mode: 0 bilinear, 1 nearest, 2 bicubic; padding_mode, for points outside: 0 zeros, 1 border, 2
    reflection.

    Input: (N, C, H, W), grid (N, H', W', 2), or (N, C, D, H, W), grid (N, D', H', W', 3), floating point of one dtype;
        grid has x first, from −1 to 1 across the image
    Output: (N, C, H', W') or (N, C, D', H', W')
    Errors: RuntimeError if N, the number of axes or the grid's last axis do not match, the image is empty, the dtypes
        differ, or for bicubic volumes; NotImplementedError for integers
    https://pytorch.org/docs → torch.nn.functional.grid_sample

    >>> import tensorgrad as torch
    >>> torch.grid_sampler(torch.tensor([[[[1., 3.]]]]), torch.zeros(1, 1, 1, 2), 0, 0, False)
    tensor([[[[2.]]]])
    """
    if interpolation_mode not in range(len(MODES)) or padding_mode not in range(len(PADDING_MODES)):
        _check(input, grid, "")
        raise RuntimeError(f"grid_sampler(): interpolation_mode must be 0, 1 or 2 and padding_mode 0, 1 or 2, but got "
                           f"{interpolation_mode} and {padding_mode}")
    mode, padding = MODES[interpolation_mode], PADDING_MODES[padding_mode]
    _check(input, grid, mode)
    return _sampled(input, grid, mode, padding, align_corners)


@once_rounded
def _sampled(input: Any, grid: Any, mode: str, padding: str, align_corners: bool) -> Any:
    n, sizes = input.ndim - 2, input.shape[2:]
    flat = input.reshape(*input.shape[:2], prod(sizes))
    points = grid.reshape(grid.shape[0], -1, n)
    # the grid has x, of the last axis, first
    axes = [_unnormalized(points[..., n - 1 - i], d, align_corners) for i, d in enumerate(sizes)]
    border = [lambda at, d=d: _bordered(at, d, padding, align_corners) for d in sizes]
    if mode != "bicubic":
        axes = [inside(at) for inside, at in zip(border, axes, strict=True)]
        border = [lambda at: at] * n
    out = _read(flat, sizes, [TAPS[mode](at) for at in axes], border)
    return called(out.reshape(*input.shape[:2], *grid.shape[1:-1]), f"GridSampler{grid.shape[-1]}DBackward0")


@public(method=False)
def grid_sampler_2d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int,
                    align_corners: bool) -> Tensor:
    """`grid_sampler` for images (N, C, H, W) and grids (N, H', W', 2).

    Input: (N, C, H, W), grid (N, H', W', 2), floating point of one dtype
    Output: (N, C, H', W')
    Errors: RuntimeError and NotImplementedError as for `grid_sampler`, and RuntimeError for volumes
    https://pytorch.org/docs → torch.nn.functional.grid_sample

    >>> import tensorgrad as torch
    >>> torch.grid_sampler_2d(torch.tensor([[[[1., 3.]]]]), torch.zeros(1, 1, 1, 2), 0, 0, False)
    tensor([[[[2.]]]])
    """
    _check_rank(input, grid, 4)
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@public(method=False)
def grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int,
                    align_corners: bool) -> Tensor:
    """`grid_sampler` for volumes (N, C, D, H, W) and grids (N, D', H', W', 3).

    Input: (N, C, D, H, W), grid (N, D', H', W', 3), floating point of one dtype
    Output: (N, C, D', H', W')
    Errors: RuntimeError and NotImplementedError as for `grid_sampler`, and RuntimeError for images
    https://pytorch.org/docs → torch.nn.functional.grid_sample

    >>> import tensorgrad as torch
    >>> torch.grid_sampler_3d(torch.tensor([[[[[1., 3.]]]]]), torch.zeros(1, 1, 1, 1, 3), 0, 0, False)
    tensor([[[[[2.]]]]])
    """
    _check_rank(input, grid, 5)
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


def _check_rank(input: Any, grid: Any, rank: int) -> None:
    if grid.shape[-1] == input.ndim - 2 and not input.ndim == grid.ndim == rank:
        raise RuntimeError(f"grid_sampler(): expected {rank}D input and grid with same number of dimensions, but got "
                           f"input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}")


def _check(input: Any, grid: Any, mode: str) -> None:
    shapes = f"but got input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
    if not input.ndim or not grid.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, {shapes}")
    if grid.shape[-1] != input.ndim - 2:
        raise RuntimeError(f"grid_sampler(): expected grid to have size {input.ndim - 2} in last dimension, but got "
                           f"grid with sizes {list(grid.shape)}")
    for i, d in enumerate(input.shape[2:], 2):
        if d <= 0:
            raise RuntimeError("grid_sampler(): expected input to have non-empty spatial dimensions, but input has "
                               f"sizes {list(input.shape)} with dimension "
                               f"{i} being empty")
    if input.ndim not in (4, 5) or input.ndim != grid.ndim:
        raise RuntimeError(f"grid_sampler(): expected {'4D' if input.ndim == 4 else '5D'} input and grid with same "
                           f"number of dimensions, {shapes}")
    if mode == "bicubic" and input.ndim == 5:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if not input.is_floating_point():
        raise NotImplementedError(f"\"grid_sampler_{input.ndim - 2}d_cpu_kernel_impl\" not implemented for "
                                  f"'{SCALAR_TYPES[input.dtype.name]}'")
    if input.dtype is not grid.dtype:
        raise RuntimeError(f"expected scalar type {SCALAR_TYPES[input.dtype.name]} but found "
                           f"{SCALAR_TYPES[grid.dtype.name]}")


def _unnormalized(at: Any, d: int, aligned: bool) -> Any:
    """From [−1, 1] to places along an axis, rounded once as PyTorch's: an identity's places are whole numbers."""
    if aligned:
        return (at + 1) * ((d - 1) / 2)
    return ((at + 1).double() * (d / 2) - 0.5).to(at.dtype)


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


# place along an axis → neighbours, with their weights
TAPS = {"bilinear": _bilinear, "nearest": _nearest, "bicubic": _bicubic}


def _read(flat: Any, sizes: Any, taps: Any, border: Any) -> Any:
    """Return Σ over neighbours of weight · value; points outside count as zero."""
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


def cubic(x: Any, a: float) -> Any:
    """R. Keys's kernel (1981), for x ≥ 0."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x * a - 5 * a) * x + 8 * a) * x - 4 * a
    return xp.where(x <= 1, near, xp.where(x < 2, far, far * 0))
