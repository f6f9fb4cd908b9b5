"""Dropout of elements, of channels, and of SELU's activations."""
from __future__ import annotations

from typing import TYPE_CHECKING

from .. import functional as F
from .utils import Functional, PerDimension, named, settings

if TYPE_CHECKING:
    from ..._tensor import Tensor

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Functional):
    __init__ = settings(p=0.5, inplace=False)

    def _keep(self, p, inplace):
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        super()._keep(p=p, inplace=inplace)

    def extra_repr(self) -> str:
        return named(self, "p", "inplace")


class Dropout(_DropoutNd):
    """While training, sets each element to zero with probability p, and divides the others by 1 - p (torch.nn.Dropout).

    Parameters:
        p: float: 0.5
        inplace: bool: False, overwrite the input
    Input: (*)
    Output: (*)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Dropout(0.2).eval()(torch.ones(3))
    tensor([1., 1., 1.])
    """

    _generate_mask = None  # a function of the input that returns the mask, to replace the random one

    def forward(self, input: Tensor) -> Tensor:
        if self._generate_mask is None or not self.training:
            return F.dropout(input, self.p, self.training, self.inplace)
        return input * self._generate_mask(input) / (1 - self.p or 1)


class _ChannelDropout(PerDimension, _DropoutNd):
    _doc = """While training, sets whole channels to zero, each with probability p (torch.nn.{name}).

    The others are divided by 1 - p.

    Parameters:
        p: float: 0.5
        inplace: bool: False, overwrite the input
    Input: (N, C, {axes}) or (C, {axes})
    Output: the input's shape
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.{name}(1.0)(torch.ones(2, 3, {each:4})).count_nonzero()
    tensor(0)
    """

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input, self.p, self.training, self.inplace)


class Dropout1d(_ChannelDropout, dims=1): _function = "dropout1d"
class Dropout2d(_ChannelDropout, dims=2): _function = "dropout2d"
class Dropout3d(_ChannelDropout, dims=3): _function = "dropout3d"


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean 0 and variance 1, for SELU (torch.nn.AlphaDropout).

    While training, each element takes SELU's negative limit with probability p; all are then scaled and shifted.

    Parameters:
        p: float: 0.5
        inplace: bool: False, without effect
    Input: (*)
    Output: (*)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.AlphaDropout(0.2).eval()(torch.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels (torch.nn.FeatureAlphaDropout).

    Parameters:
        p: float: 0.5
        inplace: bool: False, without effect
    Input: (N, C, *)
    Output: (N, C, *)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.FeatureAlphaDropout(0.2).eval()(torch.ones(1, 3, 1)).shape
    torch.Size([1, 3, 1])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
