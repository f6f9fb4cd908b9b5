"""Pooling: reduce each window to a number."""
from .. import api as tg
from .. import nn
from .native import Native

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
]


class MaxPool1d(Native, nn.MaxPool1d): _example = "3", (2, 3, 9), (2, 3, 3)
class MaxPool2d(Native, nn.MaxPool2d): _example = "3", (2, 3, 9, 9), (2, 3, 3, 3)
class MaxPool3d(Native, nn.MaxPool3d): _example = "3", (2, 3, 9, 9, 9), (2, 3, 3, 3, 3)


class AvgPool1d(Native, nn.AvgPool1d): _example = "3, stride=2", (2, 3, 9), (2, 3, 4)
class AvgPool2d(Native, nn.AvgPool2d): _example = "3, stride=2", (2, 3, 9, 9), (2, 3, 4, 4)
class AvgPool3d(Native, nn.AvgPool3d): _example = "3, stride=2", (2, 3, 9, 9, 9), (2, 3, 4, 4, 4)


class LPPool1d(Native, nn.LPPool1d): _example = "2, 3", (2, 3, 9), (2, 3, 3)
class LPPool2d(Native, nn.LPPool2d): _example = "2, 3", (2, 3, 9, 9), (2, 3, 3, 3)
class LPPool3d(Native, nn.LPPool3d): _example = "2, 3", (2, 3, 9, 9, 9), (2, 3, 3, 3, 3)


class AdaptiveAvgPool1d(Native, nn.AdaptiveAvgPool1d): _example = "2", (2, 3, 9), (2, 3, 2)
class AdaptiveAvgPool2d(Native, nn.AdaptiveAvgPool2d): _example = "2", (2, 3, 9, 9), (2, 3, 2, 2)
class AdaptiveAvgPool3d(Native, nn.AdaptiveAvgPool3d): _example = "2", (2, 3, 9, 9, 9), (2, 3, 2, 2, 2)


class AdaptiveMaxPool1d(Native, nn.AdaptiveMaxPool1d): _example = "2", (2, 3, 9), (2, 3, 2)
class AdaptiveMaxPool2d(Native, nn.AdaptiveMaxPool2d): _example = "2", (2, 3, 9, 9), (2, 3, 2, 2)
class AdaptiveMaxPool3d(Native, nn.AdaptiveMaxPool3d): _example = "2", (2, 3, 9, 9, 9), (2, 3, 2, 2, 2)


class FractionalMaxPool2d(Native, nn.FractionalMaxPool2d): _example = "2, 4", (2, 3, 9, 9), (2, 3, 4, 4)
class FractionalMaxPool3d(Native, nn.FractionalMaxPool3d): _example = "2, 4", (2, 3, 9, 9, 9), (2, 3, 4, 4, 4)


class _Unpool(Native, abstract=True):
    """Base of unpooling layers, whose second input has the indices of the maxima."""

    _inputs, _input_dtype = 2, (None, tg.int64)


class MaxUnpool1d(_Unpool, nn.MaxUnpool1d): _example = "2", "torch.ones(1, 1, 2), torch.tensor([[[0, 3]]])", (1, 1, 4)
class MaxUnpool2d(_Unpool, nn.MaxUnpool2d): _example = "2", "torch.ones(1, 1, 1), torch.tensor([[[3]]])", (1, 2, 2)
class MaxUnpool3d(_Unpool, nn.MaxUnpool3d):
    _example = "2", "torch.ones(1, 1, 1, 1), torch.tensor([[[[7]]]])", (1, 2, 2, 2)
