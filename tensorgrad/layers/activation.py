"""Functions of each element, or of the elements along an axis."""
from __future__ import annotations

from typing import Any

from .. import nn
from .native import Native

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
    "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax", "Softmax2d",
    "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]


class CELU(Native, nn.CELU): _example = "", (2, 3), (2, 3)
class ELU(Native, nn.ELU): _example = "", (2, 3), (2, 3)
class GELU(Native, nn.GELU): _example = "", (2, 3), (2, 3)
class GLU(Native, nn.GLU): _example = "", (2, 8), (2, 4)
class Hardshrink(Native, nn.Hardshrink): _example = "", (2, 3), (2, 3)
class Hardsigmoid(Native, nn.Hardsigmoid): _example = "", (2, 3), (2, 3)
class Hardswish(Native, nn.Hardswish): _example = "", (2, 3), (2, 3)
class Hardtanh(Native, nn.Hardtanh): _example = "", (2, 3), (2, 3)
class LeakyReLU(Native, nn.LeakyReLU): _example = "", (2, 3), (2, 3)
class LogSigmoid(Native, nn.LogSigmoid): _example = "", (2, 3), (2, 3)
class LogSoftmax(Native, nn.LogSoftmax): _example = "-1", (2, 3), (2, 3)
class Mish(Native, nn.Mish): _example = "", (2, 3), (2, 3)
class RReLU(Native, nn.RReLU): _example = "", (2, 3), (2, 3)
class ReLU(Native, nn.ReLU): _example = "", (2, 3), (2, 3)
class ReLU6(Native, nn.ReLU6): _example = "", (2, 3), (2, 3)
class SELU(Native, nn.SELU): _example = "", (2, 3), (2, 3)
class SiLU(Native, nn.SiLU): _example = "", (2, 3), (2, 3)
class Sigmoid(Native, nn.Sigmoid): _example = "", (2, 3), (2, 3)
class Softmax(Native, nn.Softmax): _example = "-1", (2, 3), (2, 3)
class Softmax2d(Native, nn.Softmax2d): _example = "", (2, 3, 4, 4), (2, 3, 4, 4)
class Softmin(Native, nn.Softmin): _example = "-1", (2, 3), (2, 3)
class Softplus(Native, nn.Softplus): _example = "", (2, 3), (2, 3)
class Softshrink(Native, nn.Softshrink): _example = "", (2, 3), (2, 3)
class Softsign(Native, nn.Softsign): _example = "", (2, 3), (2, 3)
class Tanh(Native, nn.Tanh): _example = "", (2, 3), (2, 3)
class Tanhshrink(Native, nn.Tanhshrink): _example = "", (2, 3), (2, 3)
class Threshold(Native, nn.Threshold): _example = "0.1, 20.0", (2, 3), (2, 3)


class PReLU(Native, nn.PReLU):
    """`x` where it is positive, else `x` times a slope that is learned: one slope, or one for each channel (axis 1)
    unless `shared`.

    `nn.PReLU` as a layer, with num_parameters read off the first input.

    >>> import tensorgrad as torch
    >>> torch.layers.PReLU(shared=False).build((None, 7, 3)).weight.shape
    torch.Size([7])
    """

    _inferred = ("num_parameters",)

    def __init__(self, shared: bool = True, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        self._begin({"init": init, "device": device, "dtype": dtype})
        self.shared = shared

    def _sizes(self, shape: Any) -> dict[str, Any]:
        return {"num_parameters": 1 if self.shared else self._size(shape, 1, "the number of channels")}
