"""Move channels to finer pixels, and pixels to channels."""
from __future__ import annotations

from typing import TYPE_CHECKING

from .. import functional as F
from .utils import Functional, settings

if TYPE_CHECKING:
    from ..._tensor import Tensor

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Functional):
    """Spreads r * r channels over the r * r pixels that one pixel becomes (torch.nn.PixelShuffle).

    Parameters:
        upscale_factor: int: required, r
    Input: (*, C * r * r, H, W)
    Output: (*, C, H * r, W * r)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.PixelShuffle(3)(torch.ones(1, 9, 4, 4)).shape
    torch.Size([1, 1, 12, 12])
    """

    __init__ = settings("upscale_factor")

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Functional):
    """Gathers r * r neighbouring pixels in as many channels (torch.nn.PixelUnshuffle): the inverse of PixelShuffle.

    Parameters:
        downscale_factor: int: required, r
    Input: (*, C, H * r, W * r)
    Output: (*, C * r * r, H, W)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.PixelUnshuffle(3)(torch.ones(1, 1, 12, 12)).shape
    torch.Size([1, 9, 4, 4])
    """

    __init__ = settings("downscale_factor")

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)
