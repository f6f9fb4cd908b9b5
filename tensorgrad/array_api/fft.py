"""The standard's Fourier transforms.

https://data-apis.org/array-api/2024.12/extensions/fourier_transform_functions.html
"""
from __future__ import annotations

from typing import Any

from .. import fft as _fft

__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn",
           "rfft", "rfftfreq", "rfftn"]


def _along_an_axis(name: str) -> Any:
    function = getattr(_fft, name)

    def transform(x: Any, /, *, n: Any = None, axis: int = -1, norm: str = "backward") -> Any:
        return function(x, n, axis, norm)
    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = function.__doc__.partition("\n\n")[0]
    return transform


def _along_axes(name: str) -> Any:
    function = getattr(_fft, name)

    def transform(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Any:
        return function(x, s, axes, norm)
    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = function.__doc__.partition("\n\n")[0]
    return transform


fft, ifft, rfft, irfft, hfft, ihfft = map(_along_an_axis, ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fftn, ifftn, rfftn, irfftn = map(_along_axes, ("fftn", "ifftn", "rfftn", "irfftn"))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """Return the frequencies of `fft`."""
    return _fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """Return the frequencies of `rfft`."""
    return _fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Any, /, *, axes: Any = None) -> Any:
    """Move frequency 0 to the middle."""
    return _fft.fftshift(x, axes)


def ifftshift(x: Any, /, *, axes: Any = None) -> Any:
    """Move frequency 0 to the beginning."""
    return _fft.ifftshift(x, axes)
