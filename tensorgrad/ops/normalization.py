"""Normalisations: each is (x − mean) / √(variance + ε), over different elements."""
from __future__ import annotations

from .base import Composite


class NativeLayerNorm(Composite):
    """(x − μ) / √(σ² + ε) · w + b, with μ and σ² over the last `ndim` axes. J. L. Ba, J. R. Kiros, G. E. Hinton (2016)"""

    kinds = "f"

    def forward(xp, x, w, b, *, ndim, eps):
        axes = tuple(range(len(x.shape) - ndim, len(x.shape)))
        centred = x - xp.mean(x, axis=axes, keepdims=True)
        variance = xp.mean(centred * centred, axis=axes, keepdims=True)
        out = centred / xp.sqrt(variance + eps)
        out = out if w is None else out * w
        return out if b is None else out + b


class NativeBatchNorm(Composite):
    """(x − μ) / √(σ² + ε) · w + b for each channel (axis 1), with μ and σ² over the batch and all places. S. Ioffe, C. Szegedy (2015)"""

    kinds = "f"

    def forward(xp, x, w, b, *, eps):
        axes = (0, *range(2, len(x.shape)))
        centred = x - xp.mean(x, axis=axes, keepdims=True)
        variance = xp.mean(centred * centred, axis=axes, keepdims=True)
        return scaled(xp, centred / xp.sqrt(variance + eps), w, b)


class AffineByChannel(Composite):
    """(x − μ) / √(σ² + ε) · w + b for each channel (axis 1), with μ and σ² given: batch normalisation after training."""

    torch_name = "NativeBatchNorm"
    kinds = "f"

    def forward(xp, x, mean, variance, w, b, *, eps):
        scale = 1 / xp.sqrt(variance + eps)
        scale = scale if w is None else scale * w
        shift = -mean * scale
        shift = shift if b is None else shift + b
        return x * per_channel(xp, scale, x) + per_channel(xp, shift, x)


class NativeGroupNorm(Composite):
    """Normalised over groups of channels of each sample. Y. Wu, K. He (2018)"""

    kinds = "f"

    def forward(xp, x, w, b, *, groups, eps):
        n = x.shape[0]
        grouped = xp.reshape(x, (n, groups, count(x) // max(n * groups, 1)))
        centred = grouped - xp.mean(grouped, axis=2, keepdims=True)
        variance = xp.mean(centred * centred, axis=2, keepdims=True)
        return scaled(xp, xp.reshape(centred / xp.sqrt(variance + eps), x.shape), w, b)


class RmsNorm(Composite):
    """x / √(mean x² + ε) · w over the last `ndim` axes. B. Zhang, R. Sennrich (2019)"""

    torch_name = "FusedRmsNorm"
    kinds = "f"

    def forward(xp, x, w, *, ndim, eps):
        axes = tuple(range(len(x.shape) - ndim, len(x.shape)))
        out = x / xp.sqrt(xp.mean(x * x, axis=axes, keepdims=True) + eps)
        return out if w is None else out * w


def count(x):
    total = 1
    for n in x.shape:
        total *= n
    return total


def per_channel(xp, v, x):
    """A vector over axis 1, shaped to broadcast with x."""
    return xp.reshape(v, (-1, *(1,) * (len(x.shape) - 2)))


def scaled(xp, x, w, b):
    x = x if w is None else x * per_channel(xp, w, x)
    return x if b is None else x + per_channel(xp, b, x)

