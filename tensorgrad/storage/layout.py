"""The order of axes in memory that results have: PyTorch's, where NumPy's is another.

An elementwise function goes through its operands' memory in the order of their strides. Where operands disagree, NumPy falls back to rows and PyTorch
follows the first; an expanded axis, whose stride is 0, counts as the shortest for NumPy's copies and says nothing to PyTorch.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def ordered(y: Any, operands: Sequence[Any]) -> Any:
    """A result, or a copy of it whose axes lie in the order that PyTorch gives a result of these operands."""
    if y.flags.c_contiguous and all(x.flags.c_contiguous for x in operands):
        return y
    return in_axes(y, slowest_first(y.shape, operands))


def in_axes(y: Any, axes: Sequence[int]) -> Any:
    """An array, or a copy of it, with the axes in this order in memory, from the greatest stride to the least."""
    turned = y.transpose(axes)
    return y if turned.flags.c_contiguous else np.ascontiguousarray(turned).transpose(inverse(axes))


def like(x: Any, dtype: Any) -> Any:
    """A copy of an array in a dtype, without gaps, and with the axes in the order of the array's."""
    if 0 not in x.strides:
        return x.astype(dtype)
    axes = slowest_first(x.shape, (x,))
    return x.transpose(axes).astype(dtype, order="C").transpose(inverse(axes))


def inverse(axes: Sequence[int]) -> list[int]:
    return sorted(range(len(axes)), key=axes.__getitem__)


def slowest_first(shape: tuple[int, ...], operands: Sequence[Any]) -> list[int]:
    """The axes of a result, the one with the greatest stride first.

    PyTorch sorts by insertion, and exchanges two axes that are out of order with those between them in place: pairs that no operand tells apart stay.
    """
    strides = [stretched(shape, x) for x in operands]
    found = list(range(len(shape)))[::-1]
    for i in range(1, len(found)):
        moving = i
        for place in range(i - 1, -1, -1):
            later = follows(shape, strides, found[place], found[moving])
            if later > 0:
                found[place], found[moving] = found[moving], found[place]
                moving = place
            elif later < 0:
                break
    return found[::-1]


def stretched(shape: tuple[int, ...], x: Any) -> Any:
    """The strides of an array that is broadcast to a shape: 0 along the axes that it is stretched along."""
    missing: int = len(shape) - x.ndim
    steps = tuple(0 if m == 1 != n else s for m, n, s in zip(x.shape, shape[missing:], x.strides, strict=True))
    return (0,) * missing + steps


def follows(shape: tuple[int, ...], strides: list[tuple[int, ...]], a: int, b: int) -> int:
    """Tell whether axis a goes behind axis b, from the fastest on: 1, or −1 if b goes behind a, or 0 if no operand tells."""
    for steps in strides:
        first, second = abs(steps[a]), abs(steps[b])
        if first and second:
            if first != second:
                return 1 if first > second else -1
            if shape[a] > shape[b]:
                return 1
    return 0
