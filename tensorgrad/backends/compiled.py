"""The package's own compiled kernels for the CPU, built from native/ on install.

Without them the same operations run on NumPy. `TENSORGRAD_KERNELS=numpy` leaves them out from the start,
`TENSORGRAD_KERNELS=reference` NumPy's special kernels as well.

>>> import tensorgrad as torch
>>> with torch.backends.compiled.flags(enabled=False):
...     torch.backends.compiled.is_enabled()
False
"""
from collections.abc import Iterator
from contextlib import contextmanager

from ..kernels import compiled as _compiled
from ..runtime.native import native


def is_available() -> bool:
    """Return True if the kernels were built."""
    return native is not None


def is_enabled() -> bool:
    """Return True if the kernels are in use."""
    return _compiled.enabled()


def instructions() -> str | None:
    """Return the instruction set of the kernels, such as "AVX2"; None without kernels."""
    return native.instructions if native is not None else None


def set_flags(enabled: bool | None = None, winograd: bool | str | None = None) -> tuple[bool, bool | str]:
    """Set switches, for all threads; return their previous values.

    `winograd` chooses Winograd's F(2×2, 2×2) or F(2×2, 3×3), with 9 products for 16, or 16 for 36, for convolutions and
    their gradients. Winograd's formula applies to kernels of two or three places along both axes in each phase of the
    stride (2×2 and 3×3 with stride 1, 4×4 and 5×5 with stride 2). True: where it is faster; "always": wherever it
    applies; False: never, each result is summed directly. Rounding errors are relative to the largest numbers of a
    tile, so that results much smaller than their neighbours (zeros among them) are less exact.
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
    """Set the switches within a `with` block, for all threads."""
    before = set_flags(enabled, winograd)
    try:
        yield
    finally:
        set_flags(*before)
