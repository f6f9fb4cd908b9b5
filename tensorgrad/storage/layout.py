"""The order of axes in memory of results, where PyTorch's differs from NumPy's.

The result of an elementwise function has its axes in the order of the operands' strides. If operands disagree, NumPy
uses C order and PyTorch the first operand's order; an expanded axis, whose stride is 0, is innermost in NumPy's copies,
but ignored by PyTorch.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..runtime.small_floats import convert


def ordered(y: Any, operands: Sequence[Any]) -> Any:
    """Return a result, copied if its axes are not in the memory order that PyTorch gives a result of these operands."""
    if y.flags.c_contiguous and all(x.flags.c_contiguous for x in operands):
        return y
    return in_axes(y, slowest_first(y.shape, operands))


def in_axes(y: Any, axes: Sequence[int]) -> Any:
    """Return an array, copied if its axes do not have this order in memory, from the greatest stride to the least."""
    turned = y.transpose(axes)
    return y if turned.flags.c_contiguous else np.ascontiguousarray(turned).transpose(inverse(axes))


def like(x: Any, dtype: Any) -> Any:
    """Copy an array in a dtype, without gaps, with the axes in the array's memory order."""
    if 0 not in x.strides:
        return convert(x, dtype)
    axes = slowest_first(x.shape, (x,))
    return np.ascontiguousarray(convert(x.transpose(axes), dtype)).transpose(inverse(axes))


def is_channels_last(x: Any, most: int = 5) -> bool:
    """Return True for images whose channels, axis 1, are innermost in memory, by the rules of PyTorch.

    Images have 4 axes, or 5 if that is not above `most`.

    Strides decide, also those of axes of length 1, which no element depends on; where they fit both formats, images are
    contiguous.
    """
    ndim = x.ndim
    if not 4 <= ndim <= most:
        return False
    steps, shape = x.strides, x.shape
    if not 0 < steps[1] * shape[1] <= steps[-1] or 0 in shape:      # most arrays end here
        return False
    least = 0
    for axis in (1, *range(ndim - 1, 1, -1), 0):
        if steps[axis] < least or (axis == 0 and least == steps[1]):
            return False
        least = steps[axis] * shape[axis]
    return True


def row_strides(shape: tuple[int, ...], step: int) -> tuple[int, ...]:
    """Return the strides of a contiguous array; `step` is that of the last axis."""
    strides = []
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def inverse(axes: Sequence[int]) -> list[int]:
    return sorted(range(len(axes)), key=axes.__getitem__)


def slowest_first(shape: tuple[int, ...], operands: Sequence[Any]) -> list[int]:
    """Return the axes of a result, the greatest stride first.

    Like PyTorch, sort by insertion, swapping axes that are out of order; pairs that no operand orders are skipped.
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
    """Return the strides of an array broadcast to a shape: 0 along broadcast axes."""
    missing: int = len(shape) - x.ndim
    steps = tuple(0 if m == 1 != n else s for m, n, s in zip(x.shape, shape[missing:], x.strides, strict=True))
    return (0,) * missing + steps


def follows(shape: tuple[int, ...], strides: list[tuple[int, ...]], a: int, b: int) -> int:
    """Compare axes: 1 if a follows b (fastest first), −1 if b follows a, 0 if no operand orders them."""
    for steps in strides:
        first, second = abs(steps[a]), abs(steps[b])
        if first and second:
            if first != second:
                return 1 if first > second else -1
            if shape[a] > shape[b]:
                return 1
    return 0
