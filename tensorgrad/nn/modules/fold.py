"""Convert images to columns of blocks, and back."""
from __future__ import annotations

from typing import TYPE_CHECKING

from .. import functional as F
from .utils import Functional, settings

if TYPE_CHECKING:
    from ..._tensor import Tensor

__all__ = ["Fold", "Unfold"]


class Fold(Functional):
    """Adds up sliding blocks, given as columns, into an image (torch.nn.Fold): the adjoint of Unfold.

    Parameters:
        output_size: int or tuple: required, (H, W)
        kernel_size: int or tuple: required
        dilation: int or tuple: 1
        padding: int or tuple: 0
        stride: int or tuple: 1
    Input: (N, C * kernel elements, blocks) or without N
    Output: (N, C, *output_size) or without N
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Fold(output_size=(4, 5), kernel_size=2)(torch.ones(1, 12, 12)).shape
    torch.Size([1, 3, 4, 5])
    """

    __init__ = settings("output_size", "kernel_size", dilation=1, padding=0, stride=1)

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class Unfold(Functional):
    """The sliding blocks of an image as columns (torch.nn.Unfold).

    Parameters:
        kernel_size: int or tuple: required
        dilation: int or tuple: 1
        padding: int or tuple: 0, with zeros
        stride: int or tuple: 1
    Input: (N, C, H, W) or (C, H, W)
    Output: (N, C * kernel elements, blocks) or without N
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Unfold(kernel_size=(2, 3))(torch.ones(2, 5, 3, 4)).shape
    torch.Size([2, 30, 4])
    """

    __init__ = settings("kernel_size", dilation=1, padding=0, stride=1)

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)
