"""Reuse of memory: an in-place op gives up its input's memory to kernels that read before they write."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..core.mode import mode


def place(x: Any) -> Any:
    """Return the memory for a result of a kernel that reads x once: that of x itself if its values are given up."""
    if mode.landing is x:
        mode.landing = None
        return x
    return np.empty(x.shape, x.dtype)
