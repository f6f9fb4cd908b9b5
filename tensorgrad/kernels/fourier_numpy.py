"""Fourier transforms with results laid out as by MKL: transformed axes innermost, the last of them first."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..core.dispatch import OpDispatch
from ..ops.fourier import FourierTransform, FromHalfSpectrum, HalfSpectrum
from ..storage.layout import in_axes


def register(op: str) -> Any:
    return OpDispatch.register(op, "cpu")


def from_longest(x: Any, axes: Any) -> list[int]:
    """Axes in the order of their strides, the longest first."""
    return sorted(axes, key=lambda axis: -abs(x.strides[axis]))


def inside(y: Any, x: Any, inner: list[int]) -> Any:
    """Return the transform y of x with these axes innermost, and the others in x's memory order."""
    return in_axes(y, from_longest(x, [axis for axis in range(x.ndim) if axis not in inner]) + inner)


@register("fourier_transform")
def fourier_transform(x: Any, *, axes: Any, inverse: bool = False, norm: str = "backward",
                      last: int | None = None) -> Any:
    y = FourierTransform.forward(np, x, axes=axes, inverse=inverse, norm=norm)
    return inside(y, x, [*from_longest(x, [axis % x.ndim for axis in axes]), *([] if last is None else [last])])


@register("half_spectrum")
def half_spectrum(x: Any, *, axis: int, norm: str = "backward", doubled: bool = False) -> Any:
    return inside(HalfSpectrum.forward(np, x, axis=axis, norm=norm, doubled=doubled), x, [axis % x.ndim])


@register("from_half_spectrum")
def from_half_spectrum(x: Any, *, n: int, axis: int, norm: str = "backward", halved: bool = False) -> Any:
    return inside(FromHalfSpectrum.forward(np, x, n=n, axis=axis, norm=norm, halved=halved), x, [axis % x.ndim])
