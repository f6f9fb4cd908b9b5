"""Resize images, and move channels to pixels and back."""
from .. import nn
from .native import Native

__all__ = [
    "ChannelShuffle", "PixelShuffle", "PixelUnshuffle", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d",
]


class Upsample(Native, nn.Upsample): _example = "scale_factor=2", (2, 3, 4, 4), (2, 3, 8, 8)
class UpsamplingNearest2d(Native, nn.UpsamplingNearest2d): _example = "scale_factor=2", (2, 3, 4, 4), (2, 3, 8, 8)
class UpsamplingBilinear2d(Native, nn.UpsamplingBilinear2d): _example = "scale_factor=2", (2, 3, 4, 4), (2, 3, 8, 8)


class PixelShuffle(Native, nn.PixelShuffle): _example = "2", (2, 8, 3, 3), (2, 2, 6, 6)
class PixelUnshuffle(Native, nn.PixelUnshuffle): _example = "2", (2, 2, 6, 6), (2, 8, 3, 3)
class ChannelShuffle(Native, nn.ChannelShuffle): _example = "2", (2, 4, 3, 3), (2, 4, 3, 3)
