"""Seed all random number generators."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np

from ..api.random import manual_seed


def seed_everything(seed: Any = None) -> int:
    """Seed Python's `random`, NumPy's global stream and tensorgrad on the CPU and on CUDA; return the seed.

    seed: 0 to 2³² − 1 (NumPy's range), ValueError otherwise; None takes the milliseconds of the clock, modulo 1000.
    Also sets `backends.cudnn.deterministic = True` and `benchmark = False`.

    >>> from tensorgrad.experiment.seeding import seed_everything
    >>> seed_everything(42)
    42
    """
    if seed is None:
        seed = time.time_ns() // 1_000_000 % 1000
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise TypeError(
            f"seed_everything(): the seed must be an int, but got {seed!r:.60} of type {type(seed).__name__}"
        )
    seed = int(seed)
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed_everything(): the seed must be in 0 to 2**32 - 1, but got {seed}")
    random.seed(seed)
    np.random.seed(seed)
    manual_seed(seed)
    from ..backends import cudnn

    cudnn.deterministic, cudnn.benchmark = True, False
    return seed
