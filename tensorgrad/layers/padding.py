"""Padding: add elements at the edges."""
from .. import nn
from .native import Native

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d",
    "ZeroPad1d", "ZeroPad2d",
    "ZeroPad3d",
]


class CircularPad1d(Native, nn.CircularPad1d): _example = "1", (2, 3, 9), (2, 3, 11)
class CircularPad2d(Native, nn.CircularPad2d): _example = "1", (2, 3, 9, 9), (2, 3, 11, 11)
class CircularPad3d(Native, nn.CircularPad3d): _example = "1", (2, 3, 9, 9, 9), (2, 3, 11, 11, 11)


class ConstantPad1d(Native, nn.ConstantPad1d): _example = "1, 0.5", (2, 3, 9), (2, 3, 11)
class ConstantPad2d(Native, nn.ConstantPad2d): _example = "1, 0.5", (2, 3, 9, 9), (2, 3, 11, 11)
class ConstantPad3d(Native, nn.ConstantPad3d): _example = "1, 0.5", (2, 3, 9, 9, 9), (2, 3, 11, 11, 11)


class ReflectionPad1d(Native, nn.ReflectionPad1d): _example = "1", (2, 3, 9), (2, 3, 11)
class ReflectionPad2d(Native, nn.ReflectionPad2d): _example = "1", (2, 3, 9, 9), (2, 3, 11, 11)
class ReflectionPad3d(Native, nn.ReflectionPad3d): _example = "1", (2, 3, 9, 9, 9), (2, 3, 11, 11, 11)


class ReplicationPad1d(Native, nn.ReplicationPad1d): _example = "1", (2, 3, 9), (2, 3, 11)
class ReplicationPad2d(Native, nn.ReplicationPad2d): _example = "1", (2, 3, 9, 9), (2, 3, 11, 11)
class ReplicationPad3d(Native, nn.ReplicationPad3d): _example = "1", (2, 3, 9, 9, 9), (2, 3, 11, 11, 11)


class ZeroPad1d(Native, nn.ZeroPad1d): _example = "1", (2, 3, 9), (2, 3, 11)
class ZeroPad2d(Native, nn.ZeroPad2d): _example = "1", (2, 3, 9, 9), (2, 3, 11, 11)
class ZeroPad3d(Native, nn.ZeroPad3d): _example = "1", (2, 3, 9, 9, 9), (2, 3, 11, 11, 11)
