"""torch.backends.mkl: functions that PyTorch computes with MKL are NumPy's and this package's own here.

https://pytorch.org/docs → torch.backends.mkl
"""
from typing import Any

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available() -> bool:
    """Return True: the functions that PyTorch has only in builds with MKL are all available.

    Programs ask before they call transforms of torch.fft, or multiply and add sparse_csr matrices and solve systems of
    them. MKL itself is not used, unless NumPy is built with it.
    """
    return True


class verbose:
    """A `with` block for MKL's messages: there are none."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> "verbose":
        return self

    def __exit__(self, *exception: Any) -> None:
        pass
