"""Normalization: layers that infer the number of channels, or the sizes of the trailing axes."""
from __future__ import annotations

from typing import Any

from .. import nn
from .native import Native

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "CrossMapLRN2d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d",
    "InstanceNorm3d", "LayerNorm", "LocalResponseNorm", "RMSNorm", "SyncBatchNorm",
]


class _OfChannels(Native, abstract=True):
    _inferred = ("num_features",)

    def _sizes(self, shape: Any) -> dict[str, Any]:
        return {"num_features": self._size(shape, 1, "num_features")}


class BatchNorm1d(_OfChannels, nn.BatchNorm1d): _example = "", (2, 3), (2, 3)
class BatchNorm2d(_OfChannels, nn.BatchNorm2d): _example = "", (2, 3, 4, 4), (2, 3, 4, 4)
class BatchNorm3d(_OfChannels, nn.BatchNorm3d): _example = "", (2, 3, 4, 4, 4), (2, 3, 4, 4, 4)
class SyncBatchNorm(_OfChannels, nn.SyncBatchNorm): _example = "", (2, 3), (2, 3)


class _OfInstances(_OfChannels, abstract=True):
    def _sizes(self, shape: Any) -> dict[str, Any]:
        return {"num_features": self._size(shape, -self._dims - 1, "num_features")}


class InstanceNorm1d(_OfInstances, nn.InstanceNorm1d): _example = "", (2, 3, 4), (2, 3, 4)
class InstanceNorm2d(_OfInstances, nn.InstanceNorm2d): _example = "", (2, 3, 4, 4), (2, 3, 4, 4)
class InstanceNorm3d(_OfInstances, nn.InstanceNorm3d): _example = "", (2, 3, 2, 2, 2), (2, 3, 2, 2, 2)


class GroupNorm(Native, nn.GroupNorm):
    _inferred = ("num_channels",)
    _example = "3", (2, 6, 4), (2, 6, 4)

    def _least(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"num_channels": arguments["num_groups"]}

    def _sizes(self, shape: Any) -> dict[str, Any]:
        channels, groups = self._size(shape, 1, "num_channels"), self.num_groups
        if channels % groups:
            raise AssertionError(f"GroupNorm: {channels} channels cannot be divided into {groups} groups of equal size")
        return {"num_channels": channels}


class _OfTrailing(Native, abstract=True):
    """Base of norms over the last `num_normalize_dim` axes, whose sizes come from the input."""

    _inferred = ("normalized_shape",)

    def _begin_trailing(self, num_normalize_dim: int, arguments: dict[str, Any]) -> None:
        if type(num_normalize_dim) is not int or num_normalize_dim < 1:
            raise ValueError(f"num_normalize_dim is a number of axes, at least 1, not {num_normalize_dim!r}")
        self.__dict__["_trailing"] = num_normalize_dim
        self._begin(arguments)

    def _least(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"normalized_shape": (1,) * self._trailing}

    def _sizes(self, shape: Any) -> dict[str, Any]:
        n = self._trailing
        if n > len(shape) - 1:
            raise AssertionError(f"{type(self).__name__}: num_normalize_dim is {n}, and an input of shape {shape} has "
                                 f"{len(shape) - 1} axes after the batch")
        return {"normalized_shape": tuple(self._size(shape, axis, "normalized_shape") for axis in range(-n, 0))}


class LayerNorm(_OfTrailing, nn.LayerNorm):
    """Normalizes the last `num_normalize_dim` axes to mean 0 and variance 1 in each sample.

    `nn.LayerNorm` as a layer, with normalized_shape read off the first input. AssertionError if no axis is left for the
    batch.

    >>> import tensorgrad as torch
    >>> torch.layers.LayerNorm(2).build((16, 10, 20, 30)).weight.shape
    torch.Size([20, 30])
    """

    def __init__(self, num_normalize_dim: int, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
                 device: Any = None,
                 dtype: Any = None) -> None:
        self._begin_trailing(num_normalize_dim,
                             {"eps": eps, "elementwise_affine": elementwise_affine, "bias": bias, "device": device,
                              "dtype": dtype})


class RMSNorm(_OfTrailing, nn.RMSNorm):
    """Normalizes the last `num_normalize_dim` axes to root mean square 1 in each sample.

    `nn.RMSNorm` as a layer, with normalized_shape read off the first input. AssertionError if no axis is left for the
    batch.

    >>> import tensorgrad as torch
    >>> torch.layers.RMSNorm(1).build((16, 10, 20)).weight.shape
    torch.Size([20])
    """

    def __init__(self, num_normalize_dim: int, eps: float | None = None, elementwise_affine: bool = True,
                 device: Any = None, dtype: Any = None) -> None:
        self._begin_trailing(num_normalize_dim,
                             {"eps": eps, "elementwise_affine": elementwise_affine, "device": device, "dtype": dtype})


class LocalResponseNorm(Native, nn.LocalResponseNorm): _example = "2", (2, 5, 4), (2, 5, 4)
class CrossMapLRN2d(Native, nn.CrossMapLRN2d): _example = "3", (2, 5, 4, 4), (2, 5, 4, 4)
