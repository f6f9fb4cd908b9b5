"""make_tensor: random tensors for tests."""
from __future__ import annotations

import math
import warnings
from typing import Any

from .. import api as tg


def make_tensor(*shape: Any, dtype: Any, device: Any, low: float | None = None, high: float | None = None,
                requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False,
                memory_format: Any = None) -> Any:
    """A tensor of uniform random numbers from [low, high), by default [−9, 9), or [0, 10) and [0, 2) for uint8 and
    bool.

    https://pytorch.org/docs → torch.testing.make_tensor

    >>> import tensorgrad as torch
    >>> torch.testing.make_tensor(2, 3, dtype=torch.int64, device="cpu", low=1, high=2)
    tensor([[1, 1, 1],
            [1, 1, 1]])
    """
    if len(shape) == 1 and not isinstance(shape[0], int):
        shape = tuple(shape[0])
    if noncontiguous and memory_format is not None:
        raise ValueError(f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
                         f"{noncontiguous=} and {memory_format=}")
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    spread = noncontiguous and math.prod(shape) > 1
    result = _drawn((*shape[:-1], 2 * shape[-1]) if spread else shape, dtype, device, low, high)
    if spread:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = tg.finfo(dtype).tiny if dtype.is_floating_point or dtype.is_complex else 1
    if dtype.is_floating_point or dtype.is_complex:
        result.requires_grad = requires_grad
    return result


def _drawn(shape: Any, dtype: Any, device: Any, low: Any, high: Any) -> Any:
    fractional = dtype.is_floating_point or dtype.is_complex
    first, last = (0, 2) if dtype is tg.bool else (0, 10) if dtype is tg.uint8 else (-9, 9) if fractional else (-9, 10)
    low, high = _bounds(first if low is None else low, last if high is None else high, dtype)
    if not fractional:
        return tg.randint(math.ceil(low), math.ceil(high), shape, dtype=dtype, device=device)
    if dtype.itemsize == 1:             # no random numbers of 8 bits are drawn
        return _drawn(shape, tg.float32, device, low, high).to(dtype)
    result = tg.empty(shape, dtype=dtype, device=device)
    parts = tg.view_as_real(result) if dtype.is_complex else result
    if high - low >= tg.finfo(dtype).max:
        parts.uniform_(low / 2, high / 2).mul_(2)
    else:
        parts.uniform_(low, high)
    return result


def _limits(dtype: Any) -> tuple[Any, Any]:
    """Return the least number of a dtype, and the end of its range; the largest number for those where that is none."""
    if dtype is tg.bool:
        return 0, 2
    if dtype.is_floating_point or dtype.is_complex:
        return tg.finfo(dtype).min, tg.finfo(dtype).max
    info = tg.iinfo(dtype)
    return info.min, info.max + (dtype is not tg.int64)


def _bounds(low: Any, high: Any, dtype: Any) -> tuple[Any, Any]:
    """Return the bounds, cut to the range of the dtype. ValueError for an interval without a number of the dtype."""
    if any(isinstance(bound, float) and math.isnan(bound) for bound in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    least, end = _limits(dtype)
    if low == high and (dtype.is_floating_point or dtype.is_complex):
        warnings.warn("Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated "
                      "since 2.1 and will be removed in 2.3. Use `torch.full(...)` instead.", FutureWarning,
                      stacklevel=4)
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= end:
        raise ValueError(f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only "
                         f"supports [{least}, {end})")
    return min(max(low, least), end), min(max(high, least), end)
