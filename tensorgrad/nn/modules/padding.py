"""Padding of the last one, two or three axes."""
from __future__ import annotations

from typing import TYPE_CHECKING

from .. import functional as F
from .utils import Functional, PerDimension, _ntuple, check_dims, settings

if TYPE_CHECKING:
    from ..._tensor import Tensor

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _PadNd(PerDimension, Functional):
    """Base of padding layers: `_mode` is the mode of `F.pad`, `_rule` its name in the docstring."""

    _doc = """Pads the last {n} axes with {cls._rule} (torch.nn.{name}).

    Parameters:
        padding: int or tuple: required, one number for all sides, or two per axis, last axis first
    Input: (N, C, {axes}) or (C, {axes})
    Output: as the input, each axis longer by its padding
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.{name}(1)(torch.ones(2, 4, {each:3})).shape
    torch.Size([2, 4, {each:5}])
    """

    _mode: str
    _rule: str
    __init__ = settings("padding")

    def _keep(self, padding, **others):
        super()._keep(padding=_ntuple(2 * self._dims)(padding), **others)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class _CircularPadNd(_PadNd):
    _mode, _rule = "circular", "the elements from the other end"

    def forward(self, input: Tensor) -> Tensor:
        check_dims(input, (self._dims + 1, self._dims + 2))
        return super().forward(input)


class _ReflectionPadNd(_PadNd):
    _mode, _rule = "reflect", "the mirror image of the input, the edge not repeated"


class _ReplicationPadNd(_PadNd):
    _mode, _rule = "replicate", "the elements at the edge"


class _ConstantPadNd(_PadNd):
    _doc = """Pads the last {n} axes with a constant (torch.nn.{name}).

    Parameters:
        padding: int or tuple: required, one number for all sides, or two per axis, last axis first
        value: float: required
    Input: (N, C, {axes}) or (C, {axes})
    Output: as the input, each axis longer by its padding
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.{name}(1, 3.5)(torch.ones(2, 4, {each:3})).shape
    torch.Size([2, 4, {each:5}])
    """

    __init__ = settings("padding", "value")

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPadNd(_PadNd):
    _doc, _rule, extra_repr = _PadNd._doc, "zeros", _PadNd.extra_repr
    __init__ = settings("padding")

    def _keep(self, padding):
        super()._keep(padding, value=0.0)


class CircularPad1d(_CircularPadNd, dims=1): pass
class CircularPad2d(_CircularPadNd, dims=2): pass
class CircularPad3d(_CircularPadNd, dims=3): pass
class ConstantPad1d(_ConstantPadNd, dims=1): pass
class ConstantPad2d(_ConstantPadNd, dims=2): pass
class ConstantPad3d(_ConstantPadNd, dims=3): pass
class ReflectionPad1d(_ReflectionPadNd, dims=1): pass
class ReflectionPad2d(_ReflectionPadNd, dims=2): pass
class ReflectionPad3d(_ReflectionPadNd, dims=3): pass
class ReplicationPad1d(_ReplicationPadNd, dims=1): pass
class ReplicationPad2d(_ReplicationPadNd, dims=2): pass
class ReplicationPad3d(_ReplicationPadNd, dims=3): pass
class ZeroPad1d(_ZeroPadNd, ConstantPad1d, dims=1): pass
class ZeroPad2d(_ZeroPadNd, ConstantPad2d, dims=2): pass
class ZeroPad3d(_ZeroPadNd, ConstantPad3d, dims=3): pass
