"""Sample images at the points of a grid. M. Jaderberg et al., Spatial Transformer Networks (2015)

https://pytorch.org/docs/stable/nn.functional.html#vision-functions
"""
from __future__ import annotations

from math import prod
from typing import Any

from ... import api as tg
from ..._tensor import Tensor
from ..._tensor.torch_function import namespaced
from ...api._kinds import Ints
from ...api.sampling import MODES, PADDING_MODES
from ...messages.warn_once import warn

__all__ = ["affine_grid", "grid_sample"]


def _aligned(align_corners: bool | None) -> bool:
    if align_corners is None:
        warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. "
             "Please specify align_corners=True if the old behavior is desired. See the documentation of "
             "grid_sample for details.", again=True)
    return bool(align_corners)


# ── the grid of an affine map ─────────────────────────────────────────────────────────────────────────────────────────


def affine_grid(theta: Tensor, size: Ints, align_corners: bool | None = None) -> Tensor:
    """Return the images of a grid's points under affine maps (N, 2, 3) or (N, 3, 4).

    Input: theta (N, 2, 3) or (N, 3, 4), floating point; size (N, C, H, W) or (N, C, D, H, W)
    Output: (N, H, W, 2) or (N, D, H, W, 3): x, y (and z), from −1 to 1 across the image
    Errors: ValueError for a theta of integers or another shape, or sizes ≤ 0; NotImplementedError for other lengths of
        size; RuntimeError if the N differ
    https://pytorch.org/docs → torch.nn.functional.affine_grid

    >>> import tensorgrad as torch
    >>> identity = torch.tensor([[[1., 0., 0.], [0., 1., 0.]]])
    >>> torch.nn.functional.affine_grid(identity, (1, 1, 1, 2), align_corners=False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    aligned, size = _aligned(align_corners), tuple(size)
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
                                  f"respectively. Got size {size}.")
    if tuple(theta.shape[1:]) != (n, n + 1):
        raise ValueError(f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. Got "
                         f"{theta.shape}.")
    if aligned and min(size[2:]) == 1:
        warn("Since version 1.3.0, affine_grid behavior has changed for unit-size grids when "
             "align_corners=True. This is not an intended use case of affine_grid. See the documentation of "
             "affine_grid for details.", again=True)
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    if size[0] != theta.shape[0]:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{size[0]}, {n + 1}] but "
                           f"got: [{theta.shape[0]}, {n + 1}].")
    return _grid(theta, size, aligned)


def _grid(theta: Tensor, size: tuple[int, ...], aligned: bool) -> Tensor:
    n = len(size) - 2
    axes = [_line(d, aligned, theta) for d in size[2:]]
    places = [*tg.meshgrid(*axes, indexing="ij")][::-1]                 # x, y, z: the last axis first
    base = tg.stack([p.reshape(-1) for p in places] + [tg.ones(prod(size[2:]), dtype=theta.dtype, device=theta.device)],
                    dim=-1)
    return (base @ theta.transpose(1, 2)).reshape(size[0], *size[2:], n)


def affine_grid_generator(theta: Tensor, size: Ints, align_corners: bool) -> Tensor:
    """`affine_grid` without its checks of `theta` and its warning: PyTorch's operator beneath it.

    https://pytorch.org/docs → torch.nn.functional.affine_grid
    """
    if len(size) not in (4, 5):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    return _grid(theta, tuple(size), align_corners)


def _line(d: int, aligned: bool, like: Any) -> Any:
    """Return d positions in [−1, 1]; ±1 are the centres of the outermost elements if `aligned`, else their outer
    edges.
    """
    if d <= 1:
        return like.new_zeros(d)
    line = tg.linspace(-1, 1, d, dtype=like.dtype, device=like.device)
    return line if aligned else line * (d - 1) / d      # two roundings, as in PyTorch: identities hit the centres


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Tensor:
    """Sample the input (N, C, H, W) at points (x, y) between −1 and 1, (N, H', W', 2); likewise with three axes.

    −1 and 1 are the borders of the image, or with `align_corners` the centres of its outermost elements. mode:
    'bilinear', 'nearest' or 'bicubic'; padding_mode, for points outside of the image: 'zeros', 'border' or
    'reflection'.

    Input: (N, C, H, W), with grid (N, H', W', 2) of points (x, y); or (N, C, D, H, W) and (N, D', H', W', 3), in one
        floating point dtype
    Output: (N, C, H', W') or (N, C, D', H', W')
    Errors: ValueError for another mode or padding_mode; RuntimeError if shapes or dtypes do not fit;
        NotImplementedError for integers
    https://pytorch.org/docs → torch.nn.functional.grid_sample

    >>> import tensorgrad as torch
    >>> torch.nn.functional.grid_sample(torch.tensor([[[[1., 3.]]]]), torch.zeros(1, 1, 1, 2), align_corners=False)
    tensor([[[[2.]]]])
    """
    if mode not in MODES:
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but "
                         f"got: '{mode}'")
    if padding_mode not in PADDING_MODES:
        raise ValueError(f"nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
                         f"'reflection', but got: '{padding_mode}'")
    return tg.grid_sampler(input, grid, MODES.index(mode), PADDING_MODES.index(padding_mode), _aligned(align_corners))


globals().update(namespaced({"affine_grid_generator": affine_grid_generator}, __name__.partition(".")[0]))
