"""Bring gradients back to the shape of what was broadcast, under PyTorch's names."""
from __future__ import annotations

from typing import Any

__all__ = ["maybe_unexpand", "maybe_view"]


def maybe_view(tensor: Any, size: Any, check_same_size: bool = True) -> Any:
    """Return the tensor in the shape `size`."""
    return tensor if check_same_size and tensor.size() == size else tensor.contiguous().view(size)


def maybe_unexpand(tensor: Any, old_size: Any, check_same_size: bool = True) -> Any:
    """Return the tensor, summed over the axes along which `old_size` was broadcast to its shape."""
    return tensor if check_same_size and tensor.size() == old_size else tensor.sum_to_size(old_size)
