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


def set_flags(enabled: bool | None = None, winograd: bool | str | None = None) -> tuple[bool, bool | str]:
    """Set switches, for all threads; what they were.

    `winograd`: whether convolutions whose kernel has two or three places along both axes in each phase of their stride (2×2 and 3×3 with stride 1, 4×4 and
    5×5 with stride 2), and their gradients, take Winograd's F(2×2, 2×2) or F(2×2, 3×3), 9 products for 16, or 16 for 36. True: where that is faster;
    "always": wherever it can be done; False: never, each result is the sum of its own products. The error is that of the direct way measured against the
    largest numbers of a tile, so that results much smaller than those beside them (zeros among them) are less exact.
    """
    before = is_enabled(), _compiled.choices["winograd"]
    if winograd is not None:
        if winograd not in (False, True, "always"):
            raise ValueError(f"winograd may be True, False or 'always', not {winograd!r}")
        _compiled.choices["winograd"] = winograd
    if enabled is not None:
        _compiled.enable(enabled)
    return before


@contextmanager
def flags(enabled: bool = False, winograd: bool | str | None = None) -> Iterator[None]:
    """In a `with` block: with or without them, for all threads; with these switches."""
    before = set_flags(enabled, winograd)
    try:
        yield
    finally:
        set_flags(*before)
