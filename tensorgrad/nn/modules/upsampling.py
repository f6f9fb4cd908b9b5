"""Interpolation to another size."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import functional as F
from .utils import Functional, settings

if TYPE_CHECKING:
    from ..._tensor import Tensor

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Functional):
    """Resamples the input to another resolution (torch.nn.Upsample).

    Parameters:
        size: int or tuple: None, of the output: this or scale_factor
        scale_factor: float or tuple: None, output size over input size
        mode: str: 'nearest', 'nearest-exact', 'linear' (L), 'bilinear' or 'bicubic' (H, W), 'trilinear' (D, H, W)
        align_corners: bool: None, True to align the centres of the corner pixels of input and output
        recompute_scale_factor: bool: None, True to interpolate by the ratio of the sizes instead of the factor
    Input: (N, C, L), (N, C, H, W) or (N, C, D, H, W)
    Output: the same, with other sizes after C
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Upsample(scale_factor=2)(torch.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    __constants__ = ["size", "scale_factor", "mode", "align_corners", "name", "recompute_scale_factor"]
    __init__ = settings(size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None)

    def _keep(self, scale_factor, **others):
        if isinstance(scale_factor, tuple):
            scale_factor = tuple(map(float, scale_factor))
        else:
            scale_factor = float(scale_factor) if scale_factor else None
        super()._keep(name=type(self).__name__, scale_factor=scale_factor, **others)

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners,
                             recompute_scale_factor=self.recompute_scale_factor)

    def __setstate__(self, state: Any) -> None:
        super().__setstate__({"recompute_scale_factor": True, **state})

    def extra_repr(self) -> str:
        which = "size" if self.scale_factor is None else "scale_factor"
        return f"{which}={getattr(self, which)!r}, mode={self.mode!r}"


class _Upsampling2d(Upsample):
    """Base of the 2d layers: Upsample with a fixed mode."""

    _choice: dict

    def _keep(self, size, scale_factor):
        super()._keep(size=size, scale_factor=scale_factor, recompute_scale_factor=None, **self._choice)


class UpsamplingNearest2d(_Upsampling2d):
    """Resamples images by the nearest pixel (torch.nn.UpsamplingNearest2d).

    Parameters:
        size: int or tuple: None, of the output: this or scale_factor
        scale_factor: float or tuple: None, output size over input size
    Input: (N, C, H, W)
    Output: (N, C, H', W')
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.UpsamplingNearest2d(scale_factor=2)(torch.ones(1, 1, 2, 3)).shape
    torch.Size([1, 1, 4, 6])
    """

    __constants__ = Upsample.__constants__
    __init__ = settings(size=None, scale_factor=None)
    _choice = {"mode": "nearest", "align_corners": None}


class UpsamplingBilinear2d(_Upsampling2d):
    """Resamples images bilinearly, with aligned corners (torch.nn.UpsamplingBilinear2d).

    Parameters:
        size: int or tuple: None, of the output: this or scale_factor
        scale_factor: float or tuple: None, output size over input size
    Input: (N, C, H, W)
    Output: (N, C, H', W')
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.UpsamplingBilinear2d(scale_factor=2)(torch.tensor([[[[1.0, 4.0]]]]))
    tensor([[[[1., 2., 3., 4.],
              [1., 2., 3., 4.]]]])
    """

    __constants__ = Upsample.__constants__
    __init__ = settings(size=None, scale_factor=None)
    _choice = {"mode": "bilinear", "align_corners": True}
