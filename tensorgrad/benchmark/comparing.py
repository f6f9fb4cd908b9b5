"""Compare results of two libraries."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

TOLERANCE = 1e-3                        # of the largest number of a tensor: float32, after hundreds of ops


def array(x: Any) -> np.ndarray:
    """Return a tensor of any library as an array."""
    return np.array(x.detach().numpy() if hasattr(x, "detach") else x)


def disagreement(ours: Sequence[Any], theirs: Sequence[Any] | None = None, tolerance: float = TOLERANCE,
                 other: str = "PyTorch") -> str:
    """Describe the difference of results; "" if they agree.

    The tolerance is relative to each result and to a hundredth of the largest.

    >>> disagreement([[1.0, 2.0]], [[1.0, 2.5]])
    "result 0 is off by 0.5, the largest number of PyTorch's is 2.5"
    """
    if theirs is None:
        return ""
    if len(ours) != len(theirs):
        return f"{len(ours)} results, {other} has {len(theirs)}"
    pairs = [tuple(array(x).astype(np.float64) for x in pair) for pair in zip(ours, theirs, strict=True)]
    largest = max((float(np.abs(b).max()) for _, b in pairs if b.size), default=0.0)
    for i, (a, b) in enumerate(pairs):
        if a.shape != b.shape:
            return f"result {i} has shape {a.shape}, {other}'s {b.shape}"
        # so that NaN is caught
        if a.size and not (off := float(np.abs(a - b).max())) <= tolerance * (float(np.abs(b).max()) + 0.01 * largest):
            return f"result {i} is off by {off:.3g}, the largest number of {other}'s is {np.abs(b).max():.3g}"
    return ""
