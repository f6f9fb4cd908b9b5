"""The limits of a machine: the processor's name, the rate of products of matrices, and of copies."""
from __future__ import annotations

import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def processor() -> str:
    """Return its name, and the numbers that tell what it is where a virtual machine gives it a short one."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        about = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
        return "{model name} (family {cpu family}, model {model})".format_map(about)
    except (OSError, KeyError):
        return platform.processor() or platform.machine()


def sgemm_rate(n: int = 1024, seconds: float = 0.4) -> float:
    """Return the rate at which NumPy's BLAS multiplies float32 matrices, in operations per second."""
    a, b = (np.random.default_rng(i).random((n, n), np.float32) for i in (0, 1))
    out = np.empty((n, n), np.float32)
    return 2 * n ** 3 / _best(lambda: np.matmul(a, b, out=out), seconds)


def copy_rate(size: int = 1 << 26, seconds: float = 0.4) -> float:
    """Return how many bytes one thread copies per second, between arrays beyond the caches; each is read and written
    once, and counted once.
    """
    a, b = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    return size / _best(lambda: np.copyto(b, a), seconds)


def _best(run: Callable[[], Any], seconds: float) -> float:
    """Return the shortest of the times of as many runs as fit into some seconds, and of three at least."""
    times, start = list[float](), time.perf_counter()
    while len(times) < 3 or time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)
