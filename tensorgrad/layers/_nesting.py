"""Shapes of a layer's inputs: a tuple of sizes for a tensor, lists and dictionaries of those for nested inputs; None
for an unknown size."""
from __future__ import annotations

from typing import Any

from .. import api as tg
from ..symbolic.data import SymbolicTensor
from ..symbolic.nesting import leaves


def shape_of(value: Any) -> Any:
    """Return the shape of a tensor, a list or dictionary of shapes for nested tensors, None for anything else."""
    if isinstance(value, dict):
        return {key: shape_of(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [shape_of(part) for part in value]
    return tuple(value.shape) if isinstance(value, (tg.Tensor, SymbolicTensor)) else None


def has_shape(value: Any) -> bool:
    return any(isinstance(leaf, (tg.Tensor, SymbolicTensor)) for leaf in leaves(value))


def is_simple(shape: Any) -> bool:
    """Return True for the shape of a single tensor, False for a nest of shapes."""
    return (isinstance(shape, (list, tuple)) and len(shape) > 0
            and all(size is None or type(size) is int for size in shape))


def checked(shape: Any) -> Any:
    """Return the shape as tuples of sizes within lists and dictionaries.

    AssertionError unless all sizes are positive or None.
    """
    if is_simple(shape):
        if any(size is not None and size <= 0 for size in shape):
            raise AssertionError(f"invalid shape {tuple(shape)}: sizes are positive, or None where they are not known")
        return tuple(shape)
    if isinstance(shape, dict) and shape:
        return {key: checked(part) for key, part in shape.items()}
    if isinstance(shape, (list, tuple)) and shape:
        return [checked(part) for part in shape]
    raise AssertionError(f"invalid shape {shape!r}: expected a tuple of sizes such as (None, 3, 32, 32), or a list or "
                         f"dictionary of those")


def same_sizes(one: Any, other: Any, free: tuple[int, ...] = ()) -> bool:
    """Return True if two shapes agree in all sizes that both know, except along the axes in `free`."""
    if is_simple(one) or one == ():
        return isinstance(other, tuple) and len(one) == len(other) and all(
            axis in free or m is None or n is None or m == n for axis, (m, n) in enumerate(zip(one, other)))
    if isinstance(one, dict):
        return (isinstance(other, dict) and one.keys() == other.keys()
                and all(same_sizes(one[key], other[key], free) for key in one))
    if isinstance(one, (list, tuple)):
        return (isinstance(other, (list, tuple)) and len(one) == len(other)
                and all(same_sizes(m, n, free) for m, n in zip(one, other)))
    return one == other
