"""Convolutions that infer the number of channels, and layers that extract windows."""
from __future__ import annotations

from typing import Any

from .. import nn
from .native import Native

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Fold", "Unfold"]


class _Convolution(Native, abstract=True):
    _inferred = ("in_channels",)

    def _least(self, arguments: dict[str, Any]) -> dict[str, Any]:
        groups = arguments.get("groups", 1)
        return {"in_channels": max(groups, 1) if isinstance(groups, int) else 1}

    def _sizes(self, shape: Any) -> dict[str, Any]:
        channels = self._size(shape, -self._dims - 1, "in_channels")
        if len(shape) > self._dims + 2:
            raise AssertionError(f"{type(self).__name__} takes {self._dims + 2} axes with the batch, not an input of "
                                 f"shape {shape}")
        return {"in_channels": channels}


class Conv1d(_Convolution, nn.Conv1d): _example = "8, 3", (2, 3, 9), (2, 8, 7)
class Conv2d(_Convolution, nn.Conv2d): _example = "8, 3, stride=2", (2, 3, 9, 9), (2, 8, 4, 4)
class Conv3d(_Convolution, nn.Conv3d): _example = "8, 3", (2, 3, 4, 4, 4), (2, 8, 2, 2, 2)
class ConvTranspose1d(_Convolution, nn.ConvTranspose1d): _example = "8, 3", (2, 3, 4), (2, 8, 6)
class ConvTranspose2d(_Convolution, nn.ConvTranspose2d): _example = "8, 3, 2", (2, 3, 4, 4), (2, 8, 9, 9)
class ConvTranspose3d(_Convolution, nn.ConvTranspose3d): _example = "8, 2", (2, 3, 2, 2, 2), (2, 8, 3, 3, 3)


class Fold(Native, nn.Fold): _example = "(4, 5), 2", (1, 12, 12), (1, 3, 4, 5)
class Unfold(Native, nn.Unfold): _example = "2", (1, 3, 4, 5), (1, 12, 12)
