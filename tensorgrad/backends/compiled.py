"""The package's own compiled kernels for the CPU, built from native/ on install.

Without them the same operations run on NumPy. `TENSORGRAD_KERNELS=numpy` leaves them out from the start, `TENSORGRAD_KERNELS=reference` NumPy's special
kernels as well.

>>> import tensorgrad as torch
>>> with torch.backends.compiled.flags(enabled=False):
...     torch.backends.compiled.is_enabled()
False
"""
from collections.abc import Iterator
from contextlib import contextmanager

from .._native import native
from ..kernels import compiled as _compiled


def is_available() -> bool:
    """Whether they were built."""
    return native is not None


def is_enabled() -> bool:
    """Whether they are in use."""
    return _compiled.enabled()


def instructions() -> str | None:
    """The instruction set they are in use with, such as "AVX2"."""
    return native.instructions if native is not None else None


@contextmanager
def flags(enabled: bool = False) -> Iterator[None]:
    """In a `with` block: with or without them, for all threads."""
    before = is_enabled()
    _compiled.enable(enabled)
    try:
        yield
    finally:
        _compiled.enable(before)
