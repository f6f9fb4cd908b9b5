"""Linear and bilinear maps, and the identity."""
from __future__ import annotations

from typing import Any

from .. import nn
from .native import Native
from .spec import REGISTRY

__all__ = ["Bilinear", "Dense", "Identity", "Linear"]


class Identity(Native, nn.Identity): _example = "", (2,), (2,)


class Linear(Native, nn.Linear):
    _inferred = ("in_features",)
    _example = "20", "torch.zeros(16, 10)", (16, 20)

    def _sizes(self, shape: Any) -> dict[str, Any]:
        return {"in_features": self._size(shape, -1, "in_features")}


REGISTRY["Dense"] = Dense = Linear


class Bilinear(Native, nn.Bilinear):
    _inferred, _inputs = ("in1_features", "in2_features"), 2
    _example = "20", "torch.ones(16, 3), torch.ones(16, 4)", (16, 20)

    def _sizes(self, first: Any, second: Any) -> dict[str, Any]:
        return {"in1_features": self._size(first, -1, "in1_features"),
                "in2_features": self._size(second, -1, "in2_features")}
