"""torch.backends.mkl: not used, except where NumPy itself is built with it.

https://pytorch.org/docs → torch.backends.mkl
"""
from typing import Any

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available() -> bool:
    """Return False: PyTorch's MKL kernels are not there."""
    return False


class verbose:
    """A `with` block for MKL's messages: there are none."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> "verbose":
        return self

    def __exit__(self, *exception: Any) -> None:
        pass
