"""Where results go: an op in place gives up the memory of its input, and kernels that read each element before they write it may use that."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..core.mode import mode


def place(x: Any) -> Any:
    """Where the result of a kernel that reads x once may go: over x itself, if its values are given up."""
    if mode.landing is x:
        mode.landing = None
        return x
    return np.empty(x.shape, x.dtype)
