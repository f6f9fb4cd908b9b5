"""Window arguments of the compiled kernels of convolution and pooling."""
from __future__ import annotations

from typing import Any

Sizes = tuple[int, ...]


def needed(stride: Sizes, length: Sizes) -> Sizes:
    """Return the stride, or 1 along an axis with one result: the stride is not used there, but would cost memory."""
    return tuple(s if n > 1 else 1 for s, n in zip(stride, length, strict=True))


def pair(n: Any, missing: int) -> Sizes:
    """(vertical, horizontal), given both or the latter."""
    return tuple(n) if len(n) == 2 else (missing, *n)


def geometry(planes: int, size: Any, kernel: Any, length: Any, stride: Any, widths: Any,
             dilation: Any = (1, 1)) -> Sizes:
    before = [a for a, _ in widths]
    return (planes, *pair(size, 1), *pair(kernel, 1), *pair(length, 1), *pair(needed(stride, length), 1),
            *pair(before, 0), *pair(dilation, 1))
