"""Normalisations: each is (x − μ) / √(σ² + ε) · w + b, with the mean and the variance of different elements."""
from __future__ import annotations

from math import prod

from .base import Composite


class Normalization(Composite):
    __slots__ = ()
    kinds = "f"
    batch = "defined"


class NativeLayerNorm(Normalization):
    """With μ and σ² over the last `ndim` axes. J. L. Ba, J. R. Kiros, G. E. Hinton (2016)"""

    row_major = True
    kernel_name = "LayerNormKernelImpl"

    def batch(lot, kernel, x, w, b, **params):
        if lot.shared(w, b):
            return lot.whole(kernel(x.values, lot.common(w), lot.common(b), **params))
        out = lot.whole(kernel(x.values, None, None, **params))
        out = out if w is None else out * w
        return out if b is None else out + b

    def forward(xp, x, w, b, *, ndim, eps):
        out, _, _ = standardized(xp, x, last(x, ndim), eps)
        out = out if w is None else out * w
        return out if b is None else out + b


class NativeGroupNorm(Normalization):
    """With μ and σ² over groups of channels of each sample. Y. Wu, K. He (2018)"""

    images = "x"
    kernel_name = "GroupNormKernelImpl"

    def batch(lot, kernel, x, w, b, **params):
        """Each sample is by itself: batches of samples are a longer batch."""
        whole = lot.shared(w, b)
        given = (lot.common(w), lot.common(b)) if whole else (None, None)
        out = lot.folded(lambda values: kernel(values, *given, **params), x)
        return out if whole else affine(lot.xp, out, w, b)

    def forward(xp, x, w, b, *, groups, eps):
        n = x.shape[0]
        out, _, _ = standardized(xp, xp.reshape(x, (n, groups, prod(x.shape[1:]) // groups)), (2,), eps)
        return affine(xp, xp.reshape(out, x.shape), w, b)


class NativeBatchNorm(Normalization):
    """With μ and σ² of each channel (axis 1), over the batch and all places; these are results, too.

    S. Ioffe, C. Szegedy (2015)
    """

    images = "x"
    outputs = ("out", "mean", "variance")
    kernel_name = "batch_norm"
    onnx = "definition"

    def forward(xp, x, w, b, *, eps):
        out, mean, variance = standardized(xp, x, (0, *range(2, len(x.shape))), eps)
        return affine(xp, out, w, b), xp.reshape(mean, (x.shape[1],)), xp.reshape(variance, (x.shape[1],))


class AffineByChannel(Normalization):
    """With μ and σ² given for each channel (axis 1): batch normalisation after training."""

    images = "x"
    torch_name = "NativeBatchNorm"
    kernel_name = "batch_norm"

    def forward(xp, x, w, b, mean, variance, *, eps):
        scale = 1 / xp.sqrt(variance + eps)
        scale = scale if w is None else scale * w
        shift = -mean * scale
        return affine(xp, x, scale, shift if b is None else shift + b)


class RmsNorm(Normalization):
    """x / √(mean x² + ε) · w over the last `ndim` axes. B. Zhang, R. Sennrich (2019)"""

    row_major = True
    torch_name = "Mul"
    onnx = "definition"

    def forward(xp, x, w, *, ndim, eps):
        out = x / xp.sqrt(xp.mean(x * x, axis=last(x, ndim), keepdims=True) + eps)
        return out if w is None else out * w


def last(x, ndim):
    """The last axes."""
    return tuple(range(len(x.shape) - ndim, len(x.shape)))


def standardized(xp, x, axes, eps):
    """(x − μ) / √(σ² + ε), μ and σ²"""
    mean = xp.mean(x, axis=axes, keepdims=True)
    centred = x - mean
    variance = xp.mean(centred * centred, axis=axes, keepdims=True)
    return centred / xp.sqrt(variance + eps), mean, variance


def affine(xp, x, w, b):
    """x · w + b, with one w and b for each channel (axis 1)."""
    per_channel = (-1, *(1,) * (len(x.shape) - 2))
    x = x if w is None else x * xp.reshape(w, per_channel)
    return x if b is None else x + xp.reshape(b, per_channel)
