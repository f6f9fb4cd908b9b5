"""Reorder channels."""
from __future__ import annotations

from typing import TYPE_CHECKING

from .. import functional as F
from .utils import Functional, settings

if TYPE_CHECKING:
    from ..._tensor import Tensor

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Functional):
    """Deals the channels of each group out to all groups (torch.nn.ChannelShuffle): a transposition (g, C/g).

    Parameters:
        groups: int: required, g, a divisor of C
    Input: (N, C, *)
    Output: (N, C, *)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.ChannelShuffle(2)(torch.arange(4.0).view(1, 4, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    __init__ = settings("groups")

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)
