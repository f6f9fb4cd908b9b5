"""Layers that rearrange axes and select elements, and functions that do so."""
from __future__ import annotations

from math import prod
from typing import Any

from .. import nn
from ._nesting import is_simple
from .base import Layer
from .native import Native

__all__ = ["Flatten", "Slice", "Unflatten", "View", "flatten", "slice", "view"]

RANGE = slice               # Python's slice, which the function below hides


class Flatten(Native, nn.Flatten):
    """Joins all axes from `start_dim` on; the first axis is the batch. AssertionError if the input has no such axis.

    >>> import tensorgrad as torch
    >>> torch.layers.Flatten()(torch.ones(8, 3, 4, 5)).shape
    torch.Size([8, 60])
    """

    def forward(self, input: Any) -> Any:
        if not -input.dim() <= self.start_dim < input.dim():
            raise AssertionError(f"start_dim={self.start_dim} is not an axis of an input of shape {tuple(input.shape)}")
        return super().forward(input)


class Unflatten(Native, nn.Unflatten): _example = "1, (2, -1)", (3, 6), (3, 2, 3)


class View(Layer):
    """Reshapes its input to a shape that includes the batch; a single size may be -1, to be inferred.

    Errors: AssertionError for more than one -1, for sizes that are not positive, and where the number of elements does
        not fit.

    >>> import tensorgrad as torch
    >>> torch.layers.View(2, -1)(torch.ones(4, 3)).shape
    torch.Size([2, 6])
    """

    def __init__(self, *shape: Any) -> None:
        super().__init__()
        if len(shape) == 1 and isinstance(shape[0], (list, tuple)):
            shape = tuple(shape[0])
        if not is_simple(shape) or any(size is None or size < 1 and size != -1 for size in shape):
            raise AssertionError(f"view: sizes are positive, or -1 for what is left, and not {shape}")
        if shape.count(-1) > 1:
            raise AssertionError(f"view: only one size can be -1 in {shape}")
        self.shape = shape

    def forward(self, input: Any) -> Any:
        known = prod(size for size in self.shape if size != -1)
        if input.numel() % known or -1 not in self.shape and input.numel() != known:
            raise AssertionError(f"view: an input of shape {tuple(input.shape)} has {input.numel()} elements, which do "
                                 f"not fit into {self.shape}")
        return input.reshape(self.shape)


class Slice(Layer):
    """Indexes its input by a number, a slice, an Ellipsis, None, or a tuple of these, the batch's first.

    TypeError for anything else.

    >>> import tensorgrad as torch
    >>> torch.layers.Slice((..., 0))(torch.ones(4, 3)).shape
    torch.Size([4])
    """

    def __init__(self, index: Any) -> None:
        super().__init__()
        self.index = tuple(index) if isinstance(index, list) else index
        for part in self.index if isinstance(self.index, tuple) else (self.index,):
            if type(part) is bool or not (part is None or part is ... or isinstance(part, (int, RANGE))):
                raise TypeError(f"slice: an index is made of numbers, slices, None and an Ellipsis, and not of a "
                                f"{type(part).__name__}")

    def forward(self, input: Any) -> Any:
        return input[self.index]


def flatten(x: Any, start_dim: int = 1) -> Any:
    """`Flatten(start_dim)(x)`: all axes from `start_dim` on as one.

    >>> import tensorgrad as torch
    >>> torch.layers.flatten(torch.ones(2, 3, 4)).shape
    torch.Size([2, 12])
    """
    return Flatten(start_dim)(x)


def view(x: Any, *shape: Any) -> Any:
    """`View(*shape)(x)`: the same elements in another shape.

    >>> import tensorgrad as torch
    >>> torch.layers.view(torch.ones(2, 3), 3, -1).shape
    torch.Size([3, 2])
    """
    return View(*shape)(x)


def slice(x: Any, index: Any) -> Any:
    """`Slice(index)(x)`: the elements at an index.

    >>> import tensorgrad as torch
    >>> torch.layers.slice(torch.ones(2, 3), 0).shape
    torch.Size([3])
    """
    return Slice(index)(x)
