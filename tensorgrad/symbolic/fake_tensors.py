"""Fake tensors, which have a shape and a dtype but no values, and which pass for tensors of any device.

Their storage is `interpret.symbol_storage.FakeStorage`. None is an unknown size, such as the batch's: it takes another
value in each of several worlds.
"""
from __future__ import annotations

from typing import Any

from ..api.creation import shape_of
from ..core.dispatch import fresh
from ..core.tape import TensorBase
from ..dtype import as_dtype, get_default_dtype
from ..interpret.symbol_storage import FakeStorage, NoValues, Symbol
from .nesting import mapped

__all__ = ["SIZES", "NoValues", "fake", "fake_like", "is_fake"]

# the values of unknown sizes in the worlds: even, for code that halves them; above one, for statistics over a batch; 1
#     as the
SIZES = 2, 4, 1
#                         third, because it broadcasts with any size, such as in a sum with eight rows


def fake(shape: Any, dtype: Any = None, world: int = 0) -> Any:
    """Return a fake tensor; unknown sizes take the world's value.

    >>> from tensorgrad.symbolic.fake_tensors import fake
    >>> image = fake((None, 3, 8, 8))
    >>> (image.mean((2, 3)) @ fake((3, 5))).shape
    torch.Size([2, 5])
    """
    kind = get_default_dtype() if dtype is None else as_dtype(dtype)
    return fresh(Symbol(shape_of(([SIZES[world] if n is None else n for n in shape],)), kind.numpy), FakeStorage)


def is_fake(value: Any) -> bool:
    """Return True for a fake tensor."""
    return isinstance(value, TensorBase) and type(value._storage) is FakeStorage


def fake_like(tree: Any) -> Any:
    """Return the nest of lists, tuples and dicts with each tensor replaced by a fake one of its shape and dtype.

    >>> import tensorgrad as torch
    >>> from tensorgrad.symbolic.fake_tensors import fake_like
    >>> fake_like({"x": [torch.ones(2, 3), 7]})
    {'x': [tensor(..., size=(2, 3)), 7]}
    """
    return mapped(lambda leaf: fake(leaf.shape, leaf.dtype) if isinstance(leaf, TensorBase) and not is_fake(leaf)
                  else leaf, tree)
